"""The result of delivering a batch of a connection's outbox items."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto

from signalbox.live.outbox.totals import NO_TOTALS, Totals
from signalbox.live.session.state import ConnectionId, Session
from signalbox.messages import MessageId


class DeliveryOutcome(Enum):
    """How the delivery of a batch to a connection ended."""

    DONE = auto()
    OUT_OF_TIME = auto()  # the remaining items are redelivered at once
    BLOCKED = auto()  # an item could not be posted now; it and all later items are redelivered
    GONE = auto()  # the connection was closed by the client
    CLOSED = auto()  # the connection was closed by an item
    TOO_SLOW = auto()  # the client receives too slowly
    UNCONFIRMED = auto()  # a reply may or may not have been posted


@dataclass(slots=True)
class DeliveryResult:
    """The result of delivering a batch of one connection, mutated during the delivery.

    `first` is the batch's first message, and `not_done` are those to redeliver. `events`, `replies` and `backfilled`
    count what was posted, `skipped` the events that the session may not or need not receive, and `size` is in bytes.
    `lags` are the times from the publication of each live event to its posting.
    """

    connection: ConnectionId
    session: Session | None
    first: MessageId
    outcome: DeliveryOutcome = DeliveryOutcome.DONE
    not_done: tuple[MessageId, ...] = ()
    events: int = 0
    replies: int = 0
    backfilled: int = 0
    skipped: int = 0
    size: int = 0
    lags: list[timedelta] = field(default_factory=list)
    totals: Totals = NO_TOTALS
