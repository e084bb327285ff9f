"""The refusals of existing queues: which failures of a call their owners cause, and when refused copies end."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.names import is_existing
from signalbox.exchange.routing.ports import QueueRefusals
from signalbox.queues import QueueName
from signalbox.sending import SentBatch

# The owner of an existing queue can let it refuse copies for ever, and SQS delivers nothing more of a retry queue with
# 120,000 messages in flight, or behind 120,000 of other groups. New permissions and keys take minutes.
PATIENCE = timedelta(minutes=15)
MOST_WAITING = 50_000
# A retry queue is full of copies of queues that have refused them for longer, and only these end. In this time ten
# ordered keys are 73,000 copies, fewer than the 87,000 until SQS has counted MOST_WAITING.
SPARED_FOR = timedelta(minutes=2)
# A queue that refused a copy is asked again within two minutes, so a longer pause begins a new series of refusals. A
# taken copy begins none: the owner of a queue at its limit could let one through.
REMEMBERED_FOR = timedelta(minutes=5)
RECORDED_EVERY = timedelta(minutes=1)
LOOK_EVERY = timedelta(seconds=10)
# SQS throttles a queue, and is not away, if it took this many calls to queues of the stage lately without one failure.
WITNESSES, LATELY = 20, timedelta(minutes=5)


@dataclass(slots=True)
class Refusals:
    """The refusals that a function instance sees. `waiting` returns about how many messages a queue has."""

    stored: QueueRefusals
    waiting: Callable[[QueueName], int]
    now: Callable[[], datetime]
    _taken: deque[datetime] = field(default_factory=lambda: deque(maxlen=WITNESSES), init=False)
    _recorded: dict[DeclaredName, datetime] = field(default_factory=dict, init=False)
    _seen: dict[str, tuple[datetime, bool]] = field(default_factory=dict, init=False)

    def witness(self, sent: SentBatch) -> None:
        """Note whether SQS took a call to a queue of the stage; a queue that is missing or denied says nothing."""
        if all(reason is not None for _, reason in sent.failed):
            self._taken.append(self.now())
        elif not (sent.is_queue_missing or sent.is_denied):
            self._taken.clear()

    def is_refused(self, queue: DeclaredName, sent: SentBatch) -> bool:
        """Return whether the owner of an existing queue causes that it took no copy; record it if so.

        Its policy or its key denies the call, or SQS throttles this queue and no other: an outage is no refusal.
        """
        if not is_existing(queue) or not (sent.is_denied or (sent.is_throttled and self._others_are_taken())):
            return False
        if self.now() - self._recorded.get(queue, self.now() - RECORDED_EVERY) >= RECORDED_EVERY:
            self._recorded[queue] = self.now()
            self.stored.record_refusal(queue, at=self._recorded[queue], until=self._recorded[queue] + REMEMBERED_FOR)
        return True

    def ends(self, copy: Copy, retry_queue: QueueName) -> bool:
        """Return whether a refused copy has waited long enough, or too many wait and its queue has refused for long."""
        has_waited = copy.waiting_since is not None and self.now() - copy.waiting_since >= PATIENCE
        return has_waited or self._fills(copy.queue, retry_queue)

    def ends_untried(self, copy: Copy, retry_queue: QueueName) -> bool:
        """Return whether a copy that must follow others through a retry queue ends now.

        Its queue has refused copies for long, and too many wait.
        """
        return is_existing(copy.queue) and self._fills(copy.queue, retry_queue)

    def _others_are_taken(self) -> bool:
        return len(self._taken) == WITNESSES and self.now() - self._taken[0] < LATELY

    def _fills(self, queue: DeclaredName, retry_queue: QueueName) -> bool:
        return self._look(f"full {retry_queue}", lambda: self.waiting(retry_queue) >= MOST_WAITING) and self._look(
            f"refused {queue}", lambda: self._has_refused_long(queue)
        )

    def _has_refused_long(self, queue: DeclaredName) -> bool:
        since = self.stored.refused_since(queue, now=self.now())
        return since is not None and self.now() - since >= SPARED_FOR

    def _look(self, name: str, is_so: Callable[[], bool]) -> bool:
        at, found = self._seen.get(name, (None, False))
        if at is None or self.now() - at >= LOOK_EVERY:
            found = is_so()
            self._seen[name] = self.now(), found
        return found
