"""The result of delivering a batch of a connection's outbox items."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto

from signalbox.live.model.state import ConnectionId, PastRefused, Session
from signalbox.live.outbox.items import ItemId
from signalbox.live.outbox.totals import NO_TOTALS, Totals
from signalbox.live.wamp.messages import PublicationId
from signalbox.messages import MessageId

# 100 ids have less than 2 KB, and Firehose charges for at least 5 KB of each event.
MAXIMUM_IDS = 100


class DeliveryOutcome(Enum):
    """How the delivery of a batch to a connection ended."""

    DONE = auto()
    OUT_OF_TIME = auto()  # the remaining items are redelivered after as long as the others took
    READS_BUSY = auto()  # past events cannot be read now, of others or of the same user
    BLOCKED = auto()  # an item could not be posted now; it and all later items are redelivered
    GONE = auto()  # the connection was closed by the client
    CLOSED = auto()  # the connection was closed by an item
    TOO_SLOW = auto()  # the client receives too slowly
    TOO_LARGE = auto()  # more past events were requested than one delivery reads
    UNCONFIRMED = auto()  # a reply may or may not have been posted


@dataclass(slots=True)
class BatchResult:
    """The result of delivering a batch of one connection, mutated during the delivery.

    `first` is the batch's first message, and `not_done` are those to redeliver. `events`, `replies` and `backfilled`
    count what was posted, `skipped` the events that the session may not or need not receive, and `size` is in bytes.
    `lags` are the times from the publication of each live event to its posting; `publications` are the ids of the first
    `MAXIMUM_IDS` posted events, live and past, each once. `refused` are the backfills that are too large, whose
    subscriptions must end.
    """

    connection: ConnectionId
    session: Session | None
    first: MessageId
    outcome: DeliveryOutcome = DeliveryOutcome.DONE
    not_done: tuple[MessageId, ...] = ()
    refused: dict[ItemId, PastRefused] = field(default_factory=dict)
    events: int = 0
    replies: int = 0
    backfilled: int = 0
    skipped: int = 0
    size: int = 0
    lags: list[timedelta] = field(default_factory=list)
    publications: dict[PublicationId, None] = field(default_factory=dict)
    totals: Totals = NO_TOTALS

    def add_publication(self, publication: PublicationId) -> None:
        """Note an event that was posted."""
        if len(self.publications) < MAXIMUM_IDS:
            self.publications[publication] = None
