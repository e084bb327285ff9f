"""Search of every order of steps of a small scope, with one crash and one duplicate anywhere.

Calls take no time: what is due at one moment happens in any order, and time goes on when nothing is left to do. Where
steps commute, one order is enough (`accesses.py`). The search repeats runs with one other choice each.
A run ends at a state that another run had: what is stored, what is due, and the answers that each task got.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from heapq import heappop, heappush
from typing import Any

from tests.simulation.accesses import (
    NONE,
    READS,
    Accesses,
    Learned,
    Node,
    Place,
    accesses,
    conflict,
    of_receipt,
    received,
)
from tests.simulation.calls import Calls
from tests.simulation.connections import CONNECTIONS
from tests.simulation.functions import Failure, Mapping_
from tests.simulation.kernel import START, Fault, Kernel, Process, Task
from tests.simulation.queue import SimulatedQueue
from tests.simulation.services import Answer, Refusal, Request
from tests.simulation.stored import NAMES, canonical, in_order, stored
from tests.simulation.world import World

# What would happen within this time happens at once, and a sleep that is not short takes as long at least; moments are
# multiples of the grain.
AT_ONCE, SHORT, GRAIN = 0.5, 0.02, 0.1
CHOICES_OF_A_TURN = 10  # at most
CRASH, DUPLICATE, CUT = "crash", "duplicate", "cut"
TURN, EVERY, MANY = "turn", math.inf, 1000
WORDS = {
    "SendMessage": "sends a message",
    "SendMessageBatch": "sends messages",
    "DeleteMessage": "deletes the message",
    "CreateQueue": "creates a queue",
    "DeleteQueue": "deletes a queue",
    "PutParameter": "writes the parameter",
}
"""What a call does, on the pages."""
DUPLICATES = ("a message is received twice", "a message comes back", "the mapping does not delete")


Step = tuple[str, str, str]
"""A state of the protocol, what changes it, and the state after it."""


class Seen(BaseException):
    """Raised in a run that has reached a state of another run."""


@dataclass(frozen=True, eq=False, slots=True)
class Turn:
    """What is due at a moment: a turn of a task, or of the stage for an agent; `subject` is the task or the part."""

    at: float
    agent: str
    name: str
    subject: Any
    values: tuple[Any, ...]
    call: Callable[[], None]

    def is_same(self, other: "Turn") -> bool:
        return self.subject is other.subject and self.values == other.values

    @property
    def is_over(self) -> bool:
        """Return whether it has no effect any more."""
        if self.name == "resume":
            return self.subject.is_done or not self.subject.process.is_alive
        if self.name == "_time_out":
            return bool(self.subject.is_over)
        if self.name == "_give_up":
            return self.subject.waiting is None or self.subject.waits != self.values[0]
        return self.name == "_poll" and self.subject._next != self.values[0]


class ExploringKernel(Kernel):
    """A kernel whose order of turns and faults are choices; all else is the same in every run."""

    def __init__(self, search: "Search") -> None:
        super().__init__(0)
        self.changes, _, self.choices = heappop(search.waiting)
        self.search, self.learned = search, search.learned
        self.left = Counter(search.faults)
        self.taken: list[int] = []
        self.turns: list[Turn] = []
        self.pending: dict[str, Accesses] = {}
        self.histories: dict[Task, str] = {}
        self.made: Counter[str] = Counter()
        self.agent = "stage"
        self.is_changed = False
        self.over: set[str] = set()
        self.noted: Mapping[str, str] = {}
        self.world: Any = None

    # Turns.

    def at(self, moment: float, call: Callable[[], None]) -> None:
        if moment < self.now + AT_ONCE:
            moment = self.now
        else:
            moment = round(math.ceil((moment - START - 0.006) / GRAIN) * GRAIN, 1) + START
        turn = self._turn(moment, call)
        if moment == self.now:
            self._lead_to(turn.agent)
        if turn.name != "_poll" or not any(
            one.subject is turn.subject and one.values == turn.values for one in self.turns
        ):
            self.turns.append(turn)

    def _lead_to(self, agent: str) -> None:
        """Note that the current agent starts or wakes another one, also if that one is awake already."""
        if agent != self.agent and not self.is_repeated:
            self.learned.follow(self.node(self.agent), self.node(agent))

    def _turn(self, at: float, call: Any) -> Turn:
        made, values = (call.func, call.args) if isinstance(call, partial) else (call, ())
        subject, name, agent = getattr(made, "__self__", None), made.__name__, self.agent
        if subject is self:
            subject, agent = values[0], values[0].key
        elif name in ("begin", "_time_out"):
            agent = subject.process.key
        elif name == "_changed":
            agent = "change of a mapping"
        elif name == "_poll":
            agent = f"poll of {subject.queue.name} {max(self.now, values[0]) - START:.1f}"
        elif isinstance(subject, Mapping_):
            agent = "end of " + "+".join(values[1])
        return Turn(at, agent, name, subject, values, call)

    def node(self, agent: str) -> Node:
        return agent, self.made[agent], self.now

    def footprint(self, turn: Turn) -> Accesses:
        """Return the accesses of a turn; none is done at once, as no other step sees it."""
        if turn.name == "resume":
            return self.pending.get(turn.agent, NONE)
        if turn.name == "_changed":
            return frozenset({(("lambda",), True)})
        if turn.name == "_give_up":
            return frozenset({((CONNECTIONS, turn.subject.connection), True)})
        if not isinstance(turn.subject, Mapping_):
            return NONE
        queue = turn.subject.queue
        if turn.name == "_poll":
            is_ready = turn.subject.is_enabled and any(one.visible_at <= self.now for one in queue.messages.values())
            return received(queue.name) | {(("lambda",), False)} if is_ready else NONE
        return frozenset(place for one in _deleted(*turn.values) for place in of_receipt(self.world, queue.name, one))

    def run(self, until: float) -> None:
        while True:
            ready = [turn for turn in self.turns if turn.at <= self.now and not turn.is_over]
            if ready:
                self._do(self._next(ready))
                continue
            self.turns = [turn for turn in self.turns if turn.at > self.now and not turn.is_over]
            first = min((turn.at for turn in self.turns), default=until + 1)
            if first > until or self.world.is_at_rest():
                break
            self._advance(first)
        self.now = max(self.now, until)

    def _advance(self, moment: float) -> None:
        if self.is_changed and not self.is_repeated and self.now >= self.world.explored_from:
            self.is_changed = False
            self._remember("time")
        before = self.protocol()
        self.now = moment
        self.note_steps(before, "time")

    def _do(self, turn: Turn) -> None:
        self.turns.remove(turn)
        self.agent = turn.agent
        footprint = self.footprint(turn)
        if footprint:
            self.is_changed |= any(is_written for _, is_written in footprint)
            self.learned.access(self.node(turn.agent), footprint)
        self.noted = self.protocol()
        turn.call()
        if not isinstance(turn.subject, Mapping_):
            self.note_steps(self.noted, "the client connects or receives")
        elif turn.name == "_poll":
            self.note_steps(self.noted, "the queue delivers")
        else:
            self.note_steps(self.noted, "the queue deletes")
            self.over.add(turn.agent)

    def _next(self, ready: Sequence[Turn]) -> Turn:
        """Return which turn is next: one that no other sees, or one of the fewest that others do not commute with."""
        local = next((turn for turn in ready if not self.footprint(turn)), None)
        if local is not None:
            return local
        ready = sorted(ready, key=lambda turn: (turn.agent, turn.name))
        if len(ready) == 1:
            return ready[0]
        if self.is_repeated:
            return ready[self._take(self.choices[len(self.taken)])]
        if not self.search.is_reduced:
            return ready[self._choose(TURN, range(len(ready)))]
        options = min((self._dependent(turn, ready) for turn in ready), key=len)
        return ready[self._choose(TURN, [ready.index(turn) for turn in options])]

    def _dependent(self, turn: Turn, ready: Sequence[Turn]) -> list[Turn]:
        """Return a turn with those that it does not commute with, or with something that they lead to."""
        found, agents = [turn], {one.agent for one in ready} | self.over
        for one in found:
            footprint = self.footprint(one)
            for other in ready:
                if other not in found and (
                    other.agent == one.agent
                    or conflict(footprint, self.footprint(other))
                    or self.learned.meets(footprint, self.node(other.agent), agents)
                ):
                    found.append(other)
        return found

    # Choices.

    def _choose(self, kind: str, options: Sequence[int]) -> int:
        """Take the first of some choices; leave the other ones to later runs. Raises `Seen`."""
        if len(options) > 1 and self.now >= self.world.explored_from:
            self._remember(kind)
            for other in reversed(options[1:]):
                self.search.add(self.changes + (kind == TURN), [*self.taken, other])
        return self._take(options[0])

    def _take(self, choice: int) -> int:
        self.taken.append(choice)
        return choice

    @property
    def is_repeated(self) -> bool:
        """Return whether this part of the run was a part of an earlier one."""
        return len(self.taken) < len(self.choices)

    def _remember(self, choice: str) -> None:
        """Note the state at a choice: at one within a turn, whose turn it is belongs to it. Raises `Seen`."""
        tasks = in_order((task.key, found) for task, found in self.histories.items() if task.process.tasks)
        due = in_order((turn.agent, turn.name, turn.at) for turn in self.turns if not turn.is_over)
        state = (stored(self.world), tasks, due, sorted(self.left.items()), choice, self.now)
        digest = _digest(canonical(state, self.now))
        if digest in self.search.states or len(self.search.states) >= self.search.most_states:
            raise Seen
        self.search.states.add(digest)

    def is_faulty(self, kind: str, probability: float, *, key: str | None = None) -> bool:
        """Return whether the one crash or the one duplicate happens here."""
        if kind == "an instance is replaced":
            return True  # what instances remember is not explored
        fault = DUPLICATE if kind in DUPLICATES else CRASH if self._is_crash(kind) else kind
        if not self.left[fault] or self.world is None or self.now < self.world.explored_from:
            return False
        if not (
            self._take(self.choices[len(self.taken)])
            if self.is_repeated
            else self._choose(f"{self.agent}: {kind}", (0, 1))
        ):
            return False
        self.left[fault] -= 1
        self.faults.append(Fault(key or "", kind, self.now))
        return True

    def _is_crash(self, kind: str) -> bool:
        """Return whether a crash here differs from one elsewhere: at the begin, or after a write."""
        word, _, rest = kind.partition(" ")
        if word != "killed":
            return False
        when, _, operation = rest.partition(" ")
        if when == "before":
            key = self.current.key
            return self.made[key] == 1 and key == self.current.process.key and "/schedule" not in key
        return not operation.startswith((*READS, "Receive"))

    def between(self, low: float, _: float) -> float:
        return low

    def message_id(self, queue: SimulatedQueue, body: str) -> str:
        """Return an id by what the message says, so that paths that send the same have equal states and agents."""
        said = NAMES.sub("", body)
        before = sum(one.sent_at == self.now and NAMES.sub("", one.body) == said for one in queue.log)
        return _digest(f"{queue.name} {said} {self.now} {before}")

    def first_of(self, _keys: Sequence[str]) -> int:
        return 0

    def next_key(self) -> str:
        if self.current is None:
            self.made["key " + self.agent] += 1
            return f"{self.agent} {self.now - START:.1f}:{self.made['key ' + self.agent]}"
        return super().next_key()

    # Tasks.

    def sleep(self, seconds: float) -> None:
        super().sleep(max(seconds, AT_ONCE) if seconds > SHORT else 0.0)

    def spawn(self, process: Process, key: str, work: Callable[[], object]) -> Task:
        task = super().spawn(process, key, work)
        self.histories[task] = repr(getattr(getattr(work, "__self__", None), "event", ""))
        return task

    def resume(self, task: Task) -> None:
        self._lead_to(task.key)
        agent, self.agent = self.agent, task.key
        super().resume(task)
        self.agent = agent
        if task.is_done:
            self.over.add(task.key)

    def remember_answer(self, answer: object) -> None:
        """Add an answer to the history of the current task, which with the task's code is its state."""
        self.histories[self.current] += repr((answer, self.now))

    @contextmanager
    def step(self, found: Accesses) -> Iterator[None]:
        """Make the steps after the next sleep of the current task a step with these accesses."""
        key = self.current.key
        before = self.node(key)
        self.made[key] += 1
        if not self.is_repeated:
            self.learned.follow(before, self.node(key))
            self.learned.access(self.node(key), found)
        self.pending[key] = found
        try:
            yield
        finally:
            self.pending.pop(key, None)

    def begin_step(self, place: Place, *, is_written: bool = False) -> None:
        """Wait for a turn in which the current task reads or writes a place without a call."""
        with self.step(frozenset({(place, is_written)})):
            self.sleep(0)

    def forget(self, known: object) -> None:
        """Note that what the current task got matters no more, but for something that it knows."""
        self.histories[self.current] = repr(known)

    def protocol(self) -> Mapping[str, str]:
        """Return the states of the protocol, unless an earlier run has had this turn."""
        return {} if len(self.taken) + CHOICES_OF_A_TURN < len(self.choices) else self.world.protocol()

    def note_steps(self, before: Mapping[str, str], step: str) -> None:
        if self.is_repeated:
            return
        self.noted = self.world.protocol()
        for one, state in self.noted.items():
            if before[one] != state:
                self.search.steps.setdefault((before[one], step, state))


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _deleted(_: object, handles: Sequence[str], result: Any) -> list[str]:
    """Return the receipts of the messages that a mapping deletes when an invocation has ended."""
    if isinstance(result, Failure):
        return []
    failed = {one["itemIdentifier"] for one in (result or {}).get("batchItemFailures", ())}
    return [handle for handle in handles if handle.partition(":")[0] not in failed]


