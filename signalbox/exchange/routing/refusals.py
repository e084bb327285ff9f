"""The refusals of queues: when copies that a queue does not take end, and how many of an owner may wait."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from zlib import crc32

from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.names import is_existing
from signalbox.exchange.routing.ports import WaitingChanges, WaitingCopies
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sending import SentBatch

# The owner of an existing queue can deny copies for ever. New permissions and keys take minutes.
PATIENCE = timedelta(minutes=15)
# SQS delivers nothing more of a retry queue with 120,000 messages in flight, or behind 120,000 of other groups: no user
# may fill it. SQS takes 300 calls a second of a group, and copies of a key arrive faster than they are retried.
MOST_WAITING = 20_000
# Exchanges share these numbers of an owner, so that its item is one write unit.
SHARES = 64
# 200 function instances of one user's exchanges exceed the limit by the copies that each has not stored yet: fewer, the
# fewer places are free.
STORED_TOGETHER, STORED_EVERY = 100, timedelta(seconds=10)
STORED_AGAIN = timedelta(seconds=1)  # after a write that DynamoDB does not take
# SQS is not away if it took this many calls to queues of the stage lately, and failed none to one that no user fills.
WITNESSES, LATELY = 20, timedelta(minutes=5)
LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Refusals:
    """The refusals that a function instance sees, and the waiting copies of each owner: a user, or an existing queue.

    A copy is counted before it is sent to a retry queue. A killed instance loses the changes that it has not stored, so
    the numbers may be too high. Therefore no copy ends while the retry queues have fewer messages, as `retrying`
    returns, than one exchange has places.
    """

    stored: WaitingCopies
    now: Callable[[], datetime]
    retrying: Callable[[], int]
    parallel_map: ParallelMap = serial_map
    _taken: deque[datetime] = field(default_factory=lambda: deque(maxlen=WITNESSES), init=False)
    _moved: defaultdict[DeclaredName, WaitingChanges] = field(default_factory=lambda: defaultdict(Counter), init=False)
    _seen: dict[DeclaredName, Mapping[int, int]] = field(default_factory=dict, init=False)
    _seen_at: dict[DeclaredName, datetime] = field(default_factory=dict, init=False)
    _busy_until: datetime = field(default=LONG_AGO, init=False)
    _retrying: tuple[datetime, int] = field(default=(LONG_AGO, 0), init=False)

    def witness(self, sent: SentBatch, *, is_filled_by_users: bool) -> None:
        """Note whether SQS took a call to a queue of the stage.

        A failure says nothing about SQS if users fill the queue: they can have SQS throttle it.
        """
        if all(reason is not None for _, reason in sent.failed):
            self._taken.append(self.now())
        elif not is_filled_by_users:
            self._taken.clear()

    def ends(self, copy: Copy, sent: SentBatch) -> bool:
        """Return whether a copy ends that its queue has denied for long: only an existing queue denies copies."""
        return sent.is_denied and is_existing(copy.queue) and self.has_waited(copy)

    def has_waited(self, copy: Copy) -> bool:
        """Return whether a copy has waited long enough for a denial to end."""
        return copy.waiting_since is not None and self.now() - copy.waiting_since >= PATIENCE

    def reserve(self, copies: Iterable[Copy]) -> Sequence[Copy]:
        """Count copies that are to wait; return those that may not, since too many of their owner wait.

        The copies of an owner and, again, those from one exchange are `MOST_WAITING` together: one exchange has half of
        the places at most, and leaves some to all others. In an outage of SQS all copies may wait.
        """
        places: defaultdict[tuple[DeclaredName, int], list[Copy]] = defaultdict(list)
        for copy in copies:
            places[copy.owner, _share(copy)].append(copy)
        owners = {owner for owner, _ in places}
        self._store(filter(self._is_due, owners))
        self.count(chain.from_iterable(places.values()), 1)
        left = {place: self._placed(found, self._excess(*place)) for place, found in places.items()}
        self._store(filter(self._is_due, owners))  # other instances have reserved, too
        ended: list[Copy] = []
        for place, found in places.items():
            not_stored = sum(self._moved[place[0]].values()) - STORED_TOGETHER
            placed = self._placed(left[place], max(self._excess(*place), not_stored))
            ended += found[len(placed) :]
        return ended

    def count(self, copies: Iterable[Copy], change: int) -> None:
        """Count copies: `change` is 1 for those that begin to wait, -1 at the end of their wait, 0 in between."""
        for copy in copies:
            self._moved[copy.owner][copy.published_at.date(), _share(copy)] += change

    def write_due(self) -> None:
        """Store the counts of each owner that has many or was not stored lately."""
        self._store(filter(self._is_due, self._counted()))

    def flush(self) -> None:
        """Store all counts."""
        self._store(self._counted())

    def _counted(self) -> Sequence[DeclaredName]:
        return [owner for owner, moved in self._moved.items() if moved]

    def _store(self, owners: Iterable[DeclaredName]) -> None:
        for _ in self.parallel_map(self._store_one, owners):
            pass

    def _store_one(self, owner: DeclaredName) -> None:
        now = self.now()
        if now < self._busy_until:
            return
        numbers = self.stored.add_waiting(owner, self._moved[owner], now=now)
        if numbers is None:
            self._busy_until = now + STORED_AGAIN
            return
        self._seen[owner], self._seen_at[owner] = numbers, now
        del self._moved[owner]

    def _is_due(self, owner: DeclaredName) -> bool:
        if self.now() - self._seen_at.get(owner, LONG_AGO) >= STORED_EVERY:
            return True
        free = 1 - sum(self._seen[owner].values()) / MOST_WAITING
        return sum(map(abs, self._moved[owner].values())) >= max(1, STORED_TOGETHER * free)

    def _placed(self, copies: Sequence[Copy], excess: int) -> Sequence[Copy]:
        """Return the copies that may wait, without the last ones, which are not counted any more."""
        ends = excess > 0 and self._is_sqs_there() and self._are_many_retried()
        number = max(0, len(copies) - excess) if ends else len(copies)
        self.count(copies[number:], -1)
        return copies[:number]

    def _excess(self, owner: DeclaredName, share: int) -> int:
        """Return by how many copies an owner has too many, with those from the exchanges of a share; or a negative."""
        seen, moved = self._seen.get(owner, {}), self._moved[owner]
        of_share = seen.get(share, 0) + sum(number for (_, other), number in moved.items() if other == share)
        return -((MOST_WAITING - of_share - sum(seen.values()) - sum(moved.values())) // 2)

    def _are_many_retried(self) -> bool:
        now = self.now()
        if now - self._retrying[0] >= STORED_EVERY:
            self._retrying = now, self.retrying()
        return self._retrying[1] >= MOST_WAITING // 2

    def _is_sqs_there(self) -> bool:
        return len(self._taken) == WITNESSES and self.now() - self._taken[0] < LATELY


def _share(copy: Copy) -> int:
    return crc32(copy.exchange.encode()) % SHARES
