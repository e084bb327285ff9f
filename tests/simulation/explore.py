"""Search of every order of steps of a small scope, with one crash and one duplicate anywhere.

A run is a list of choices: which turn is next, and whether a fault happens here. The search repeats runs with one other
choice each, and ends a run at a state that it has seen. A state is what the stage has stored, and for each task the
answers that it got; times are compared in steps of five seconds, and the memory of function instances is left out.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from heapq import heapify
from typing import Any

from tests.simulation.calls import Calls
from tests.simulation.kernel import START, Fault, Kernel, Task
from tests.simulation.queue import SimulatedQueue, StoredMessage
from tests.simulation.services import Answer, Refusal, Request
from tests.simulation.world import Weather, World

# Turns that are due within this time may have any order, as far as they are of different tasks.
WINDOW = 0.3
GRAIN_SECONDS = 5.0
TIMES = re.compile(r"17\d{8}(?:\d{3})?(?:\.\d+)?")
# Items that no rule of order depends on: counters, and the paces of polls, which the scopes do not follow.
UNSEEN = ("statistics#", "distinct#", "key#", "pace")
CRASH, DUPLICATE = "a crash", "a duplicate"
KINDS = {
    "a message is received twice": DUPLICATE,
    "a message comes back": DUPLICATE,
    "the mapping does not delete": DUPLICATE,
}


class Seen(BaseException):
    """Raised in a run that has reached a state of another run."""


@dataclass
class Search:
    """The choices of the runs to come, and what was found until now; `steps` are changes of an item's state."""

    most_states: int
    waiting: list[list[int]] = field(default_factory=lambda: [[]])
    states: set[bytes] = field(default_factory=set)
    steps: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    runs: int = 0
    broken: dict[str, str] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        return not self.waiting


class ExploringKernel(Kernel):
    """A kernel whose order of turns and faults are choices; all else is the same in every run."""

    def __init__(self, search: Search, choices: Sequence[int]) -> None:
        super().__init__(0)
        self.search, self.choices = search, list(choices)
        self.taken: list[int] = []
        self.left = {CRASH: 1, DUPLICATE: 1}
        self.histories: dict[str, bytes] = {}
        self.unseen: set[str] = set()
        self.state: Callable[[], object] = lambda: None

    def run(self, until: float) -> None:
        while self._turns and min(self._turns)[0] <= until:
            ready = self._ready(until)
            at, number, turn = ready[self._next([label for label, _ in ready])][1]
            self._turns.remove((at, number, turn))
            heapify(self._turns)
            self.now = max(self.now, at)
            turn()
        self.now = max(self.now, until)

    def _ready(self, until: float) -> list[tuple[str, tuple[float, int, Callable[[], None]]]]:
        """Return the next turn of each task, and the next one of the stage, as far as they are due at the same time."""
        first = min(self._turns)[0]
        found: dict[str, tuple[float, int, Callable[[], None]]] = {}
        for turn in sorted(one for one in self._turns if one[0] <= min(first + WINDOW, until)):
            found.setdefault(_label(turn[2]), turn)
        return list(found.items())

    def _next(self, labels: Sequence[str]) -> int:
        """Return which turn is next: without a choice, if it is a call whose effect no other call sees."""
        found = next((place for place, label in enumerate(labels) if label in self.unseen), None)
        return self.choose(labels) if found is None else found

    def resume(self, task: Task) -> None:
        super().resume(task)
        if task.is_done or not task.process.is_alive:
            self.histories.pop(task.key, None)

    def choose(self, options: Sequence[str]) -> int:
        """Return the next choice; leave the other ones to later runs. Raises `Seen`."""
        if len(options) == 1 or self.now >= self.faults_end:
            return 0
        place = len(self.taken)
        if place < len(self.choices):
            choice = self.choices[place]
        else:
            choice = 0
            self._remember(options)
            self.search.waiting += [[*self.taken, other] for other in range(1, len(options))]
        self.taken.append(choice)
        return choice

    def _remember(self, options: Sequence[str]) -> None:
        state = (self.state(), sorted(self.histories.items()), self.left, options, self.current and self.current.key)
        text = TIMES.sub(_rough, repr(state))
        known = blake2b(text.encode(errors="surrogatepass"), digest_size=12).digest()
        if known in self.search.states or len(self.search.states) >= self.search.most_states:
            raise Seen
        self.search.states.add(known)

    def is_faulty(self, kind: str, probability: float, *, key: str | None = None) -> bool:
        """Return whether the one crash or the one duplicate happens here."""
        fault = CRASH if kind.startswith("killed after") else KINDS.get(kind)
        if fault is None or not self.left[fault] or self.now >= self.faults_end:
            return False
        if not self.choose(["no", kind]):
            return False
        self.left[fault] -= 1
        self.faults.append(Fault(key or "", kind, self.now))
        return True

    def spawn(self, process: Any, key: str, work: Callable[[], object]) -> Task:
        self.histories[key] = b""
        return super().spawn(process, key, work)

    def remember_answer(self, answer: object) -> None:
        """Add an answer to the history of the current task, which with the task's code is its state."""
        assert self.current is not None
        key = self.current.key
        text = TIMES.sub(_rough, repr(answer))
        self.histories[key] = blake2b(self.histories.get(key, b"") + text.encode(errors="surrogatepass")).digest()[:8]


