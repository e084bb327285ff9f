"""The refusals of queues: when copies that a queue does not take end, and how many of an owner may wait."""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.names import is_existing
from signalbox.exchange.routing.ports import WaitingCopies
from signalbox.sending import SentBatch

# The owner of an existing queue can deny copies for ever. New permissions and keys take minutes.
PATIENCE = timedelta(minutes=15)
# SQS delivers nothing more of a retry queue with 120,000 messages in flight, or behind 120,000 of other groups: no user
# may fill it. SQS takes 300 calls a second of a group, and copies of a key arrive faster than they are retried.
MOST_WAITING = 20_000
# 200 function instances of one user's exchanges exceed the limit by the copies that each has not stored yet.
STORED_TOGETHER, STORED_EVERY = 100, timedelta(seconds=10)
# SQS is not away if it took this many calls to queues of the stage lately, and failed none to one that no user fills.
WITNESSES, LATELY = 20, timedelta(minutes=5)


@dataclass(slots=True)
class Refusals:
    """The refusals that a function instance sees, and the waiting copies of each owner: a user, or an existing queue.

    The number of waiting copies may be wrong by those that an instance had not stored at its end.
    """

    stored: WaitingCopies
    now: Callable[[], datetime]
    _taken: deque[datetime] = field(default_factory=lambda: deque(maxlen=WITNESSES), init=False)
    _moved: Counter[DeclaredName] = field(default_factory=Counter, init=False)
    _seen: dict[DeclaredName, tuple[datetime, int]] = field(default_factory=dict, init=False)

    def witness(self, sent: SentBatch, *, is_filled_by_users: bool) -> None:
        """Note whether SQS took a call to a queue of the stage.

        A failure says nothing about SQS if users fill the queue: they can have SQS throttle it.
        """
        if all(reason is not None for _, reason in sent.failed):
            self._taken.append(self.now())
        elif not is_filled_by_users:
            self._taken.clear()

    def ends(self, copy: Copy, sent: SentBatch) -> bool:
        """Return whether a copy that its queue did not take ends: a new one if too many wait, or one denied for long.

        Only an existing queue denies copies by its policy or its key.
        """
        if copy.waiting_since is None:
            return self.is_full(copy.owner)
        return sent.is_denied and is_existing(copy.queue) and self.has_waited(copy)

    def has_waited(self, copy: Copy) -> bool:
        """Return whether a copy has waited long enough for a denial to end."""
        return copy.waiting_since is not None and self.now() - copy.waiting_since >= PATIENCE

    def is_full(self, owner: DeclaredName) -> bool:
        """Return whether too many copies of an owner wait, and SQS is not away: an outage ends no copy."""
        self._store(owner)
        return self._seen[owner][1] >= MOST_WAITING and self._is_sqs_there()

    def count(self, copies: Iterable[Copy], change: int) -> None:
        """Count copies that were put into a retry queue, with the change 1, or left one, with -1."""
        for copy in copies:
            self._moved[copy.owner] += change

    def store(self) -> None:
        """Store the counts of each owner that has many or was not stored lately."""
        for owner in list(self._moved):
            self._store(owner)

    def _store(self, owner: DeclaredName) -> None:
        moved, now = self._moved[owner], self.now()
        if owner in self._seen and now - self._seen[owner][0] < STORED_EVERY and abs(moved) < STORED_TOGETHER:
            return
        self._seen[owner] = now, self.stored.add_waiting(owner, moved, now=now)
        del self._moved[owner]

    def _is_sqs_there(self) -> bool:
        return len(self._taken) == WITNESSES and self.now() - self._taken[0] < LATELY
