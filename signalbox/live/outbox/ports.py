"""What topics and their subscribers ask of the world, as Protocols named for their roles.

All of them let the world's errors through: what ended with one comes again, and everything may happen twice.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Protocol

from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.outbox.items import OutboxItem
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A connection that is subscribed to a pattern, and whose session that is."""

    connection: ConnectionId
    pattern: TopicPattern
    listener: Listener


class Subscribers(Protocol):
    """The subscribers of realms, as sessions change them."""

    def attach(self, realm: ExchangeName, subscriber: Subscriber, *, at: datetime, expires_at: datetime) -> None:
        """Let routers find a subscriber. When this has returned, every router that looks does; doing it twice is fine.

        After `expires_at` it may be forgotten.
        """
        ...

    def detach(self, realm: ExchangeName, patterns: Collection[TopicPattern], connection: ConnectionId) -> None:
        """Take subscribers of one connection away; one that is gone already is fine."""
        ...


class TopicLog(Protocol):
    """The past of topics."""

    def events(self, realm: ExchangeName, topic: RoutingKey, *, live: LiveSettings, now: datetime) -> list[LoggedEvent]:
        """Return the events of a topic that are kept, in their order: no less than all that were appended before."""
        ...

    def events_since(
        self, realm: ExchangeName, topic: RoutingKey, sequence: int | None, *, live: LiveSettings, now: datetime
    ) -> list[LoggedEvent]:
        """Return what `events` does, and all that came from a number on, whether it is kept or not."""
        ...

    def topics(self, realm: ExchangeName, pattern: TopicPattern) -> list[RoutingKey]:
        """Return the topics with events that a pattern matches."""
        ...

    def retained(self, realm: ExchangeName, pattern: TopicPattern) -> list[LoggedEvent]:
        """Return the latest events that were to be retained: of each topic that of all, and that of some beside it."""
        ...


class Outboxes(Protocol):
    """The way into connections' outboxes."""

    def put(self, connection: ConnectionId, items: Sequence[OutboxItem]) -> None:
        """Put items behind what is there; one that is put again soon is there once. Raises `EffectFailed`."""
        ...


class PostResult(Enum):
    """What came of posting to a connection."""

    POSTED = auto()
    GONE = auto()  # there is no such connection any more
    BUSY = auto()  # it was not posted, and may be later
    TOO_LARGE = auto()  # it was not posted, and never will be
    UNKNOWN = auto()  # perhaps it was posted


class Connections(Protocol):
    """The connections themselves."""

    def post(self, connection: ConnectionId, text: str, *, is_repeatable: bool) -> PostResult:
        """Post a message; one that is repeatable may come twice."""
        ...

    def close(self, connection: ConnectionId) -> None:
        """Close a connection; one that is closed already is fine."""
        ...
