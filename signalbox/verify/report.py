"""The results of a run: a row for each thing that was tried, and answers to questions about AWS."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

Answer = str | int | float | bool | None | Sequence["Answer"] | Mapping[str, "Answer"]


class TrialOutcome(StrEnum):
    """The outcome of something that was tried, or was not."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was tried; `latencies` are in seconds, in the order of the measurements."""

    capability: str
    what: str
    outcome: TrialOutcome
    latencies: Sequence[float] = ()
    detail: str = ""

    @property
    def median(self) -> float | None:
        """The median latency in seconds, or None."""
        return round(median(self.latencies), 3) if self.latencies else None

    @property
    def longest(self) -> float | None:
        """The longest latency in seconds, or None."""
        return round(max(self.latencies), 3) if self.latencies else None

    def to_document(self) -> dict[str, Answer]:
        """Return the row as JSON."""
        return {
            "capability": self.capability,
            "what": self.what,
            "outcome": self.outcome.value,
            "measured": len(self.latencies),
            "median_seconds": self.median,
            "maximum_seconds": self.longest,
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the answer with which the stage works, and what is wrong if AWS answers otherwise."""

    text: str
    expected: str
    otherwise: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer of a stage, and whether it is the expected one."""

    question: Question
    answer: Answer
    is_expected: bool

    def to_document(self) -> dict[str, Answer]:
        """Return the answer as JSON."""
        document: dict[str, Answer] = {"answer": self.answer, "expected": self.question.expected}
        return document | {"is_expected": self.is_expected, "otherwise": self.question.otherwise}


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a run; `stage` describes where it ran, `price` what it cost, `left` names what was not deleted."""

    run: str
    stage: Mapping[str, Answer]
    rows: Sequence[Row]
    answers: Mapping[str, Answered]
    price: Mapping[str, Answer]
    left: Sequence[str] = ()
    seconds: float = 0.0
    is_complete: bool = True
    """False after an interruption."""

    @property
    def worked(self) -> bool:
        """Return whether everything was tried and worked, and nothing was left behind."""
        tried = [row.outcome for row in self.rows if row.outcome is not TrialOutcome.SKIPPED]
        return (
            self.is_complete and bool(tried) and all(outcome is TrialOutcome.OK for outcome in tried) and not self.left
        )

    def to_document(self) -> dict[str, Answer]:
        """Return the report as JSON; it has no account id and no name of a person."""
        return {
            "run": self.run,
            "worked": self.worked,
            "complete": self.is_complete,
            "seconds": round(self.seconds, 1),
            "stage": self.stage,
            "rows": [row.to_document() for row in self.rows],
            "answers": {text: answered.to_document() for text, answered in self.answers.items()},
            "price": self.price,
            "left": list(self.left),
        }


def masked(text: str) -> str:
    """Return a text of an error on one line, without account ids: reports are sent to other people."""
    return re.sub(r"\d{12}", "<account>", " ".join(text.split()))


def inversions(numbers: Sequence[int]) -> int:
    """Return how many numbers came later than a larger one."""
    found, largest = 0, None
    for number in numbers:
        if largest is not None and number < largest:
            found += 1
        else:
            largest = number
    return found


def shape(identifier: str) -> str:
    """Return the form of an id without its value: its first four characters, its length, and the session of a role."""
    first, colon, rest = identifier.partition(":")
    form = f"{first[:4]} and {len(first) - 4} more characters" if len(first) > len("AIDA") else "a short text"
    return f"{form}, then ':' and {len(rest)} characters" if colon else form


def start_seconds(line: str) -> float | None:
    """Return the seconds of a function's start and first call, from Lambda's REPORT of a call that has a start."""
    found = re.search(r"\bREPORT\b.*?\tDuration: ([\d.]+) ms.*\tInit Duration: ([\d.]+) ms", line, re.DOTALL)
    return None if found is None else sum(map(float, found.groups())) / 1000


def lowest_versions(requirements: str) -> dict[str, str]:
    """Return the lowest version of each package in a file of requirements with one bound each."""
    return dict(re.findall(r"^([\w-]+)>=([\d.]+)", requirements, re.MULTILINE))


def has_lowest(found: Mapping[str, str], lowest: Mapping[str, str]) -> bool:
    """Return whether each library has at least its lowest version."""
    return all(name in found and _numbers(found[name]) >= _numbers(least) for name, least in lowest.items())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