class ExploredCalls(Calls):
    """The calls of an explored run: their answers are remembered, and their effects are steps of the protocol."""

    def __init__(self, kernel: ExploringKernel, protocol: Callable[[], Mapping[str, str]]) -> None:
        super().__init__(kernel)
        self.explorer, self.protocol = kernel, protocol

    def _attempt(self, service: str, operation: str, request: Request) -> Any:
        key = self.kernel.current.key  # type: ignore[union-attr]
        (self.explorer.unseen.add if _is_unseen(service, request) else self.explorer.unseen.discard)(key)
        return super()._attempt(service, operation, request)

    def _effect(self, service: str, operation: str, request: Request) -> Answer:
        before = self.protocol()
        try:
            answer = super()._effect(service, operation, request)
        except Refusal as refusal:
            self.explorer.remember_answer(refusal.code)
            raise
        self.explorer.remember_answer(answer)
        after = self.protocol()
        who = self.kernel.current.process.name.rstrip("0123456789").rstrip("#")  # type: ignore[union-attr]
        for one, state in after.items():
            if before.get(one) != state:
                self.explorer.search.steps[before.get(one, ""), f"{who}: {operation}", state] += 1
        return answer


def explore(
    made: Callable[[ExploringKernel], World],
    checks: Sequence[Callable[[Any], Iterator[str]]],
    *,
    most_states: int,
) -> Search:
    """Run every order of a scope, until all states are known or there are too many."""
    search = Search(most_states)
    while search.waiting and len(search.states) < most_states:
        kernel = ExploringKernel(search, search.waiting.pop())
        world = made(kernel)
        kernel.state = partial(stored, world)
        search.runs += 1
        try:
            world.run()
        except Seen:
            continue
        for check in checks:
            for problem in check(world):
                search.broken.setdefault(check.__name__, f"{problem} with the choices {kernel.taken}")
        if search.runs % 500 == 0:
            print(f"{search.runs} runs, {len(search.states)} states, {len(search.waiting)} left", flush=True)
    return search


def stored(world: World) -> object:
    """Return the stored state of a stage: items, messages and the turns to come."""
    now = world.kernel.now
    tables = {name: _sorted(table.items) for name, table in world.dynamodb.tables.items()}
    queues = {queue.name: [_message(one, queue, now) for one in queue.log] for queue in world.sqs.made}
    turns = sorted((_label(turn), round((at - now) / GRAIN_SECONDS)) for at, _, turn in world.kernel._turns)
    account = world.account  # type: ignore[attr-defined]
    return tables, queues, turns, account, round((now - START) / GRAIN_SECONDS)


def _message(message: StoredMessage, queue: SimulatedQueue, now: float) -> object:
    if message.id not in queue.messages:
        return message.id
    return message.id, message.receives, round((message.visible_at - now) / GRAIN_SECONDS)


def _is_unseen(service: str, request: Request) -> bool:
    """Return whether no other call sees the effect of one."""
    return service == "firehose" or str((request.get("Key") or {}).get("pk", "")).startswith(UNSEEN)


def _sorted(items: Any) -> object:
    return sorted(
        (str(pk), sorted((str(sk), sorted(item.items())) for sk, item in known.items()))
        for pk, known in items.items()
        if not str(pk).startswith(UNSEEN)
    )


def _label(turn: Callable[[], None]) -> str:
    values = getattr(turn, "args", ())
    return values[0].key if values and isinstance(values[0], Task) else "stage"


def _rough(found: re.Match[str]) -> str:
    text = found.group()
    seconds = float(text) / (1000 if len(text.partition(".")[0]) == 13 else 1)
    return str(round((seconds - START) / GRAIN_SECONDS))


CALM = Weather(faults_for=30, calm_for=600, factor=0, outages=0, longest_outage=0)
