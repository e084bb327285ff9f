"""Write the results of kombu's and Celery's tests into docs/celery.md: `python -m tests.docs.celery [REPORT …]`.

With the reports of `make release PART=kombu`, it first keeps their results in tests/integration/kombu/suites.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.docs.markdown import ROOT, with_section

PAGE = ROOT / "docs" / "celery.md"
BEGIN, END = "<!-- suites: written by tests/docs/celery.py -->", "<!-- /suites -->"
KEPT = ROOT / "tests" / "integration" / "kombu" / "suites" / "results.json"
SUBCLASSES = "test_cases.py"  # of kombu's common cases
OURS, RABBITMQ, SQS = "Signalbox", "RabbitMQ", "sqs://"
BROKERS = (RABBITMQ, OURS, SQS)

Outcomes = Mapping[str, bool]
"""Whether each test passed."""
Results = Mapping[str, Outcomes]
"""The outcomes of a suite by broker."""
Kept = Mapping[str, Any]
"""The summaries by suite."""


def missing(results: Results) -> list[str]:
    """Return the tests that pass on RabbitMQ and not on a stage."""
    return sorted(name for name, passed in results[RABBITMQ].items() if passed and not results[OURS].get(name))


def summary(results: Results) -> dict[str, object]:
    """Return the numbers of tests and of passed ones by file and broker, and the missing ones."""
    files = sorted({_file(name) for outcomes in results.values() for name in outcomes})
    counts = {file: {broker: _count(results[broker], file) for broker in BROKERS} for file in files}
    return {"files": counts, "missing": missing(results)}


def _count(outcomes: Outcomes, file: str) -> list[int]:
    found = [passed for name, passed in outcomes.items() if _file(name) == file]
    return [sum(found), len(found)]


def _file(name: str) -> str:
    return f"{name.split('.')[2].partition('::')[0]}.py"


def section(kept: Kept) -> str:
    """Return the table in Markdown: passed tests of all, by suite, file and broker."""
    return "\n".join(_lines(kept)) + "\n\n"


def _lines(kept: Kept) -> Iterator[str]:
    yield f"\n| Tests | {' | '.join(BROKERS)} |\n|---|---:|---:|---:|"
    for suite, found in kept.items():
        for file, counts in found["files"].items():
            name = "common cases" if file == SUBCLASSES else f"`{file}`"
            yield _row(f"{suite}: {name}", [counts[broker] for broker in BROKERS])
    everything = [counts for found in kept.values() for counts in found["files"].values()]
    sums = [[sum(counts[broker][place] for counts in everything) for place in (0, 1)] for broker in BROKERS]
    yield _row("all", sums)


def _row(name: str, counts: Sequence[Sequence[int]]) -> str:
    return f"| {name} | " + " | ".join(f"{passed} of {all_}" if all_ else "not run" for passed, all_ in counts) + " |"


def page(text: str) -> str:
    """Return the page with its table updated."""
    return with_section(text, BEGIN, END, section(json.loads(KEPT.read_text())))


def keep(reports: Sequence[str]) -> None:
    """Keep the results of reports, which are named by their suites."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for report in map(Path, reports):
        kept[report.name.split()[0]] = summary(json.loads(report.read_text()))
    KEPT.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    keep(sys.argv[1:])
    PAGE.write_text(page(PAGE.read_text()))