class ExploredCalls(Calls):
    """The calls of an explored run, without latency; their answers are remembered, and their effects are steps."""

    kernel: ExploringKernel

    def _latency(self, _key: str) -> float:
        return 0.0

    def _wait(self, _url: str, _longest: float) -> float:
        """Look again after a second: when a message comes, does not matter to what is explored."""
        self.kernel.sleep(1.0)
        return 1.0

    def _attempt(self, service: str, operation: str, request: Request) -> Any:
        kernel = self.kernel
        task = kernel.current
        found = accesses(kernel.world, service, operation, request)
        if task.process.sandbox and kernel.left[CRASH] and any(is_written for _, is_written in found):
            found |= {(("process", task.process.key), True)}
        task.draws -= 1  # names that are drawn do not depend on the number of calls before
        with kernel.step(found):
            return super()._attempt(service, operation, request)

    def _effect(self, service: str, operation: str, request: Request) -> Answer:
        kernel = self.kernel
        is_read = operation.startswith((*READS, "Receive"))
        before = {} if is_read else kernel.protocol()
        try:
            answer = super()._effect(service, operation, request)
        except Refusal as refusal:
            kernel.remember_answer(refusal.code)
            raise
        kernel.remember_answer(answer)
        if not is_read:
            process = kernel.current.process
            who = process.name.partition("#")[0].rstrip("0123456789")
            who = f"`{who}`" if process.sandbox else f"a {who}"
            kernel.note_steps(before, f"{who} {WORDS.get(operation, 'writes to its table')}")
        return answer


