"""The questions that decide the next actions of a split, answered from its record and its observed state."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from signalbox.queues import QueueName
from signalbox.splitting.model.observed_state import (
    Forwarder,
    ForwardingState,
    ObservedState,
    TargetState,
    TemporaryQueue,
    Timings,
    has_none_waiting,
    is_empty,
)
from signalbox.splitting.model.split import Split, SplitQueue, SplitSession

RECEIVES = 3  # of a message that killed calls leave, most of which come to nothing


@dataclass(frozen=True, slots=True)
class ObservedSplit:
    """A split, what was observed of its queues and target, and the time at which it is asked."""

    split: Split
    observed: ObservedState
    now: datetime
    timings: Timings

    def deployed(self) -> tuple[QueueName, ...]:
        """Return the names of the temporary queues of the target."""
        return tuple(queue.deployed for queue in self.split.queues)

    def is_any_there(self, names: Iterable[QueueName]) -> bool:
        """Return whether one of these queues exists."""
        return any(name in self.observed.queues for name in names)

    def are_usable(self, names: Iterable[QueueName]) -> bool:
        """Return whether all of these queues exist, for long enough to be used."""
        found = [self.observed.queues.get(name) for name in names]
        return all(one is not None and self.now - one.created_at >= self.timings.usable_after for one in found)

    def is_empty(self, name: QueueName, since: datetime) -> bool:
        """Return whether a queue that receives nothing after `since` is empty; true for one that does not exist."""
        found = self.observed.queues.get(name)
        return found is None or is_empty(found, since=since, timings=self.timings)

    def is_on(self, queue: SplitQueue) -> bool:
        """Return whether a queue's forwarding runs."""
        return self.observed.forwarder(queue.original).state is ForwardingState.ON

    def is_still(self, queue: SplitQueue) -> bool:
        """Return whether a queue's forwarding is off or absent."""
        return self.observed.forwarder(queue.original).state in (ForwardingState.OFF, ForwardingState.ABSENT)

    def is_removed(self) -> bool:
        """Return whether all forwarding is absent."""
        return all(
            self.observed.forwarder(queue.original).state is ForwardingState.ABSENT for queue in self.split.queues
        )

    def has_settled(self, forwarder: Forwarder) -> bool:
        """Return whether a forwarder is in its state for long enough that all calls know it."""
        return forwarder.since is not None and self.now - forwarder.since >= self.timings.settle

    def is_clean(self, queue: SplitQueue) -> bool:
        """Return whether a FIFO queue's forwarding is off and all its calls have finished; true for standard queues."""
        forwarder = self.observed.forwarder(queue.original)
        if not queue.is_fifo or forwarder.state is ForwardingState.ABSENT:
            return True
        return self.is_still(queue) and self.has_settled(forwarder) and not self._was_early(queue, forwarder)

    def is_unread(self, queue: SplitQueue, session: SplitSession) -> bool:
        """Return whether no call forwards messages of a queue by an older record.

        It matters for FIFO queues, and for queues of which the deployed consumer is to get nothing.
        """
        if not queue.is_fifo and queue.original not in session.exclusive:
            return True
        forwarder = self.observed.forwarder(queue.original)
        if any(one.has_matched for one in self.split.sessions):
            return False
        return forwarder.state is ForwardingState.ABSENT or (self.is_still(queue) and self.has_settled(forwarder))

    def has_drained(self) -> bool:
        """Return whether nothing remains for the target in its temporary queues, or the time for that is over."""
        if self.observed.target in (TargetState.ORIGINAL, TargetState.GONE):
            return True  # nothing reads the temporary queues any more, so the rest is returned
        timeout = self.split.drain_timeout
        if timeout is not None and self.now - self.split.since >= timeout:
            return True
        return all(map(self._is_drained, self.split.queues))

    def _is_drained(self, queue: SplitQueue) -> bool:
        """Return whether the target has emptied its temporary queue.

        A few samples are enough for a standard queue, and what is in flight is not waited for, since new messages would
        wait for the longest job: what comes back later is returned to the original. In a FIFO queue it would be behind
        newer messages there.
        """
        found = self.observed.queues.get(queue.deployed)
        if found is None:
            return True
        if not queue.is_fifo:
            return has_none_waiting(found, since=self.split.since, timings=self.timings)
        forwarder = self.observed.forwarder(queue.original)
        stopped = forwarder.since if forwarder.state is ForwardingState.OFF else None
        settled = min(self.split.since, stopped or self.split.since) + self.timings.settle
        if settled > self.now:
            return False
        since = self.quiet_since(found, settled)
        return found.is_unused or self.is_empty(queue.deployed, since)

    def quiet_since(self, found: TemporaryQueue, since: datetime) -> datetime:
        """Return from when on a queue has received nothing, if it can receive nothing after `since`."""
        if found.use is None or found.use.until is None:
            return since
        return min(since, found.use.until + self.timings.settle)

    def left_alone_since(self, session: SplitSession, queue: SplitQueue) -> datetime | None:
        """Return from when on an ending session's queue receives nothing; None while it still may."""
        if not session.has_matched:
            return session.since
        if not (queue.is_fifo and session.may_own(queue.original)):
            settled = session.since + self.timings.settle
            return settled if settled <= self.now else None
        if queue.original in session.released:
            return session.since
        others = [one for one in self.split.closers(queue.original) if self.split.ends_before(one, session)]
        if not self.is_clean(queue) or self.is_any_there(one.queues[queue.original] for one in others):
            return None
        return max(
            session.since, (self.observed.forwarder(queue.original).since or session.since) + self.timings.settle
        )

    def is_held(self, name: QueueName, queue: SplitQueue, since: datetime) -> bool:
        """Return whether a consumer holds messages of a queue for longer than messages of the original are hidden.

        `since` is when the queue received nothing any more.
        """
        found = self.observed.queues.get(name)
        held = found.held_since if found else None
        return held is not None and self.now - max(held, since) >= queue.visibility + self.timings.empty_for

    def must_run(self, queue: SplitQueue, forwarder: Forwarder) -> bool:
        """Return whether a queue's stopped forwarding is needed."""
        if self.split.is_closing(queue.original):
            return self.has_settled(forwarder) and self._was_early(queue, forwarder)
        return any(session.has_matched for session in self.split.sessions)

    def may_stop(self, queue: SplitQueue, forwarder: Forwarder) -> bool:
        """Return whether a queue's running forwarding is not needed any more."""
        if not any(session.has_matched for session in self.split.sessions):
            return True
        if not self.split.is_closing(queue.original) or forwarder.since is None:
            return False
        # By then, messages that a function left in flight before they were recorded have been sent again.
        unrecorded = self.split.closing_since(queue.original) + queue.visibility + 2 * self.timings.settle
        killed = (began for began in forwarder.unfinished if began + self.timings.settle <= self.now)
        given_up = (self._given_up(queue, began) for began in killed)
        return self.now >= max([unrecorded, forwarder.since + 2 * self.timings.settle, *given_up])

    def _was_early(self, queue: SplitQueue, forwarder: Forwarder) -> bool:
        """Return whether forwarding stopped although a message of a killed call was still to be sent again.

        `split` stops it without a request when it cannot forward messages.
        """
        stop = forwarder.stop_requested_at
        return stop is None or any(stop < self._given_up(queue, began) for began in forwarder.unfinished)

    def _given_up(self, queue: SplitQueue, began: datetime) -> datetime:
        """Return when an unfinished message is not waited for any more: it is gone, for example a dead letter."""
        return began + RECEIVES * (queue.visibility + self.timings.settle)
