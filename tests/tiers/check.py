"""The programs behind `make check`, `make test` and `make release`: what each runs, side by side, and its results."""

import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import NamedTuple

from signalbox.errors import RejectedError, SignalboxError
from signalbox.local import tools
from signalbox.local.files import CHECKOUT
from signalbox.local.processes import piped
from tests.tiers import check_results, tiers
from tests.tiers.check_results import REPORTS, CheckResult, Counts
from tests.tiers.tiers import Check

# pytest's lines of skipped tests with their reasons, and of the longest tests.
REMARKS = r"^(?:SKIPPED|[\d.]+s (?:setup|call|teardown)) .*"
# One more than the cores of the machine of reference: a check on a stage mostly waits.
SIDE_BY_SIDE = 3


class _Done(NamedTuple):
    status: int
    output: str
    processor_seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts the checks that have ended, and prints each."""

    total: int

    def show(self, number: int, result: CheckResult) -> None:
        """Print the line of a check, and its whole output if it failed."""
        verdict = "ok    " if result.passed else "FAILED"
        taken = f"{result.seconds:.0f} s, of a processor {result.processor_seconds:.0f} s"
        _say(f"  {verdict} {number} of {self.total}: {result.name} {taken}{_closing_line(result)}")
        shown = re.findall(REMARKS, result.output, re.MULTILINE) if result.passed else [result.output]
        for text in shown:
            _say(text)


def run(check: Check, environment: Mapping[str, str]) -> CheckResult:
    """Run a check's commands until one fails."""
    started = time.monotonic()
    output, processor_seconds, passed = "", 0.0, True
    environment = {**environment, "COVERAGE_FILE": str(REPORTS / f".coverage of {check.name}")}
    for command in check.commands:
        done = _run(command, environment)
        output += done.output
        processor_seconds += done.processor_seconds
        passed = not done.status
        if not passed:
            break
    return CheckResult(check.name, passed, output, time.monotonic() - started, processor_seconds)


def _run(command: Sequence[str], environment: Mapping[str, str]) -> _Done:
    """Run a program to its end; `wait4` returns its own processor time, however many run at the same time."""
    with piped(command, folder=CHECKOUT, environment=environment) as process:
        output = process.stdout.read() if process.stdout else ""
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return _Done(process.returncode, output, usage.ru_utime + usage.ru_stime)


def run_all(
    checks: Sequence[Check], environment: Mapping[str, str], ended: Callable[[CheckResult], None] = lambda _: None
) -> list[CheckResult]:
    """Run checks side by side; print each when it ends, and pass it to `ended`."""
    progress, results = Progress(len(checks)), list[CheckResult]()
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        started = [pool.submit(run, check, environment) for check in checks]
        for future in as_completed(started):
            results.append(future.result())
            progress.show(len(results), results[-1])
            ended(results[-1])
    return results


def _closing_line(result: CheckResult) -> str:
    """Return the counts of pytest; empty for the other programs."""
    counts = Counts.of(result.output)
    return f": {counts}" if counts.passed or counts.failed else ""


def main(arguments: Sequence[str]) -> int:
    """Run the tier that the first argument names, or print `results`; return the exit status."""
    tier, *rest = arguments
    if tier == "results":
        _say(check_results.summary(rest))
        return 0
    try:
        checks, ended = _release(rest) if tier == "release" else (tiers.CHECKS[tier](), lambda _: None)
    except SignalboxError as error:
        _say(f"error: {error}")
        return 2
    return _checked(tier, checks, ended)


def _release(parts: Sequence[str]) -> tuple[list[Check], Callable[[CheckResult], None]]:
    """Return the named parts of a release, or those that have not passed with these sources, and what keeps each."""
    known = {part.name: part for part in tiers.release_parts()}
    if unknown := sorted(set(parts) - set(known)):
        raise RejectedError(f"no part of `make release` is called {', '.join(unknown)}; there are {', '.join(known)}")
    record = check_results.ReleaseRecord.of_sources()
    passed = () if parts else record.passed(known)
    if passed:
        _say(f"Passed before with the same sources: {', '.join(passed)}")
    return [part for name, part in known.items() if name not in passed and (not parts or name in parts)], record.keep


def _checked(tier: str, checks: Sequence[Check], ended: Callable[[CheckResult], None]) -> int:
    environment = {**tools.hermetic_environment(os.environ), "JAVA_HOME": str(tools.java_home())}
    REPORTS.mkdir(parents=True, exist_ok=True)
    _say(f"Checking: {', '.join(check.name for check in checks)}")
    started, load = time.monotonic(), os.getloadavg()[0]
    results = run_all(checks, environment, ended)
    check_results.append(tier, results, seconds=time.monotonic() - started, load=load)
    if all(result.passed for result in results):
        return 0
    _say("error: not everything passed; see above")
    return 1


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