@dataclass
class Search:
    """The choices of the runs to come, and what was found until now.

    The run that was found last comes first. If there are `most_changes` of the first order of steps, those with the
    fewest come first, so that none is left out for a state that another one has reached with more.
    """

    most_states: int
    faults: Sequence[str]
    learned: Learned
    is_reduced: bool = True
    most_changes: float = EVERY
    waiting: list[tuple[int, int, list[int]]] = field(default_factory=lambda: [(0, 0, [])])
    states: set[str] = field(default_factory=set)
    ends: set[str] = field(default_factory=set)
    steps: dict[Step, None] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    added: int = 0
    runs: int = 0
    repetitions: int = 0
    seconds: float = 0.0

    @property
    def is_complete(self) -> bool:
        return not self.waiting

    def add(self, changes: int, choices: list[int]) -> None:
        """Add the choices of a run to come, unless it has too many changes of the first order."""
        if changes <= self.most_changes:
            self.added += 1
            heappush(self.waiting, (changes if self.most_changes < EVERY else 0, -self.added, choices))


Made = Callable[[ExploringKernel], World]
Checks = Sequence[Callable[[Any], Iterator[str]]]


def explore(
    made: Made,
    checks: Checks,
    most_states: int,
    faults: Sequence[str],
    *,
    is_reduced: bool = True,
    most_changes: float = EVERY,
) -> Search:
    """Explore a scope, and again as long as something new was recorded about the places that steps access.

    With `is_reduced` false, steps that commute are explored in every order too. `most_changes` is the number of times
    that a run may take another step than the first of those whose order matters.
    """
    learned, repetitions, began = Learned(), 0, time.process_time()
    while True:
        learned.new = 0
        search = Search(most_states, faults, learned, is_reduced, most_changes)
        while search.waiting and len(search.states) < most_states:
            _run(made, checks, search)
        repetitions += 1
        search.repetitions, search.seconds = repetitions, time.process_time() - began
        if not (learned.new and is_reduced) or not search.is_complete:
            return search


def _run(made: Made, checks: Checks, search: Search) -> None:
    kernel = ExploringKernel(search)
    kernel.world = world = made(kernel)
    search.runs += 1
    try:
        world.run()
    except Seen:
        kernel.end()
        return
    search.ends.add(canonical((stored(world), sorted(kernel.left.items())), world.end))
    kernel.end()
    for check in checks:
        for problem in check(world):
            search.broken.setdefault(check.__name__, f"{problem} with the choices {kernel.taken}")
