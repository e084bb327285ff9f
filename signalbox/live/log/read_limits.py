"""The limits of what requests read of the logs: they must leave memory and time to those of other users."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from signalbox.errors import RejectedError, UnavailableError

# In bytes of memory. 20,000 small events take about three seconds to read, and an instance has ten.
MAXIMUM_OF_REQUEST = 150_000_000
# A request up to this cost never waits for those of others: an instance answers ten at a time, and has 300 MB for them.
SMALL = 15_000_000
# What a reader may read in an instance at once, in about a second, and in each second: a fifth of what all may.
CREDIT, PER_SECOND = 50_000_000, 10_000_000
# Not the memory, which is less, but the share of the time: of a query, several at a time.
EVENT, TOPIC, QUERY, POST = 7_500, 1_900, 120_000, 50_000
# Of a session in a list of a realm's, and of a subscription in its record: 0.4 s for 30,000 of them.
MEMBER, PATTERN = 2_500, 700
# Of a further page of topics, 1 MB of which all may be older: a partition gives twelve a second to all its readers.
TOPICS_PAGE = 3_000_000
NAMED = TOPICS_PAGE // 256  # of a topic by its name, one of the 256 read units of such a page
VALUE = 64  # of an empty list or object in a payload, the most for its characters
WIDEST = 4  # bytes of each character of a string, if one character needs them
MARKS = "[{,:"  # in a JSON text, as many as the values and names in it, or more


class PastTooLarge(RejectedError):
    """Raised when a request has more past events than a function has memory or time, or a record has room, for."""


class ReadsBusy(UnavailableError):
    """Raised when the function instance has no memory or time left for past events, or for a user's: retry later."""


@dataclass(slots=True, eq=False)
class InstanceReads:
    """The requests of a function instance, which come one at a time from each reader.

    What a reader has read is a debt, which decreases by `PER_SECOND`; up to `CREDIT` the reader may read on. The
    requests above `SMALL` together are as large as one may be.
    """

    now: Callable[[], float]
    exclusive: AbstractContextManager[object]
    _large: "list[ReadBudget]" = field(default_factory=list)
    _paid_at: dict[Hashable, float] = field(default_factory=dict)

    @contextmanager
    def request(self, reader: Hashable, is_late: Callable[[], bool]) -> "Iterator[ReadBudget]":
        """Return the budget of a request until it ends; its reader then owes what it has spent. Raises `ReadsBusy`."""
        budget = self._begun(reader, is_late)
        try:
            yield budget
        finally:
            self._end(budget)

    def _begun(self, reader: Hashable, is_late: Callable[[], bool]) -> "ReadBudget":
        with self.exclusive:
            now = self.now()
            for paid in [one for one, at in self._paid_at.items() if at <= now]:
                del self._paid_at[paid]
            if (self._paid_at.get(reader, now) - now) * PER_SECOND > CREDIT:
                raise ReadsBusy("this user has no reads of past events left for some seconds: try again")
        budget = ReadBudget(self, reader, is_late)
        budget.look_at_time()
        return budget

    def spend(self, budget: "ReadBudget", cost: int) -> None:
        """Add a cost to a request. Raises `PastTooLarge` and `ReadsBusy`."""
        with self.exclusive:
            budget.spent += cost
            if budget.spent > MAXIMUM_OF_REQUEST:
                raise PastTooLarge(
                    "more past events match than one request may read, 20,000 small ones, 1,250 topics or 50 MB of "
                    "items of topics: choose fewer topics, or retained events without history"
                )
            if budget.is_large:
                self._admit(budget)

    def _end(self, budget: "ReadBudget") -> None:
        with self.exclusive:
            now = self.now()
            owed = (budget.spent + POST * budget.posts) / PER_SECOND
            self._paid_at[budget.reader] = max(self._paid_at.get(budget.reader, now), now) + owed
            if budget in self._large:
                self._large.remove(budget)

    def _admit(self, budget: "ReadBudget") -> None:
        others = [one for one in self._large if one is not budget]
        if budget.spent + sum(one.spent for one in others) > MAXIMUM_OF_REQUEST:
            raise ReadsBusy("other requests are reading many past events: try again")
        self._large = [*others, budget]


@dataclass(slots=True, eq=False)
class ReadBudget:
    """The cost of what a request of a reader has read, and the number of its posts and other calls.

    Nothing more is spent when the invocation `is_late`: a client may send ten calls in a frame, and ten frames.
    """

    reads: InstanceReads
    reader: Hashable
    is_late: Callable[[], bool]
    spent: int = 0
    posts: int = 0

    def spend(self, cost: int) -> None:
        """Add a cost. Raises `PastTooLarge` and `ReadsBusy`."""
        self.reads.spend(self, cost)
        self.look_at_time()

    @property
    def is_large(self) -> bool:
        """Return whether the request has read more than `SMALL`."""
        return self.spent > SMALL

    def look_at_time(self) -> None:
        """Raise `ReadsBusy` if the invocation is late."""
        if self.is_late():
            raise ReadsBusy("the function has no time to read more: try again")


def event_cost(text: str) -> int:
    """Return the cost of an event, given its JSON text: of small values, objects need up to 20 times its size."""
    width = WIDEST if not text.isascii() or "\\u" in text else 1
    return EVENT + width * len(text) + VALUE * sum(map(text.count, MARKS))
