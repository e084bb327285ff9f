"""The reconcile function: the next actions of a split from its record and its observed state.

It considers no earlier action, so a reconcile run that was killed anywhere can be repeated.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from signalbox.queues import QueueName
from signalbox.splitting.control.observed_split import ObservedSplit
from signalbox.splitting.model.actions import (
    Action,
    CloseQueue,
    CreateQueue,
    DeleteTemporaryQueue,
    Effect,
    EndClaims,
    ForgetSession,
    ForgetSplit,
    MoveSession,
    MoveSplit,
    ReleaseQueue,
    RemoveForwarding,
    ReplayKept,
    ReturnMessages,
    StartForwarding,
    StopForwarding,
    SwitchTarget,
    SwitchTargetBack,
)
from signalbox.splitting.model.observed_state import (
    ForwardingState,
    ObservedState,
    TargetState,
    Timings,
)
from signalbox.splitting.model.split import Phase, Split, SplitQueue, SplitSession, Stage


def next_actions(split: Split, observed: ObservedState, *, now: datetime, timings: Timings) -> tuple[Action, ...]:
    """Return the actions that are due now, in order; empty when the split is at rest or waiting.

    Replays are last, since they take seconds and change the record.
    """
    actions = _Step(split, observed, now, timings).actions()
    return tuple(sorted(actions, key=lambda action: isinstance(action, ReplayKept)))


def is_at_rest(split: Split) -> bool:
    """Return whether nothing is under way: all sessions are ready, and only a command or time can change that."""
    is_used = split.stage is Stage.SPLIT and bool(split.sessions)  # a split without sessions is about to be undone
    return is_used and all(session.phase is Phase.READY for session in split.sessions)


def after_refusal(split: Split, effect: Effect, *, reason: str) -> tuple[MoveSession, ...]:
    """Return the changes after a permanently refused effect: the sessions that need it end, with the reason.

    Effects that undo a split end nothing: they are retried until they succeed, and an alarm reports them.
    """
    if isinstance(effect, CreateQueue) and effect.session_id is not None:
        return tuple(_end(one, reason) for one in split.live if one.session_id == effect.session_id)
    if isinstance(effect, CreateQueue | SwitchTarget | StartForwarding):
        return tuple(_end(session, reason) for session in split.live)
    return ()


def _end(session: SplitSession, reason: str) -> MoveSession:
    return MoveSession(session.session_id, Phase.ENDING, reason)


class _Step(ObservedSplit):
    """One decision on a split: a method for each stage, and the rules that stages share."""

    __slots__ = ()

    def actions(self) -> Iterator[Action]:
        ending = tuple(self._expired())
        yield from ending
        if ending:
            return  # these change everything else; the next pass sees the new record
        yield from {
            Stage.STARTING: self._starting,
            Stage.SPLIT: self._split,
            Stage.DRAINING: self._draining,
            Stage.RESTORING: self._restoring,
            Stage.CLEANING: self._cleaning,
        }[self.split.stage]()

    def _expired(self) -> Iterator[MoveSession]:
        for session in self.split.live:
            if self.now - session.heartbeat_at > self.timings.heartbeat:
                yield _end(session, f"no sign of life since {session.heartbeat_at.isoformat(timespec='seconds')}")
            elif self.observed.target is TargetState.GONE:
                yield _end(session, f"target {self.split.target} does not exist any more")
            elif self._is_late(session):
                seconds = self.split.switch_timeout.total_seconds()
                yield _end(session, f"{self._missing(session)} after {seconds:g} s")

    def _is_late(self, session: SplitSession) -> bool:
        """Return whether a session waits for its queues or for the target for too long; a replay may take any time."""
        if session.phase is not Phase.STARTING or (session.is_replaying and self.are_usable(session.queues.values())):
            return False
        replayed_at = session.replay.finished_at if session.replay else None
        began = max(session.since, self.split.since, replayed_at or session.since)
        return self.now - began > self.split.switch_timeout

    def _missing(self, session: SplitSession) -> str:
        if not self.are_usable((*self.deployed(), *session.queues.values())):
            return "its temporary queues were not there"
        return f"target {self.split.target} did not read from its temporary queues"

    def _starting(self) -> Iterator[Action]:
        yield from self._sessions()
        if not self.split.sessions:
            yield MoveSplit(Stage.RESTORING)
        if not self.split.live:
            return
        yield from self._create_deployed()
        if all(session.is_replaying for session in self.split.live):
            return  # the target reads its originals until a session is to get more than kept messages
        if self.are_usable(self.deployed()):
            yield from self._switch()
            if self.observed.target is TargetState.TEMPORARY:
                yield MoveSplit(Stage.SPLIT)

    def _split(self) -> Iterator[Action]:
        yield from self._sessions()
        if self.split.live:
            yield from self._create_deployed()
            yield from self._switch()  # again, if a deployment reset the target
        for queue in self.split.queues:
            yield from self._forward(queue)
        if not self.split.sessions and all(map(self.is_still, self.split.queues)):
            yield MoveSplit(Stage.DRAINING)

    def _draining(self) -> Iterator[Action]:
        if self.split.sessions:
            yield MoveSplit(Stage.SPLIT)
            return
        yield from self._remove_forwarding()
        if self.has_drained():
            yield MoveSplit(Stage.RESTORING)

    def _restoring(self) -> Iterator[Action]:
        yield from self._remove_forwarding()
        if self.observed.target in (TargetState.TEMPORARY, TargetState.MIXED):
            yield SwitchTargetBack()
        elif self.observed.target is not TargetState.CHANGING and self.is_removed():
            yield MoveSplit(Stage.CLEANING)

    def _cleaning(self) -> Iterator[Action]:
        for queue in self.split.queues:
            found = self.observed.queues.get(queue.deployed)
            if found is not None:
                is_used = self.split.was_split and not found.is_unused
                since = self.quiet_since(found, self.split.since)
                yield from self._clear(queue.deployed, queue, since=since, is_used=is_used, to_original=True)
        if not self.is_any_there(self.deployed()):
            yield ForgetSplit()

    def _sessions(self) -> Iterator[Action]:
        for session in self.split.sessions:
            if session.phase is Phase.ENDING:
                yield from self._finish(session)
                continue
            pairs = session.queues.items()
            yield from self._create(CreateQueue(name, original, session.session_id) for original, name in pairs)
            yield from self._proceed(session)

    def _proceed(self, session: SplitSession) -> Iterator[Action]:
        if session.phase is Phase.STARTING and session.is_replaying:
            if self.are_usable(session.queues.values()):
                yield ReplayKept(session.session_id)
            return
        is_split = self.split.stage is Stage.SPLIT
        if session.phase is Phase.STARTING and is_split and self.are_usable(session.queues.values()):
            is_unread = all(self.is_unread(queue, session) for queue in self.split.queues)
            settle = timedelta(0) if is_unread else self.timings.settle
            yield MoveSession(session.session_id, Phase.MATCHING, effective_at=self.now + settle)
        is_effective = session.effective_at is not None and session.effective_at <= self.now
        if session.phase is Phase.MATCHING and is_effective and all(map(self.is_on, self.split.queues)):
            yield MoveSession(session.session_id, Phase.READY)

    def _finish(self, session: SplitSession) -> Iterator[Action]:
        for queue in self.split.queues:
            yield from self._empty(session, queue)
        is_last = not self.split.live
        if is_last and session.released and not self.is_any_there(session.queues.values()):
            yield EndClaims(session.session_id)
            return
        if is_last and session.has_matched and not all(map(self.is_clean, self.split.queues)):
            return  # the record must not change before forwarding has stopped for good
        if not self.is_any_there(session.queues.values()):
            yield ForgetSession(session.session_id)

    def _empty(self, session: SplitSession, queue: SplitQueue) -> Iterator[Action]:
        name, is_used = session.queues[queue.original], session.may_own(queue.original)
        since = self.left_alone_since(session, queue)
        found = self.observed.queues.get(name)
        if found is not None and since is not None:
            since = self.quiet_since(found, since)
        use = found.use if found is not None and is_used else None
        if found is not None and use is not None and use.is_closed:
            is_used = not found.is_unused
            since = self.quiet_since(found, since or self.now + self.timings.settle) if is_used else self.now
        elif use is not None and (use.until is None or not queue.is_fifo):
            # What a killed call sent to a FIFO queue is sent again: to the same queue, which must be open then.
            yield CloseQueue(name, session.session_id, use)
        if since is None:
            return
        yield from self._clear(name, queue, since=since, is_used=is_used)
        if queue.is_fifo and is_used and queue.original not in session.released and self.is_held(name, queue, since):
            yield ReleaseQueue(session.session_id, queue.original)

    def _clear(
        self, name: QueueName, queue: SplitQueue, *, since: datetime, is_used: bool, to_original: bool = False
    ) -> Iterator[Action]:
        found = self.observed.queues.get(name)
        if found is None:
            return
        if not is_used or self.is_empty(name, since):
            yield DeleteTemporaryQueue(name)
        elif found.has_waiting:
            yield ReturnMessages(name, queue.original, to_original=to_original)

    def _forward(self, queue: SplitQueue) -> Iterator[Action]:
        forwarder = self.observed.forwarder(queue.original)
        if self.is_still(queue):
            if self.must_run(queue, forwarder):
                yield StartForwarding(queue.original)
        elif forwarder.state is not ForwardingState.STOPPING and self.may_stop(queue, forwarder):
            yield StopForwarding(queue.original)

    def _switch(self) -> Iterator[Action]:
        if self.observed.target in (TargetState.ORIGINAL, TargetState.MIXED):
            yield SwitchTarget()

    def _remove_forwarding(self) -> Iterator[Action]:
        for queue in self.split.queues:
            forwarder = self.observed.forwarder(queue.original)
            if forwarder.state in (ForwardingState.ON, ForwardingState.STARTING):
                yield StopForwarding(queue.original)
            elif forwarder.state is ForwardingState.OFF and self.has_settled(forwarder):
                yield RemoveForwarding(queue.original)

    def _create_deployed(self) -> Iterator[Action]:
        yield from self._create(CreateQueue(queue.deployed, queue.original) for queue in self.split.queues)

    def _create(self, wanted: Iterable[CreateQueue]) -> Iterator[Action]:
        yield from (action for action in wanted if action.name not in self.observed.queues)
