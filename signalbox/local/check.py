"""The checks of `make check` and `make test`: one line for each that passes, the whole output of each that fails."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from signalbox.local import javascript, tools
from signalbox.local.files import CHECKOUT

PROGRAMS = CHECKOUT / ".venv" / "bin"
REPORTS = CHECKOUT / ".signalbox" / "reports"
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
PARALLEL_CHECKS = 2  # the machine of reference has two cores
# Tests on a stage wait for messages a quarter of their time, so there are more stages than cores.
PARALLEL_STAGES = 3


@dataclass(frozen=True, slots=True)
class Check:
    """A check: commands that must all succeed."""

    name: str
    commands: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a check."""

    name: str
    passed: bool
    output: str
    seconds: float


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
    """Return the check on a Kubernetes cluster, in one process: each starts its own; the first one builds it."""
    tests = _pytest("kubernetes", *WITH_KUBERNETES, "-m", f"{ON_KUBERNETES} and not ({SLOW})", "--durations=5")
    return Check("tests on a Kubernetes cluster", (tests,))


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
    output = ""
    environment = {**environment, "COVERAGE_FILE": str(REPORTS / f".coverage of {check.name}")}
    for command in check.commands:
        done = subprocess.run(
            command,
            cwd=CHECKOUT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        output += done.stdout
        if done.returncode:
            return Result(check.name, passed=False, output=output, seconds=time.monotonic() - started)
    return Result(check.name, passed=True, output=output, seconds=time.monotonic() - started)


def run_all(checks: Sequence[Check], environment: Mapping[str, str]) -> bool:
    """Run checks in parallel and print the result of each when it ends; return whether all passed."""
    with ThreadPoolExecutor(PARALLEL_CHECKS) as pool:
        started = [pool.submit(run, check, environment) for check in checks]
        passed = [_shown(future.result()) for future in as_completed(started)]
    return all(passed)


def _shown(result: Result) -> bool:
    verdict = "ok    " if result.passed else "FAILED"
    _say(f"  {verdict} {result.name} {result.seconds:.1f} s{_closing_line(result)}")
    if not result.passed:
        _say(result.output)
    return result.passed


def _closing_line(result: Result) -> str:
    """Return pytest's closing line with its counts; empty for the other programs."""
    counts = re.findall(r"^=*\s*(\d+ (?:passed|failed)\b.*?)\s*=*$", result.output, re.MULTILINE)
    return f": {counts[-1]}" if counts else ""


def run_on_stages(environment: Mapping[str, str]) -> bool:
    """Run the tests on the emulator and in a browser in the foreground; each process has its own stage.

    Return whether all passed.
    """
    # Without the option, pytest-xdist would begin with the files of many tests, not with the slow ones.
    parallel = (*_parallel(PARALLEL_STAGES), "--no-loadscope-reorder")
    # -rs reports skipped tests with their reasons: a machine may lack Ruby.
    others = f"--ignore={OF_THE_JOBS}"
    command = _pytest("stages", others, *parallel, "-m", SLOW, "-rs", "--durations=5")
    return subprocess.run(command, cwd=CHECKOUT, env=environment, check=False).returncode == 0


def main(arguments: Sequence[str]) -> int:
    """Run the fast checks, or with the argument `all` every check; return the exit status."""
    environment = {**tools.hermetic_environment(os.environ), "JAVA_HOME": str(tools.java_home())}
    REPORTS.mkdir(parents=True, exist_ok=True)
    _say("Checking")
    is_whole = "all" in arguments
    # The cluster is built first: where it has changed, that takes longer than all other checks, and stages need it.
    slow = [kubernetes_check(), spark_check(), java_check()] if is_whole else []
    passed = run_all([*slow, *fast_checks()], environment)
    if is_whole:
        _say("Testing on the emulator and in a browser")
        passed = run_on_stages(environment) and passed
    if not passed:
        _say("error: not everything passed; see above")
    return 0 if passed else 1


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
