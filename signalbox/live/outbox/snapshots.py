"""Snapshots of connections: the state that decides what the writer may post."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.state import ConnectionId, Dialect, Session
from signalbox.live.outbox.decisions import OutboxState, may_post
from signalbox.live.outbox.items import EventBatch, OutboxItem, SubscriptionEvent
from signalbox.live.rights.grants import NO_RIGHTS, Rights
from signalbox.sarracenia.rights.names import ExchangeName, UserName

Owner = tuple[ExchangeName, UserName]
"""The realm and the user of a session."""


@dataclass(frozen=True, slots=True)
class SnapshotRequest:
    """The part of a connection's snapshot that a batch of items needs.

    `owner` is the realm and the user of the batch's events, or None if it has no events.
    """

    connection: ConnectionId
    owner: Owner | None
    has_only_events: bool


@dataclass(frozen=True, slots=True)
class ConnectionSnapshot:
    """The state that decides what may be posted to a connection.

    `outbox` is current. A complete snapshot is current altogether. In another one, `rights` are at most a second old,
    and `session` is as of the last reply that was posted, or current if the batch has replies; `live` is None, and
    without events in the batch there are no rights.

    `session` is None if the connection has none. `live` is None if the session's realm is not a live exchange. There
    are no rights unless the realm's settings admit the session.
    """

    session: Session | None
    outbox: OutboxState
    rights: Rights
    live: LiveSettings | None
    is_complete: bool = True

    @property
    def dialect(self) -> Dialect:
        """Return the protocol of the connection's client."""
        return self.session.dialect if self.session else Dialect.WAMP

    @property
    def separator(self) -> str:
        """Return the separator behind each message to the client."""
        return self.session.separator if self.session else ""

    def admits(self, candidate: SubscriptionEvent) -> bool:
        """Return whether an event may be posted."""
        return may_post(candidate, self.outbox, session=self.session, rights=self.rights)

    def at(self, now: datetime) -> "ConnectionSnapshot":
        """Return the snapshot at a time: without rights once the token with which the user has joined is over."""
        token = self.session.token if self.session else None
        return replace(self, rights=NO_RIGHTS) if token is not None and token.is_over(now) else self


class ConnectionSnapshots(Protocol):
    """The stored state of connections."""

    def read(self, connection: ConnectionId, *, owner: Owner | None) -> ConnectionSnapshot:
        """Read a complete snapshot. If the caller knows the session's realm and user, `owner` saves a read."""

    def recent(self, requests: Sequence[SnapshotRequest]) -> Mapping[ConnectionId, ConnectionSnapshot]:
        """Read the snapshots of several connections in one call; each request names the parts that its batch needs."""

    def save(
        self, connection: ConnectionId, outbox: OutboxState, *, session: Session | None, saved: OutboxState
    ) -> None:
        """Save the state of a connection's outbox, with a copy of its session. Raises `PastTooLarge`.

        `saved` is the stored state: what is the same in it need not be written.
        """

    def newest(self, realm: ExchangeName, topic: RoutingKey) -> int:
        """Return the sequence number of a topic's newest event, or 0."""


def owner_of(session: Session | None) -> Owner | None:
    """Return the realm and the user of a session, or None before it has joined."""
    if session is None or session.realm is None or session.identity is None:
        return None
    return session.realm, UserName(session.identity.authid)


def request_of(connection: ConnectionId, items: Sequence[OutboxItem]) -> SnapshotRequest:
    """Return the request for the part of a snapshot that items need."""
    owner = next(((one.realm, one.user) for one in items if isinstance(one, EventBatch)), None)
    return SnapshotRequest(connection, owner, all(isinstance(one, EventBatch) for one in items))
