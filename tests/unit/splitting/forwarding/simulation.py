"""A simulation of splits: naive queues, a target, consumers, and functions that may be killed at any step."""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from signalbox.queues import QueueName
from signalbox.splitting.consumers.registry import ConsumedQueue
from signalbox.splitting.control.admission import (
    AdmissionRequest,
    SessionRejected,
    SplitEnding,
    new_split,
    with_session,
)
from signalbox.splitting.control.reconcile import next_actions
from signalbox.splitting.forwarding.use_recorder import UseRecorder
from signalbox.splitting.model.actions import (
    Action,
    CloseQueue,
    CreateQueue,
    DeleteTemporaryQueue,
    ForgetSession,
    ForgetSplit,
    MoveSession,
    MoveSplit,
    RemoveForwarding,
    ReturnMessages,
    StartForwarding,
    StopForwarding,
    SwitchTarget,
    SwitchTargetBack,
    apply_change,
)
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import (
    Forwarder,
    ForwardingState,
    ObservedState,
    Sample,
    TargetState,
    TemporaryQueue,
    Timings,
)
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import (
    Split,
    ended,
    with_heartbeats,
)
from signalbox.splitting.model.target import Target
from signalbox.splitting.queues.names import QueueNames
from tests.fakes.splitting import MemoryQueueUses
from tests.unit.splitting.forwarding.naive_queues import START, VISIBILITY, Entry, Queue
from tests.unit.splitting.forwarding.simulated_messages import Arrival, Messages, config, decided

STANDARD, FIFO = QueueName("memes"), QueueName("orders.fifo")
ORIGINALS = (STANDARD, FIFO)
FUNCTION_TIMEOUT = 10
MEANWHILE = 0.3  # the odds of calls of the forwarding function between two actions
STALE = 5  # samples, a second apart; less than `empty_for`, as on AWS
TIMINGS = Timings(
    settle=timedelta(seconds=FUNCTION_TIMEOUT + 1),
    empty_for=timedelta(seconds=6),
    heartbeat=timedelta(seconds=60),
)


class Killed(Exception):
    """Raised where the function is killed."""


@dataclass
class Invocation:
    """A call of the forwarding function, with the record as it was at its start."""

    original: QueueName
    split: Split
    entries: list[Entry]
    began: float
    recorder: UseRecorder


