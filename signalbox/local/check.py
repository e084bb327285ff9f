"""The checks of `make check` and `make test`: one line for each that passes, the whole output of each that fails."""

import json
import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import NamedTuple

from signalbox.local import javascript, tools
from signalbox.local.files import CHECKOUT
from signalbox.local.processes import piped

PROGRAMS = CHECKOUT / ".venv" / "bin"
REPORTS = CHECKOUT / ".signalbox" / "reports"
FIGURES = REPORTS / "checks.json"  # of the last run: by check, seconds of the clock and of a processor
ASSEMBLY = CHECKOUT / ".signalbox" / "check"
SLOW = "emulator or spark or browser"
IN_JAVA = "java"
ON_KUBERNETES = "kubernetes"
FAST = f"not ({SLOW} or {IN_JAVA} or {ON_KUBERNETES})"
# Measuring coverage takes half as long as the tests themselves, so only the tests of these files measure it.
OF_THE_CORE = ("tests/unit", "tests/adapters")
OF_THE_JOBS = "tests/glue"
WITH_JAVA = ("tests/adapters", "tests/infrastructure/live")
WITH_KUBERNETES = ("tests/kubernetes", "tests/adapters/splitting")
ON_STAGES = ("tests/integration", "tests/local/emulator", "tests/browser", "tests/docs/test_readme.py")
COUNTED = ("--cov", "--cov-report=")
# Every branch of these files is tested without AWS, and every branch of the jobs' transformations in Spark.
CORE = tuple(
    f"signalbox/{part}"
    for part in (
        *("rendezvous/*", "splitting/*", "exchange/*", "live/*", "sarracenia/*", "control/*", "history/*"),
        *("doctor/*", "verify/*"),
        *("queues.py", "messages.py", "sending.py", "documents.py", "errors.py", "aws/*"),
        *(
            "backoff.py",
            "clock.py",
            "dead_letters.py",
            "new_queues.py",
            "fifo.py",
            "optimistic_update.py",
            "parallel.py",
        ),
    )
)
# pytest's lines of skipped tests with their reasons, and of the longest tests.
REMARKS = r"^(?:SKIPPED|[\d.]+s (?:setup|call|teardown)) .*"
PARALLEL_CHECKS = 2  # the machine of reference has two cores
# Tests on a stage mostly wait for messages, so there are more stages than cores, and the other tests run meanwhile.
PARALLEL_STAGES = 4
# What only computes gives way to the stages, since the functions on them have time-outs of seconds.
GIVES_WAY = ("nice", "-n", "19")
# A cluster that gave way, too, would not start on a busy machine: it gets as much as the functions on the stages.
LIKE_FUNCTIONS = ("nice", "-n", "10")


@dataclass(frozen=True, slots=True)
class Check:
    """A check: commands that must all succeed."""

    name: str
    commands: tuple[tuple[str, ...], ...]

    def giving_way(self) -> "Check":
        """Return the same check at a low priority."""
        return replace(self, commands=tuple((*GIVES_WAY, *command) for command in self.commands))


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check."""

    name: str
    passed: bool
    output: str
    seconds: float
    processor_seconds: float
    """Of its programs and of the processes that these waited for: without those that an emulator left behind."""


def fast_checks() -> list[Check]:
    """Return the checks of `make check`, the longest first. They need no emulator, Spark or credentials."""
    core = _pytest("core", *OF_THE_CORE, *_parallel(PARALLEL_CHECKS), "-m", FAST, *COUNTED)
    not_core = [f"--ignore={folder}" for folder in OF_THE_CORE]
    others = _pytest("others", *not_core, *_parallel(PARALLEL_CHECKS), "-m", FAST)
    return [
        Check("tests of the core", (core, _coverage(*CORE))),
        Check("other tests", (others,)),
        Check("synth, nag and cfn-lint", (*map(_synth, ("aws", "local")), _cfn_lint())),
        Check("types", ((_program("mypy"),),)),
        Check("import contracts", ((_program("lint-imports"), "--no-cache"),)),
        Check("lint", ((_program("ruff"), "check", "."),)),
        Check("format", ((_program("ruff"), "format", "--check", "."),)),
        Check("JavaScript", javascript.check_commands()),
    ]


def _program(name: str) -> str:
    return str(PROGRAMS / name)


def spark_check() -> Check:
    """Return the check of the jobs' transformations, in one process: each Spark session takes long to start."""
    tests = _pytest("jobs", OF_THE_JOBS, "-m", SLOW, *COUNTED)
    return Check("tests of the jobs in Spark", (tests, _coverage("glue_jobs/transforms/*")))


def java_check() -> Check:
    """Return the check with parts in Java, in one process: each process starts its own."""
    return Check("tests with parts in Java", (_pytest("java", *WITH_JAVA, "-m", IN_JAVA),))


