"""What became of the items of a connection's outbox."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto

from signalbox.live.outbox.totals import NO_TOTALS, Totals
from signalbox.live.session.state import ConnectionId, Session
from signalbox.messages import MessageId


class DeliveryOutcome(Enum):
    """How the work on a connection ended."""

    DONE = auto()
    OUT_OF_TIME = auto()  # there was no time for more; the rest comes again at once
    BLOCKED = auto()  # something could not be posted now, and comes again with all behind it
    GONE = auto()  # there is no such connection any more
    CLOSED = auto()  # the session wanted that
    TOO_SLOW = auto()
    UNCONFIRMED = auto()  # nobody knows whether a reply was posted


@dataclass(slots=True)
class DeliveryResult:
    """What became of the items of one connection: the first of them, how it ended, what comes again, what was posted.

    `lags` are the times from the publication of each event to its being posted; `skipped` are events that were not to
    be posted (any more).
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
