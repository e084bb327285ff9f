"""The allowance of a publisher in a period, and its limits of copies and of heads of routing keys."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from signalbox.exchange.messages.copies import Copy
    from signalbox.messages import MessageId

PERIOD_SECONDS = 10
# Their calls cost 18 USD an hour at most, and their events are 4.2 of the 5 MiB a second that a Firehose stream takes.
MOST_COPIES = 10_000 * PERIOD_SECONDS
MOST_HEADS = 1_500 * PERIOD_SECONDS  # a new table takes 4,000 writes a second
PARTS = 300  # A function instance counts a part of an allowance with one write.
KNOWN_SHARES = 10_000


@dataclass(frozen=True, slots=True)
class Share:
    """What counts together, up to a part of an allowance; each message counts `least` or more."""

    name: str
    part: float = 1
    least: int = 1


class AllowanceCounter(Protocol):
    """The amounts that each share has in each period, of all function instances."""

    def add(self, share: str, amount: int, *, period: int) -> int:
        """Add to the amount of a period, and return the sum. Never raises: return 0 if nothing was added."""


@dataclass(slots=True)
class Allowance:
    """The most that a share may have in a period. Thread-safe with a lock as `exclusive`."""

    counter: AllowanceCounter
    most: int
    exclusive: AbstractContextManager[object] = field(default_factory=nullcontext)
    _uncounted: dict[tuple[str, int], int] = field(default_factory=dict, init=False)
    _full: set[tuple[str, int]] = field(default_factory=set, init=False)

    def admits(self, shares: Collection[Share], amount: int, *, at: datetime) -> bool:
        """Count an amount at a time in shares, until one is full; return whether none is.

        An amount of 0 was counted when its message was received before. A share stays full for its period, whenever a
        message of the period is processed.
        """
        period = int(at.timestamp()) // PERIOD_SECONDS
        return all(self._has_room(one, amount and max(amount, one.least), period) for one in shares)

    def _has_room(self, share: Share, amount: int, period: int) -> bool:
        key = share.name, period
        with self.exclusive:
            if key in self._full:
                return False
            due = self._uncounted.pop(key, 0) + amount
            if amount and due < self.most // PARTS:
                _make_room(self._uncounted)
                self._uncounted[key] = due
                return True
        if self.counter.add(share.name, due, period=period) <= self.most * share.part:
            return True
        with self.exclusive:
            _make_room(self._full)
            self._full.add(key)
        return False


def _make_room(known: dict[tuple[str, int], int] | set[tuple[str, int]]) -> None:
    if len(known) >= KNOWN_SHARES:
        known.clear()


def copies_above(allowance: Allowance, copies: "Iterable[Copy]", *, at: datetime) -> "Sequence[Sequence[Copy]]":
    """Count copies by publisher and user; return those above the limit, together those of a publication for a user.

    Copies for administrators' queues are not counted, as these have no quota. A limit of a user's copies from all
    publishers would let one of them end those of the others.
    """
    pairs: defaultdict[str, defaultdict[MessageId, list[Copy]]] = defaultdict(lambda: defaultdict(list))
    for copy in copies:
        if copy.declared_by is not None:
            pairs[f"{copy.publisher} {copy.declared_by}"][copy.message_id].append(copy)
    above: list[Sequence[Copy]] = []
    for pair, found in pairs.items():
        if not allowance.admits([Share(pair)], sum(map(len, found.values())), at=at):
            above += found.values()
    return above