def kubernetes_check() -> Check:
    """Return the check on a Kubernetes cluster, which is built first. One process: each starts a cluster of its own."""
    build = (*GIVES_WAY, _program("python"), "-m", "signalbox.local.kubernetes")
    tests = _pytest("kubernetes", *WITH_KUBERNETES, "-m", f"{ON_KUBERNETES} and not ({SLOW})", "--durations=5")
    return Check("tests on a Kubernetes cluster", (build, (*LIKE_FUNCTIONS, *tests)))


def stages_check() -> Check:
    """Return the check on the emulator and in a browser; each process has its own stage."""
    # Without the option, pytest-xdist would begin with the files of many tests, not with the slow ones.
    parallel = (*_parallel(PARALLEL_STAGES), "--no-loadscope-reorder")
    # -rs reports skipped tests with their reasons: a machine may lack Ruby.
    tests = _pytest("stages", *ON_STAGES, *parallel, "-m", SLOW, "-rs", "--durations=5")
    return Check("tests on the emulator and in a browser", (tests,))


def _pytest(report: str, *options: str) -> tuple[str, ...]:
    return (_program("python"), "-m", "pytest", f"--junitxml={REPORTS / report}.xml", *options)


def _parallel(processes: int) -> tuple[str, ...]:
    """Return pytest's options for parallel processes; a file's tests stay in one, as they share expensive fixtures."""
    return ("--numprocesses", str(processes), "--dist", "loadfile")


def _coverage(*files: str) -> tuple[str, ...]:
    """Return the command that fails unless every branch of these files has been tested."""
    return (_program("coverage"), "report", "--fail-under=100", f"--include={','.join(files)}")


def _synth(kind: str) -> tuple[str, ...]:
    settings = ("--context", f"local={'true' if kind == 'local' else 'false'}")
    return (*tools.cdk(), "synth", "--quiet", "--no-notices", "--output", str(ASSEMBLY / kind), *settings)


def _cfn_lint() -> tuple[str, ...]:
    return (_program("cfn-lint"), str(ASSEMBLY / "*" / "*.template.json"))


def run(check: Check, environment: Mapping[str, str]) -> Result:
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
    return Result(check.name, passed, output, time.monotonic() - started, processor_seconds)


class _Done(NamedTuple):
    status: int
    output: str
    processor_seconds: float


def _run(command: Sequence[str], environment: Mapping[str, str]) -> _Done:
    """Run a program to its end; `wait4` returns its own processor time, however many run at the same time."""
    with piped(command, folder=CHECKOUT, environment=environment) as process:
        output = process.stdout.read() if process.stdout else ""
        _pid, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return _Done(process.returncode, output, usage.ru_utime + usage.ru_stime)


def run_all(checks: Sequence[Check], environment: Mapping[str, str]) -> bool:
    """Run checks in parallel and print the result of each when it ends; return whether all passed."""
    with ThreadPoolExecutor(PARALLEL_CHECKS) as pool:
        started = [pool.submit(run, check, environment) for check in checks]
        results = [_shown(future.result()) for future in as_completed(started)]
    figures = {one.name: {"seconds": one.seconds, "processor_seconds": one.processor_seconds} for one in results}
    FIGURES.write_text(json.dumps(figures))
    return all(one.passed for one in results)


def _shown(result: Result) -> Result:
    verdict = "ok    " if result.passed else "FAILED"
    taken = f"{result.seconds:.1f} s, of a processor {result.processor_seconds:.0f} s"
    _say(f"  {verdict} {result.name} {taken}{_closing_line(result)}")
    shown = re.findall(REMARKS, result.output, re.MULTILINE) if result.passed else [result.output]
    for text in shown:
        _say(text)
    return result


def _closing_line(result: Result) -> str:
    """Return pytest's closing line with its counts; empty for the other programs."""
    counts = re.findall(r"^=*\s*(\d+ (?:passed|failed)\b.*?)\s*=*$", result.output, re.MULTILINE)
    return f": {counts[-1]}" if counts else ""


def main(arguments: Sequence[str]) -> int:
    """Run the fast checks, or with the argument `all` every check; return the exit status."""
    environment = {**tools.hermetic_environment(os.environ), "JAVA_HOME": str(tools.java_home())}
    REPORTS.mkdir(parents=True, exist_ok=True)
    _say("Checking")
    is_whole = "all" in arguments
    checks = fast_checks()
    if is_whole:
        # The cluster is built first: where it has changed, that takes longer than all other checks, and stages need it.
        others = [one.giving_way() for one in (spark_check(), java_check(), *checks)]
        checks = [stages_check(), kubernetes_check(), *others]
    passed = run_all(checks, environment)
    if not passed:
        _say("error: not everything passed; see above")
    return 0 if passed else 1


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
