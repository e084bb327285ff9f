"""The delivery of one batch of outbox items to one connection: its state so far, its posts and its report."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.decisions import ItemAction, OutboxState, needs_saving, pruned
from signalbox.live.outbox.frames import Frame
from signalbox.live.outbox.items import SubscriptionEvent
from signalbox.live.outbox.ports import Connections, PostResult
from signalbox.live.outbox.results import BatchResult, DeliveryOutcome
from signalbox.live.outbox.snapshots import ConnectionSnapshot, ConnectionSnapshots, owner_of
from signalbox.live.wamp.codec import size_bytes

SAVED_EVERY = 100  # past events; with those of a frame, as many may be posted twice when the writer crashes
# An event that API Gateway still refuses as too large is skipped: the log has it without its payload.
EVENT_OUTCOMES = {
    PostResult.POSTED: DeliveryOutcome.DONE,
    PostResult.GONE: DeliveryOutcome.GONE,
    PostResult.BUSY: DeliveryOutcome.BLOCKED,
    PostResult.TOO_LARGE: DeliveryOutcome.DONE,
    PostResult.UNKNOWN: DeliveryOutcome.BLOCKED,
}


class EventDialect(Protocol):
    """The rules for events that differ between the protocols of clients."""

    def action(self, candidate: SubscriptionEvent, snapshot: ConnectionSnapshot, *, waited: timedelta) -> ItemAction:
        """Return the action for a live event, which has waited for the client to receive earlier items."""

    def text(self, candidate: SubscriptionEvent, snapshot: ConnectionSnapshot) -> str:
        """Return the message that carries an event."""

    def deferred(self, candidate: SubscriptionEvent, outbox: OutboxState) -> OutboxState:
        """Return the state after a live event was deferred: the pending backfill or catch-up will include it."""

    def posted(self, frame: Frame, snapshot: ConnectionSnapshot, *, now: datetime) -> OutboxState | None:
        """Return the state after a frame was posted, or None if it is the same."""


@dataclass(slots=True)
class ConnectionDelivery:
    """The delivery of a batch, which begins no item and no event after `until`.

    `snapshot` is what decides about the next post; its `outbox` has what was posted so far.
    """

    snapshots: ConnectionSnapshots
    connections: Connections
    now: Callable[[], datetime]
    until: datetime
    result: BatchResult
    snapshot: ConnectionSnapshot
    _saved: OutboxState = field(init=False)

    def __post_init__(self) -> None:
        self._saved = self.snapshot.outbox

    @property
    def connection(self) -> ConnectionId:
        """Return the connection to which the batch is delivered."""
        return self.result.connection

    @property
    def outbox(self) -> OutboxState:
        """Return the state of the outbox after the posts so far."""
        return self.snapshot.outbox

    @property
    def is_unconfirmed(self) -> bool:
        """Return whether the saved state has the replies that are posted now as unconfirmed."""
        return self._saved.unconfirmed_reply is not None

    @property
    def is_late(self) -> bool:
        """Return whether the time of the delivery is over."""
        return self.now() >= self.until

    def current(self) -> ConnectionSnapshot:
        """Return the snapshot as of now."""
        return self.snapshot.at(self.now())

    def read(self) -> None:
        """Read a complete snapshot, so that rights are current."""
        owner = owner_of(self.snapshot.session)
        self.snapshot = replace(self.snapshots.read(self.connection, owner=owner), outbox=self.outbox)

    def advance(self, outbox: OutboxState) -> None:
        """Replace the state of the outbox."""
        self.snapshot = replace(self.snapshot, outbox=outbox)

    def save(self) -> None:
        """Save the state of the outbox if it has changed. Raises `PastTooLarge`."""
        now = self.now()
        if needs_saving(self.outbox, saved=self._saved, now=now):
            state = pruned(self.outbox, now=now)
            self.advance(state)
            self.snapshots.save(self.connection, state, session=self.snapshot.session, saved=self._saved)
            self._saved = state

    def post(self, text: str, *, is_repeatable: bool) -> PostResult:
        """Post a message to the connection."""
        result = self.connections.post(self.connection, text, is_repeatable=is_repeatable)
        if result is PostResult.POSTED:
            self.result.size += size_bytes(text)
        return result

    def post_events(self, frame: Frame, dialect: EventDialect) -> DeliveryOutcome:
        """Post a frame of events, unless the time is over."""
        if self.is_late:
            return DeliveryOutcome.OUT_OF_TIME
        result = self.post(frame.text, is_repeatable=True)
        if result is PostResult.POSTED and (posted := dialect.posted(frame, self.snapshot, now=self.now())):
            self.advance(posted)
        return EVENT_OUTCOMES[result]

    def count_past(self, event: LoggedEvent) -> None:
        """Count an event that was posted from the log, and save the state from time to time."""
        self.result.backfilled += 1
        self.result.add_publication(event.publication)
        if self.result.backfilled % SAVED_EVERY == 0:
            self.save()
