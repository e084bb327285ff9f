"""The limits of what one request reads of the logs: it must leave memory and time to those of other connections."""

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from signalbox.errors import RejectedError, UnavailableError

# In bytes of memory. 20,000 small events take about three seconds to read, and an instance has ten.
MAXIMUM_OF_REQUEST = 150_000_000
# A request up to this cost never waits for others: an instance answers ten at a time, and has 300 MB for them.
SMALL = 15_000_000
REMEMBERED = 10.0  # seconds; a reader who was refused may have its turn in another instance
# Not the memory, which is less, but the share of the time.
EVENT, TOPIC, QUERY = 7_500, 1_900, 120_000
VALUE = 64  # of an empty list or object in a payload, the most for its characters
WIDEST = 4  # bytes of each character of a string, if one character needs them
MARKS = "[{,:"  # in a JSON text, as many as the values and names in it, or more


class PastTooLarge(RejectedError):
    """Raised when a request has more past events than a function has memory or time, or a record has room, for."""


class ReadsBusy(UnavailableError):
    """Raised when other large requests use the memory or time of the function instance for past events: retry."""


@dataclass(slots=True, eq=False)
class LargeReads:
    """The requests of a function instance above `SMALL`: one of each reader, and together as large as one may be.

    A reader who was refused goes before those who have had a turn since, however many connections these have.
    """

    now: Callable[[], float]
    exclusive: AbstractContextManager[object]
    _running: "list[ReadBudget]" = field(default_factory=list)
    _refused: dict[Hashable, float] = field(default_factory=dict)
    _ended: dict[Hashable, float] = field(default_factory=dict)

    def admit(self, budget: "ReadBudget") -> None:
        """Add a large request, or what one has spent. Raises `ReadsBusy`."""
        with self.exclusive:
            now, others = self.now(), [one for one in self._running if one is not budget]
            is_new = len(others) == len(self._running)
            is_full = budget.spent + sum(one.spent for one in others) > MAXIMUM_OF_REQUEST
            if is_full or (is_new and self._must_wait(budget.reader, others, now)):
                self._refused.setdefault(budget.reader, now)
                raise ReadsBusy("other requests are reading many past events: try again")
            if is_new:
                self._running.append(budget)
                self._refused.pop(budget.reader, None)

    def end(self, budget: "ReadBudget") -> None:
        """Remove a request."""
        with self.exclusive:
            if budget in self._running:
                self._running.remove(budget)
                self._ended[budget.reader] = self.now()

    def _must_wait(self, reader: Hashable, others: "list[ReadBudget]", now: float) -> bool:
        for times in (self._refused, self._ended):
            for old in [one for one, at in times.items() if now - at > REMEMBERED]:
                del times[old]
        turn = self._ended.get(reader)
        others_wait = turn is not None and any(at <= turn for one, at in self._refused.items() if one != reader)
        return others_wait or any(one.reader == reader for one in others)


@dataclass(slots=True, eq=False)
class ReadBudget:
    """What a request of a reader has spent.

    Nothing more is spent when the invocation `is_late`: a client may send ten calls in a frame, and ten frames.
    """

    large: LargeReads
    reader: Hashable
    is_late: Callable[[], bool] = lambda: False
    spent: int = 0

    def spend(self, cost: int) -> None:
        """Add a cost. Raises `PastTooLarge` and `ReadsBusy`."""
        self.spent += cost
        if self.spent > MAXIMUM_OF_REQUEST:
            raise PastTooLarge(
                "more past events match than one request may read, 20,000 small ones or 1,250 topics: choose fewer "
                "topics, or retained events without history"
            )
        if self.is_late():
            raise ReadsBusy("the function has no time for more past events: try again")
        if self.spent > SMALL:
            self.large.admit(self)


def event_cost(text: str) -> int:
    """Return the cost of an event, given its JSON text: of small values, objects need up to 20 times its size."""
    width = WIDEST if not text.isascii() or "\\u" in text else 1
    return EVENT + width * len(text) + VALUE * sum(map(text.count, MARKS))
