"""A run of flows on a stage: its journal of results, the calls it counts, and its end."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TypeVar

import boto3

from signalbox.clients.deployment import AwsDeployment, Deployment
from signalbox.errors import UnavailableError
from signalbox.messages import MessageId
from signalbox.verify.report import Answer, Answered, Question, Row, TrialOutcome, masked

T = TypeVar("T")
PAUSE_SECONDS = 0.5
DETAIL_CHARACTERS = 400


class WrongResult(UnavailableError):
    """Raised when a stage does something else than its pages promise; the text has what was expected."""


class RunStopped(UnavailableError):
    """Raised in the parts of a run after an interruption, or after a part that they depend on failed."""


@dataclass(slots=True)
class Meter:
    """Counts the AWS calls of sessions, retries included, and the facts that the stage handled. Thread-safe."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    facts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def attach(self, session: boto3.Session) -> boto3.Session:
        """Count the calls of all clients that the session makes from now on."""
        session.events.register("before-send", self._count)
        return session

    def count(self, service: str, operation: str, number: int = 1) -> None:
        """Count calls that are not made with boto3."""
        with self._lock:
            self.calls[service, operation] += number

    def note(self, capability: str, what: str, number: int = 1) -> None:
        """Count facts that the stage handles, by the names of the price list."""
        with self._lock:
            self.facts[capability, what] += number

    def _count(self, event_name: str, **_details: object) -> None:
        service, operation = event_name.split(".")[1:]
        self.count(service, operation)


@dataclass(slots=True)
class Timing:
    """The measurements of a step, and what it shows."""

    latencies: list[float] = field(default_factory=list)
    detail: str = ""

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Measure the time of the block."""
        started = time.monotonic()
        yield
        self.latencies.append(time.monotonic() - started)


def _ignore(_row: str) -> None:
    """Print nothing."""


@dataclass(slots=True)
class Journal:
    """The rows and answers of a run. Thread-safe."""

    show: Callable[[str], None] = _ignore
    """Prints a row when it is complete."""
    watch: Callable[[str], AbstractContextManager[object]] = nullcontext
    """Shows that a step runs."""
    rows: list[Row] = field(default_factory=list)
    answers: dict[str, Answered] = field(default_factory=dict)
    stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def step(self, capability: str, what: str) -> Iterator[Timing]:
        """Record the block as a row: its measurements, or its error.

        An error is raised again as `RunStopped`: the following steps of a flow depend on it.
        """
        if self.stopping.is_set():
            raise RunStopped("the run was interrupted")
        timing, started = Timing(), time.monotonic()
        try:
            with self.watch(f"{capability}: {what}"):
                yield timing
        except Exception as error:
            self.fail(capability, what, error)
            raise RunStopped(f"{capability}: {what}") from error
        latencies = timing.latencies or [time.monotonic() - started]
        self._add(Row(capability, what, TrialOutcome.OK, tuple(latencies), timing.detail))

    def fail(self, capability: str, what: str, error: BaseException) -> None:
        """Record a failure."""
        text = masked(f"{type(error).__name__}: {error}")
        self._add(Row(capability, what, TrialOutcome.FAILED, detail=text[:DETAIL_CHARACTERS]))

    def skip(self, capability: str, what: str, reason: str) -> None:
        """Record something that was not tried."""
        self._add(Row(capability, what, TrialOutcome.SKIPPED, detail=reason))

    def answer(self, question: Question, answer: Mapping[str, Answer], *, is_expected: bool) -> None:
        """Record the answer to a question about AWS."""
        self.answers[question.text] = Answered(question, answer, is_expected)

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        seconds = "" if row.median is None else f" {row.median:.2f} s"
        self.show(f"{row.capability}: {row.what}: {row.outcome}{seconds}{f' ({row.detail})' if row.detail else ''}")


@dataclass(frozen=True, slots=True)
class Trial:
    """A run on a stage. `published` are the ids of messages of the exchange, when `has_published` is set."""

    deployment: "Deployment"
    journal: Journal
    meter: Meter = field(default_factory=Meter)
    published: list[MessageId] = field(default_factory=list)
    published_at: list[float] = field(default_factory=list)
    has_published: threading.Event = field(default_factory=threading.Event)
    ended: set[str] = field(default_factory=set)
    """The flows that have ended, by their names."""

    @property
    def is_in_aws(self) -> bool:
        """True for a stage in AWS."""
        return isinstance(self.deployment, AwsDeployment)

    def wait_until(self, look: Callable[[], T], what: str, *, seconds: float, pause: float = PAUSE_SECONDS) -> T:
        """Call `look` until its result is true, and return the result.

        Raises `WrongResult` after `seconds`, and `RunStopped` when the run is interrupted.
        """
        deadline = time.monotonic() + seconds
        while not (found := look()):
            if self.journal.stopping.wait(pause):
                raise RunStopped("the run was interrupted")
            if time.monotonic() > deadline:
                raise WrongResult(f"this did not happen within {seconds:g} s: {what}")
        return found


def expect(condition: object, text: str) -> None:
    """Raise `WrongResult` with `text` unless the condition is true."""
    if not condition:
        raise WrongResult(text)
