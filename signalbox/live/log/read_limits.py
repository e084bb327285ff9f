"""The limits of what one request reads of the logs: it must leave memory and time to those of other connections."""

from collections.abc import Callable
from dataclasses import dataclass

from signalbox.errors import RejectedError, UnavailableError

# In bytes of memory. Of a request, and of all requests that a function instance answers at a time: 20,000 small events
# take about three seconds to read, and an instance has ten.
MAXIMUM_OF_REQUEST, MAXIMUM_OF_INSTANCE = 150_000_000, 300_000_000
# Not the memory, which is less, but the share of the time.
EVENT, TOPIC, QUERY = 7_500, 1_900, 120_000
VALUE = 64  # of an empty list or object in a payload, the most for its characters
WIDEST = 4  # bytes of each character of a string, if one character needs them
MARKS = "[{,:"  # in a JSON text, as many as the values and names in it, or more


class PastTooLarge(RejectedError):
    """Raised when one request would read more past events than a function has memory or time for."""


class ReadsBusy(UnavailableError):
    """Raised when other requests use the memory or time of the function instance for past events: retry."""


@dataclass(slots=True, eq=False)
class ReadBudget:
    """What a request has spent; `running` are the budgets of all requests of the instance, with this one.

    Nothing more is spent when the invocation `is_late`: a client may send ten calls in a frame, and ten frames. Its
    threads may spend at the same time: a sum that misses some of it does no harm.
    """

    running: "list[ReadBudget]"
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
        if self.is_late() or sum(one.spent for one in self.running) > MAXIMUM_OF_INSTANCE:
            raise ReadsBusy("other requests are reading many past events: try again")


def event_cost(text: str) -> int:
    """Return the cost of an event, given its JSON text: of small values, objects need up to 20 times its size."""
    width = WIDEST if not text.isascii() or "\\u" in text else 1
    return EVENT + width * len(text) + VALUE * sum(map(text.count, MARKS))
