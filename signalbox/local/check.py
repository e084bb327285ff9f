"""Runs everything that a machine can check: quiet where all is well, the whole output where it is not."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

from signalbox.local import javascript, tools
from signalbox.local.state import CHECKOUT

PROGRAMS = CHECKOUT / ".venv" / "bin"
REPORTS = CHECKOUT / ".signalbox" / "reports"
ASSEMBLY = CHECKOUT / ".signalbox" / "check"
SLOW = "emulator or spark or browser"
# To count what is tested takes as long again as half the tests do: it is done where it is asked for.
OF_THE_CORE = ("tests/unit", "tests/adapters")
OF_THE_JOBS = "tests/glue"
COUNTED = ("--cov", "--cov-report=")
# Rules: every branch of them is tested without AWS. The jobs' transformations hold themselves to the same in Spark.
CORE = tuple(
    f"signalbox/{part}"
    for part in (
        *("rendezvous/*", "splitting/*", "exchange/*", "live/*", "sarracenia/*", "control/*", "history/*"),
        *("queues.py", "messages.py", "sending.py", "documents.py", "ports.py", "errors.py", "aws/*"),
    )
)
AT_ONCE = 2  # the machine that this is measured on has two cores
# Tests on a stage wait for one another's messages a quarter of their time.
STAGES_AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class Check:
    """Something to be checked, by commands that must all succeed."""

    name: str
    commands: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Result:
    """How a check went."""

    name: str
    passed: bool
    output: str
    seconds: float


def fast_checks() -> list[Check]:
    """Return the checks of `make check`, the longest first: no emulator, no Spark, no credentials."""
    core = _pytest("core", *OF_THE_CORE, *_side_by_side(AT_ONCE), "-m", f"not ({SLOW})", *COUNTED)
    not_core = [f"--ignore={folder}" for folder in OF_THE_CORE]
    others = _pytest("others", *not_core, *_side_by_side(AT_ONCE), "-m", f"not ({SLOW})")
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
    """Return the check of the jobs' transformations: in one process, since each session warms up anew."""
    tests = _pytest("jobs", OF_THE_JOBS, "-m", SLOW, *COUNTED)
    return Check("tests of the jobs in Spark", (tests, _coverage("glue_jobs/transforms/*")))


def _pytest(report: str, *options: str) -> tuple[str, ...]:
    return (_program("python"), "-m", "pytest", f"--junitxml={REPORTS / report}.xml", *options)


def _side_by_side(processes: int) -> tuple[str, ...]:
    """Return the options for so many processes; a file's tests stay together, as they share what is dear to make."""
    return ("--numprocesses", str(processes), "--dist", "loadfile")


def _coverage(*files: str) -> tuple[str, ...]:
    """Return the command that fails unless every branch of these files was tested."""
    return (_program("coverage"), "report", "--fail-under=100", f"--include={','.join(files)}")


def _synth(kind: str) -> tuple[str, ...]:
    settings = ("--context", f"local={'true' if kind == 'local' else 'false'}")
    return (*tools.cdk(), "synth", "--quiet", "--no-notices", "--output", str(ASSEMBLY / kind), *settings)


def _cfn_lint() -> tuple[str, ...]:
    return (_program("cfn-lint"), str(ASSEMBLY / "*" / "*.template.json"))


def run(check: Check, environment: Mapping[str, str]) -> Result:
    """Run one check's commands until one fails."""
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
    """Run checks side by side and show each as it ends; tell whether all passed."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
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
    """Return what pytest says at the end; the other programs have nothing worth saying when all is well."""
    counts = re.findall(r"^=*\s*(\d+ (?:passed|failed)\b.*?)\s*=*$", result.output, re.MULTILINE)
    return f": {counts[-1]}" if counts else ""


def run_on_stages(environment: Mapping[str, str]) -> bool:
    """Run the tests on the emulator and in a browser in the foreground; pytest's closing line is the last.

    Each process has a stage of its own.
    """
    # By themselves the processes would begin with the files of many tests, not with those that take long.
    side_by_side = (*_side_by_side(STAGES_AT_ONCE), "--no-loadscope-reorder")
    # What is skipped is said with its reason: a machine may lack a browser or Go.
    others = f"--ignore={OF_THE_JOBS}"
    command = _pytest("stages", others, *side_by_side, "-m", SLOW, "-rs", "--durations=5")
    return subprocess.run(command, cwd=CHECKOUT, env=environment, check=False).returncode == 0


def main(arguments: Sequence[str]) -> int:
    """Check fast, or all."""
    environment = {**tools.hermetic_environment(os.environ), "JAVA_HOME": str(tools.java_home())}
    REPORTS.mkdir(parents=True, exist_ok=True)
    _say("Checking")
    is_whole = "all" in arguments
    passed = run_all([*([spark_check()] if is_whole else []), *fast_checks()], environment)
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
