"""What one subscriber of one topic received, and the account of it: lost, twice, out of order, unnoticed gaps."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event as the application got it; `skipped` says that the broker or the client reported a gap before it."""

    topic: str
    publication: str
    number: int
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """The account of races."""

    wanted: int = 0
    lost: int = 0
    twice: int = 0
    out_of_order: int = 0
    unnoticed: int = 0

    def plus(self, other: "Account") -> "Account":
        """Return the sums of both."""
        return Account(
            self.wanted + other.wanted,
            self.lost + other.lost,
            self.twice + other.twice,
            self.out_of_order + other.out_of_order,
            self.unnoticed + other.unnoticed,
        )


@dataclass(slots=True)
class Race:
    """One subscriber's topic: what was published, and what arrived. Times are those of one monotonic clock."""

    from_first: bool
    """Whether the subscriber requests the topic's past."""
    published: dict[int, float] = field(default_factory=dict)
    """By number, the time before the first call that published an accepted event."""
    subscribed_at: float | None = None
    deliveries: list[Delivery] = field(default_factory=list)
    signs: set[int] = field(default_factory=set)
    """Positions in `deliveries` before which the subscriber lost its connection or got the report of a gap."""

    def add(self, delivery: Delivery) -> None:
        """Note a delivery."""
        if delivery.skipped:
            self.sign()
        self.deliveries.append(delivery)

    def sign(self) -> None:
        """Note that the subscriber knows that it may have missed events since its last one."""
        self.signs.add(len(self.deliveries))

    def missing(self) -> set[int]:
        """Return the accepted numbers that the subscriber was to get and did not get."""
        return self._wanted() - {one.number for one in self.deliveries}

    def account(self) -> Account:
        """Return the account of this race."""
        missing = self.missing()
        numbers, publications = [one.number for one in self.deliveries], {one.publication for one in self.deliveries}
        return Account(
            wanted=len(self._wanted()),
            lost=len(missing),
            twice=len(self.deliveries) - len(publications),
            out_of_order=_out_of_order(numbers),
            unnoticed=len({self._position(number) for number in missing} - self.signs),
        )

    def _wanted(self) -> set[int]:
        """Return all accepted numbers, or those from the first that was published after SUBSCRIBED or was received."""
        if self.from_first:
            return set(self.published)
        if self.subscribed_at is None:
            return set()
        later = (number for number, at in self.published.items() if at > self.subscribed_at)
        first = min([*later, *(one.number for one in self.deliveries)], default=len(self.published))
        return {number for number in self.published if number >= first}

    def _position(self, missing: int) -> int:
        """Return the position of the first delivery after a gap."""
        after = (place for place, one in enumerate(self.deliveries) if one.number > missing)
        return next(after, len(self.deliveries))


def _out_of_order(numbers: Iterable[int]) -> int:
    """Return how many numbers come, for the first time, after a higher one."""
    seen, found = set[int](), 0
    for number in numbers:
        found += number not in seen and number < max(seen, default=number)
        seen.add(number)
    return found
