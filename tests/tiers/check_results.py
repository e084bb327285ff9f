"""Results of checks: one line of JSON for each run, their summary, and the parts of a release that have passed."""

import hashlib
import json
import platform
import re
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from signalbox.local.files import CHECKOUT, read_json, write_json

REPORTS = CHECKOUT / ".signalbox" / "reports"
RESULTS = REPORTS / "results.jsonl"
RELEASE = REPORTS / "release.json"
# In the last line of pytest, and the lines of its summary of failures.
COUNT = r"(\d+) (passed|failed|skipped|errors?)\b"
CLOSING = r"^=*\s*\d+ (?:passed|failed|skipped|error).* in [\d.]+s.*$"
FAILURE = r"^(?:FAILED|ERROR) (\S+::.*?)(?: - .*)?$"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of a check."""

    name: str
    passed: bool
    output: str
    seconds: float
    processor_seconds: float
    """Of its programs and of the processes that these waited for: without those that an emulator left behind."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tests have passed, failed and been skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    @classmethod
    def of(cls, output: str) -> "Counts":
        """Return the sum of the counts in pytest's closing lines."""
        found = Counter[str]()
        for line in re.findall(CLOSING, output, re.MULTILINE):
            found.update({kind: int(count) for count, kind in re.findall(COUNT, line)})
        return cls(found["passed"], found["failed"] + found["error"] + found["errors"], found["skipped"])

    def __str__(self) -> str:
        parts = {"passed": self.passed, "failed": self.failed, "skipped": self.skipped}
        return ", ".join(f"{count} {kind}" for kind, count in parts.items() if count)


def append(tier: str, results: Sequence[CheckResult], *, seconds: float, load: float, to: Path = RESULTS) -> None:
    """Append the line of a run to a file."""
    counts = Counts.of("\n".join(result.output for result in results))
    line = {
        "tier": tier,
        "commit": _git("rev-parse", "--short", "HEAD").strip(),
        "changed": bool(_git("status", "--porcelain")),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.node()} {platform.platform()} Python {platform.python_version()}",
        "load": round(load, 1),
        "seconds": round(seconds),
        "processor_seconds": round(sum(result.processor_seconds for result in results)),
        "passed": counts.passed,
        "failed": counts.failed,
        "skipped": counts.skipped,
        "checks": {result.name: [round(result.seconds), round(result.processor_seconds)] for result in results},
        "failures": list(_failures(results)),
    }
    with to.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _failures(results: Iterable[CheckResult]) -> Iterator[str]:
    """Yield the failed tests, or the name of a failed check without tests."""
    for result in results:
        if not result.passed:
            yield from re.findall(FAILURE, result.output, re.MULTILINE) or [result.name]


def summary(files: Sequence[str]) -> str:
    """Return a line for each run in these files, or in `RESULTS`, with its failed tests, and the sums by tier."""
    if not files and not RESULTS.exists():
        return "no tier has run in this checkout"
    texts = [Path(file).read_text() for file in files or [str(RESULTS)]]
    runs = [json.loads(line) for text in texts for line in text.splitlines()]
    by_tier = {
        tier: [run for run in runs if run["tier"] == tier] for tier in dict.fromkeys(run["tier"] for run in runs)
    }
    sums = [
        f"make {tier}: {len(found)} runs, {sum(bool(run['failures']) for run in found)} with a failure"
        for tier, found in by_tier.items()
    ]
    return "\n".join([*map(_line, runs), *sums])


def _line(run: dict[str, Any]) -> str:
    counts = Counts(run["passed"], run["failed"], run["skipped"])
    taken = f"{run['seconds']} s, of a processor {run['processor_seconds']} s, load {run['load']}"
    changed = " with changes" if run["changed"] else ""
    failures = "".join(f"\n  FAILED {name}" for name in run["failures"])
    return f"{run['date']} make {run['tier']} {run['commit']}{changed}: {counts}; {taken}{failures}"


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """The parts of `make release` that have passed with these sources; without git, none is known to have."""

    digest: str | None
    file: Path = RELEASE

    @classmethod
    def of_sources(cls) -> "ReleaseRecord":
        """Return the record of the checkout's files as they are."""
        listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        found = hashlib.sha256()
        for path in filter(Path.is_file, (CHECKOUT / name for name in listed.split("\0") if name)):
            found.update(f"{path} ".encode())
            found.update(hashlib.sha256(path.read_bytes()).digest())
        return cls(found.hexdigest() if listed else None)

    def passed(self, parts: Collection[str]) -> tuple[str, ...]:
        """Return the parts that have passed; none after a complete release, so that the next one runs all again."""
        kept = self._kept()
        found = tuple(part for part in parts if part in kept)
        return () if len(found) == len(parts) else found

    def keep(self, result: CheckResult) -> None:
        """Record whether a part has passed."""
        others = [part for part in self._kept() if part != result.name]
        write_json(self.file, {"digest": self.digest, "passed": [*others, *([result.name] if result.passed else [])]})

    def _kept(self) -> list[str]:
        record = read_json(self.file) or {}
        return record["passed"] if self.digest and record.get("digest") == self.digest else []


def _git(*command: str) -> str:
    """Return the output of git; empty outside of a repository."""
    try:
        return subprocess.run(
            ["git", *command],  # noqa: S607 - the git of the machine
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""
