"""The kernel of the simulation: virtual time, tasks that change places at every call, and draws that repeat."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from heapq import heappop, heappush
from math import inf
from typing import Any

from greenlet import getcurrent, greenlet

START = datetime(2026, 11, 1, 6, tzinfo=UTC).timestamp()


class Killed(BaseException):
    """Raised at a call of a process that was killed; no code of the product catches it."""


@dataclass(eq=False)
class Process:
    """What is killed together: the tasks of one invocation, or of one client.

    `chain` counts the invocations of each function that led to this one, with itself.
    """

    name: str
    key: str
    sandbox: Any = None
    identity: str = "123456789012"
    chain: Mapping[str, int] = field(default_factory=dict)
    began: float = 0.0
    is_alive: bool = True
    tasks: "list[Task]" = field(default_factory=list)


@dataclass(eq=False)
class Task:
    """One line of execution; `draws` counts its draws, so that each has a key that no other task changes."""

    process: Process
    key: str
    work: Callable[[], object]
    thread: greenlet
    draws: int = 0
    has_begun: bool = False
    is_done: bool = False


@dataclass(frozen=True)
class Rates:
    """The probabilities of faults, of a call or of a message, while faults last."""

    killed_before: float = 0.0
    killed_after: float = 0.0
    lost_response: float = 0.0
    refused: float = 0.0
    refused_often: float = 0.0
    slow: float = 0.0
    duplicate: float = 0.0
    undelete: float = 0.0
    late_counts: float = 0.0
    unknown_queue: float = 0.0
    unprocessed: float = 0.0
    stale: float = 0.0
    conflict: float = 0.0
    short_page: float = 0.0
    lost_sandbox: float = 0.0
    not_invoked: float = 0.0

    def times(self, factor: float) -> "Rates":
        return Rates(**{name: value * factor for name, value in vars(self).items()})


USUAL_RATES = Rates(
    killed_before=0.003,
    killed_after=0.003,
    lost_response=0.003,
    refused=0.004,
    refused_often=0.001,
    slow=0.003,
    duplicate=0.01,
    undelete=0.01,
    late_counts=0.1,
    unknown_queue=0.1,
    unprocessed=0.01,
    stale=0.05,
    conflict=0.004,
    short_page=0.02,
    lost_sandbox=0.02,
    not_invoked=0.01,
)


@dataclass(frozen=True)
class Fault:
    """A fault that came true; its key repeats it."""

    key: str
    kind: str
    at: float


class Kernel:
    """Time, tasks, draws, faults and the story of one run.

    A draw is a hash of the seed and the task's key, so that the absence of one fault leaves the other draws as they
    are. `chosen` limits the faults to those with these keys.
    """

    def __init__(self, seed: int, *, chosen: frozenset[str] | None = None, has_story: bool = False) -> None:
        self.seed = seed
        self.chosen = chosen
        self.now = START
        self.rates = Rates()
        self.faults_end = START
        self.faults: list[Fault] = []
        self.story: list[tuple[float, str, str]] | None = [] if has_story else None
        self.current: Task | None = None
        self.calls = 0
        self.tasks: dict[Task, None] = {}
        self._idle: list[greenlet] = []
        self._turns: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._until = -inf  # of the turns that may run
        self._hub = getcurrent()
        self._seeded = blake2b(f"{seed}/".encode(), digest_size=6)
        self._prefix = f"{seed}/"

    # Time and tasks.

    def at(self, moment: float, turn: Callable[[], None]) -> None:
        """Run a turn of the hub at a moment; turns of one moment keep their order."""
        self._number += 1
        heappush(self._turns, (max(self.now, moment), self._number, turn))

    def after(self, seconds: float, turn: Callable[[], None]) -> None:
        self.at(self.now + seconds, turn)

    def run(self, until: float) -> None:
        """Run turns until a moment, or until none is left."""
        self._until, turns = until, self._turns
        while turns and turns[0][0] <= until:
            self.now, _, turn = heappop(turns)
            turn()
        self.now = max(self.now, until)

    def spawn(self, process: Process, key: str, work: Callable[[], object]) -> Task:
        """Start a task of a process, with its first turn now."""
        task = Task(process, key, work, self._idle.pop() if self._idle else greenlet(self._run_tasks, self._hub))
        process.tasks.append(task)
        self.tasks[task] = None
        self.at(self.now, partial(self.resume, task))
        return task

    def resume(self, task: Task) -> None:
        """Give a task its turn."""
        if task.is_done or not task.process.is_alive:
            return
        self.current = task
        task.thread.switch(task)
        self.current = None

    def pause(self) -> None:
        """End the turn of the current task until it is resumed."""
        task = self.current
        assert task is not None, "only tasks wait"
        self._hub.switch()
        if not task.process.is_alive:
            raise Killed

    def sleep(self, seconds: float) -> None:
        """Let the current task wait; a dead one ends instead."""
        task = self.current
        assert task is not None, "only tasks sleep"
        if not task.process.is_alive:
            raise Killed
        moment = max(self.now + seconds, self.now)
        if moment <= self._until and not (self._turns and self._turns[0][0] <= moment):
            self._number += 1  # as if the task had had the next turn, which is its own
            self.now = moment
            return
        self.at(moment, partial(self.resume, task))
        self.pause()

    def kill(self, process: Process) -> None:
        """End all tasks of a process; the current one ends at its next step."""
        process.is_alive = False
        for task in list(process.tasks):
            if task is not self.current:
                self.at(self.now, partial(self._end, task))

    def _end(self, task: Task) -> None:
        if task.is_done:
            return
        self._throw(task)
        task.is_done = True

    def _throw(self, task: Task) -> None:
        """Raise `Killed` where a task waits; one that has not begun is left out."""
        if task.has_begun:
            self.current = task
            task.thread.throw(Killed)
            self.current = None
        elif task in self.tasks:
            del self.tasks[task]
            self._idle.append(task.thread)

    def _run_tasks(self, task: Task) -> None:
        """Run one task after another in a greenlet, of which to make one takes longer than most turns."""
        while True:
            task.has_begun = True
            self._work(task)
            self._idle.append(task.thread)
            task = self._hub.switch()

    def _work(self, task: Task) -> None:
        try:
            task.work()
        except Killed:
            pass
        finally:
            task.is_done = True
            if task in task.process.tasks:
                task.process.tasks.remove(task)
            self.tasks.pop(task, None)

    def end(self) -> None:
        """End all tasks: what a suspended one holds is never freed."""
        left = list(self.tasks)
        for task in left:
            task.process.is_alive = False
        for task in left:
            while task in self.tasks:  # which may wait for threads while it ends
                self._throw(task)
        for thread in self._idle:
            thread.throw()

    # Draws and faults.

    def draw(self, key: str) -> float:
        """Return the number from 0 to 1 that belongs to a key."""
        seeded = self._seeded.copy()
        seeded.update(key.encode())
        return int(seeded.hexdigest(), 16) / 2**48

    def message_id(self, _queue: Any, _body: str) -> str:
        """Return the id of a new message."""
        return self.uuid()

    def first_of(self, keys: Sequence[str]) -> int:
        """Return which of the visible messages of a queue, by their keys, is received first: usually the oldest."""
        chance = self.draw(keys[0]) if len(keys) > 1 else 1.0
        return int(chance / 0.3 * len(keys)) if chance < 0.3 else 0

    def next_key(self) -> str:
        """Return a new key of the current task, or of the hub."""
        task = self.current
        if task is None:
            self._number += 1
            return f"hub:{self._number}"
        task.draws += 1
        return f"{task.key}:{task.draws}"

    def random(self) -> float:
        return self.draw(self.next_key())

    def number(self, below: int) -> int:
        return int(self.random() * below)

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.random()

    def bytes(self, size: int) -> bytes:
        return blake2b((self._prefix + self.next_key()).encode(), digest_size=min(size, 64)).digest()[:size]

    def uuid(self) -> str:
        digits = self.bytes(16).hex()
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"

    def is_faulty(self, kind: str, probability: float, *, key: str | None = None) -> bool:
        """Return whether a fault happens here and now."""
        if self.now >= self.faults_end or probability <= 0:
            return False
        key = f"{key or self.next_key()}:{kind}"
        happens = key in self.chosen if self.chosen is not None else self.draw(key) < probability
        if happens:
            self.faults.append(Fault(key, kind, self.now))
            self.note(f"FAULT: {kind}")
        return happens

    def note(self, text: str) -> None:
        """Add a line to the story, if it is recorded."""
        if self.story is not None:
            who = self.current.process.name if self.current else "stage"
            self.story.append((self.now, who, text))