class Simulation:
    def __init__(self, *, drain_timeout: timedelta | None = None) -> None:
        self.seconds = 0.0
        self.drain_timeout = drain_timeout
        self.queues = {name: Queue(name.endswith(".fifo"), 0.0) for name in ORIGINALS}
        self.reads = {name: name for name in ORIGINALS}
        self.forwarders: dict[QueueName, Forwarder] = {}
        self.split: Split | None = None
        self.colors: dict[QueueName, str] = {}
        self.owners: dict[QueueName, str] = {}
        self.sent: dict[int, Entry] = {}
        self.consumed: list[tuple[int, str]] = []
        self.copies: list[tuple[int, str]] = []
        self.dead: list[int] = []
        self.arrivals: list[Arrival] = []
        self.first_return: dict[QueueName, int] = {}
        self.switches = 0
        self.switches_back = 0
        self.splits = 0
        self.gone: set[str] = set()
        self.invocations: list[Invocation] = []
        self.unfinished: dict[QueueName, tuple[datetime, ...]] = {}
        self.stops: dict[QueueName, datetime] = {}
        self.uses = MemoryQueueUses()
        self.fuse: int | None = None
        self.chance: Random | None = None
        self.risk = 0.0
        self.numbers = itertools.count()
        self._random_parts = (f"{number:012d}" for number in itertools.count())

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.seconds)

    def burn(self) -> None:
        """Raise `Killed` if the fuse has burnt down, or by chance."""
        if self.chance is not None and self.chance.random() < self.risk:
            raise Killed
        if self.fuse is not None:
            if self.fuse == 0:
                self.fuse = None
                raise Killed
            self.fuse -= 1

    def killed_after(self, steps: int | None, work: Callable[[], None]) -> None:
        self.fuse = steps
        with contextlib.suppress(Killed):
            work()
        self.fuse = None

    def send(self, original: QueueName, *, color: str, group: str = "g") -> int:
        key = len(self.sent)
        entry = Entry(key, color, group, f"d{key}", f"{original}-{key}")
        self.sent[key] = entry
        self.queues[original].send(entry)
        return key

    def start(self, session: str, *, color: str, mode: str = "steal") -> None:
        request = AdmissionRequest(SessionId(session), f"owner of {session}", f"{color} {mode}", config(color, mode))
        names = QueueNames()
        try:
            split = self.split or new_split(
                Target.parse("lambda/meme-app"),
                tuple(ConsumedQueue(QueueId(name), name, timedelta(seconds=VISIBILITY)) for name in ORIGINALS),
                names=names,
                random_parts=self._random_parts,
                now=self.now,
                switch_timeout=timedelta(seconds=120),
                drain_timeout=self.drain_timeout,
            )
            split = with_session(split, request, names=names, random_parts=self._random_parts, now=self.now)
        except (SplitEnding, SessionRejected):
            return
        self.gone.discard(session)
        self.splits += self.split is None
        self.split = split

    def stop(self, session: str) -> None:
        if self.split:
            self.split = ended(self.split, SessionId(session), reason="stopped", now=self.now)

    def lose_laptop(self, session: str) -> None:
        """Stop a session's consumer and its heartbeats."""
        self.gone.add(session)

    def tick(self, seconds: float) -> None:
        for _ in range(max(1, int(seconds))):
            self.seconds += seconds / max(1, int(seconds))
            for session in self.split.live if self.split else ():
                if session.session_id not in self.gone:
                    self.split = with_heartbeats(self.split, {session.session_id: self.now})
            for name, forwarder in list(self.forwarders.items()):
                settled = {ForwardingState.STARTING: ForwardingState.ON, ForwardingState.STOPPING: ForwardingState.OFF}
                if forwarder.state in settled:
                    self.forwarders[name] = Forwarder(settled[forwarder.state], self.now)
            for queue in self.queues.values():
                waiting = [one for one in queue.entries if one.invisible_until <= self.seconds]
                queue.counted = [*queue.counted[-STALE:], (len(waiting), len(queue.entries) - len(waiting))]
                (seen, _), (_, in_flight) = self._stale(queue.counted), self._stale(queue.counted)
                queue.samples = [*queue.samples[-99:], Sample(self.now, seen, in_flight)]
            self._poll()

    def _stale(self, counted: list[tuple[int, int]]) -> tuple[int, int]:
        """Return one of the newest counts of a queue: each counter of SQS may be old on its own."""
        return counted[-1] if self.chance is None else self.chance.choice(counted)

    def _poll(self) -> None:
        """Lambda polls without a pause while it forwards."""
        for original in ORIGINALS:
            if self.split and self.forwarders.get(original, Forwarder()).state is ForwardingState.ON:
                entries = self.queues[original].receive(10, now=self.seconds)
                if entries:
                    self.invoke(self._invocation(original, self.split, entries))

    def observed(self) -> ObservedState:
        reading = {read == original for original, read in self.reads.items()}
        target = TargetState.MIXED if len(reading) > 1 else TargetState.ORIGINAL
        if reading == {False}:
            target = TargetState.TEMPORARY
        uses = self.uses.of(self.queues)
        temporary = {
            name: TemporaryQueue(START + timedelta(seconds=queue.created), tuple(queue.samples), uses[name])
            for name, queue in self.queues.items()
            if name not in ORIGINALS
        }
        forwarders = {
            name: replace(one, unfinished=self.unfinished.get(name, ()), stop_requested_at=self.stops.get(name))
            for name, one in self.forwarders.items()
        }
        return ObservedState(target, forwarders, temporary)

    def control(self) -> tuple[Action, ...]:
        """Execute the next actions, until done or killed."""
        if self.split is None:
            return ()
        actions = next_actions(self.split, self.observed(), now=self.now, timings=TIMINGS)
        for action in actions:
            self.burn()
            if self.chance is not None and self.chance.random() < MEANWHILE:
                self._poll()
            self.carry_out(action)
        return actions

    def carry_out(self, action: Action) -> None:  # noqa: C901 - one line for each kind of action
        assert self.split is not None
        match action:
            case MoveSession() | ForgetSession() | MoveSplit() | ForgetSplit():
                self.split = apply_change(self.split, action, now=self.now)
            case CreateQueue(name, original):
                self.queues.setdefault(name, Queue(original.endswith(".fifo"), self.seconds))
            case CloseQueue(name, _, seen):
                self.uses.close(name, seen=seen, now=self.now)
            case DeleteTemporaryQueue(name):
                self.queues.pop(name, None)
            case SwitchTarget():
                self._switch({queue.original: queue.deployed for queue in self.split.queues})
                self.switches += 1
            case SwitchTargetBack():
                self._switch({queue.original: queue.original for queue in self.split.queues})
                self.switches_back += 1
            case StartForwarding(original):
                self.forwarders[original] = Forwarder(ForwardingState.STARTING, self.now)
            case StopForwarding(original):
                self.stops[original] = self.now
                self.forwarders[original] = Forwarder(ForwardingState.STOPPING, self.now)
            case RemoveForwarding(original):
                del self.forwarders[original]
            case ReturnMessages(name, original, to_original):
                Messages(self).give_back(name, original, to_original=to_original)

    def _switch(self, reads: dict[QueueName, QueueName]) -> None:
        for original, name in reads.items():
            self.burn()
            assert name in self.queues, "the target must never read from a queue that is not there"
            self.reads[original] = name

    def begin_forwarding(self, original: QueueName) -> None:
        """Lambda calls the forwarding function, which receives messages and reads the record."""
        state = self.forwarders.get(original, Forwarder()).state
        if self.split and state in (ForwardingState.STARTING, ForwardingState.ON, ForwardingState.STOPPING):
            entries = self.queues[original].receive(10, now=self.seconds)
            if entries:
                self.invocations.append(self._invocation(original, self.split, entries))

    def finish_forwarding(self) -> None:
        """The oldest call continues, unless its timeout is over."""
        if not self.invocations:
            return
        self.invoke(self.invocations.pop(0))

    def invoke(self, work: Invocation) -> None:
        with contextlib.suppress(Killed):
            self._invoke(work)

    def recorder(self) -> UseRecorder:
        """Return the recorder of a call that begins now, which asks once for each queue."""
        began = self.now
        return UseRecorder(self.uses, lambda: began)

    def _invocation(self, original: QueueName, split: Split, entries: list[Entry]) -> Invocation:
        """Return a call that has decided on its messages, and sends them when it is finished."""
        call = Invocation(original, split, entries, self.seconds, self.recorder())
        for entry in entries:
            message = entry.message(is_fifo=original.endswith(".fifo"))
            assert message.first_received_at is not None
            sessions = split.routed(original, received_at=message.first_received_at)
            decided(message, sessions, original, call.recorder)
        return call

    def _invoke(self, work: Invocation) -> None:
        if self.seconds - work.began > FUNCTION_TIMEOUT:
            return
        is_closing = work.split.is_closing(work.original)
        before = self.unfinished.get(work.original, ())
        self.unfinished[work.original] = (*before, self.now) if is_closing else before
        Messages(self).forward(
            work.original,
            work.original,
            work.entries,
            split=work.split,
            routed=lambda at: work.split.routed(work.original, received_at=at),
            how="forward",
            uses=work.recorder,
        )
        self.unfinished[work.original] = before

    def consume(self, consumer: str, original: QueueName, *, crash: bool = False) -> None:
        """Receive a message from the consumer's queue, and delete it unless the consumer crashes."""
        name = self._read_by(consumer, original)
        if name is None or name not in self.queues:
            return
        for entry in self.queues[name].receive(1, now=self.seconds):
            if not crash:
                self.queues[name].delete(entry)
                (self.copies if self._is_copy(consumer) else self.consumed).append((entry.key, consumer))

    def _read_by(self, consumer: str, original: QueueName) -> QueueName | None:
        if consumer == "deployed":
            return self.reads[original]
        session = self.split.session(SessionId(consumer)) if self.split else None
        return session.queues[original] if session and consumer not in self.gone else None

    def _is_copy(self, consumer: str) -> bool:
        session = self.split.session(SessionId(consumer)) if self.split else None
        return session is not None and session.config.endswith("mirror")

    def run_to_the_end(self, sessions: Iterator[str]) -> None:
        """Stop all sessions, and run until nothing is left to do."""
        for session in sessions:
            self.stop(session)
        for _ in range(500):
            if self.split is None and not any(queue.entries for queue in self.queues.values()):
                return
            self.tick(3)
            with contextlib.suppress(Killed):
                self.control()
            for original in ORIGINALS:
                for _ in range(10):
                    self.consume("deployed", original)
        raise AssertionError(f"the split does not end: {self.split}")
