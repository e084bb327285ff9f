"""The limit of copies a second from a publisher for the queues of a user, which bounds what their calls cost."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.routing.ports import CopyCounter
from signalbox.messages import MessageId

PERIOD_SECONDS = 10
# Their calls cost 18 USD an hour at most, and their events are 4.2 of the 5 MiB a second that a Firehose stream takes.
MOST_COPIES = 10_000 * PERIOD_SECONDS
COUNTED_TOGETHER = 1_000  # by a function instance, with one write
KNOWN_PAIRS = 10_000


@dataclass(slots=True)
class CopyLimits:
    """The limit of copies from one publisher for the queues of one user. Not thread-safe.

    Administrators' queues have none, as they have no quota. A limit of a user's copies from all publishers would let
    one of them end those of the others.
    """

    counter: CopyCounter
    now: Callable[[], datetime]
    most: int = MOST_COPIES
    counted_together: int = COUNTED_TOGETHER
    _uncounted: dict[str, int] = field(default_factory=dict, init=False)
    _full: dict[str, int] = field(default_factory=dict, init=False)  # the period in which a pair had too many

    def above(self, copies: Iterable[Copy]) -> Sequence[Sequence[Copy]]:
        """Count copies; return those above the limit, together those of a publication for a user."""
        pairs: defaultdict[str, defaultdict[MessageId, list[Copy]]] = defaultdict(lambda: defaultdict(list))
        for copy in copies:
            if copy.declared_by is not None:
                pairs[f"{copy.publisher} {copy.declared_by}"][copy.message_id].append(copy)
        above: list[Sequence[Copy]] = []
        for pair, found in pairs.items():
            if not self._admits(pair, sum(map(len, found.values()))):
                above += found.values()
        return above

    def _admits(self, pair: str, copies: int) -> bool:
        period = int(self.now().timestamp()) // PERIOD_SECONDS
        if self._full.get(pair) == period:
            return False
        for known in (self._uncounted, self._full):
            if len(known) >= KNOWN_PAIRS:
                known.clear()
        uncounted = self._uncounted.pop(pair, 0) + copies
        if uncounted < self.counted_together:
            self._uncounted[pair] = uncounted
        elif self.counter.add(pair, uncounted, period=period) > self.most:
            self._full[pair] = period
            return False
        return True
