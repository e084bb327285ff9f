"""The checks of each tier: `make check`, `make test`, and the parts of `make release`. CONTRIBUTING has the table."""

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from signalbox.local import tools
from signalbox.local.files import CHECKOUT
from tests.tiers import javascript

PROGRAMS = Path(sys.executable).parent
ASSEMBLY = CHECKOUT / ".signalbox" / "check"
# Markers of tests that need more than Python, and of those that only `make release` runs.
SLOW = ("emulator", "spark", "browser")
RELEASE = ("release", "java", "kubernetes")
IN_CHECK = f"not ({' or '.join((*SLOW, *RELEASE))})"
IN_TEST = f"not ({' or '.join(RELEASE)})"
IN_RELEASE = f"({' or '.join(RELEASE)})"
# Every branch of these files is tested without AWS, and every branch of the jobs' transformations in Spark.
CORE = tuple(
    f"signalbox/{part}"
    for part in (
        *("rendezvous/*", "splitting/*", "exchange/*", "live/*", "sarracenia/*", "control/*", "history/*"),
        *("doctor/*", "verify/*"),
        *("queues.py", "redrive.py", "messages.py", "sending.py", "documents.py", "errors.py", "aws/*"),
        *(
            "backoff.py",
            "clock.py",
            "dead_letters.py",
            "new_queues.py",
            "fifo.py",
            "forms.py",
            "optimistic_update.py",
            "parallel.py",
        ),
    )
)
TRANSFORMS = "glue_jobs/transforms/*"
COUNTED = ("--cov", "--cov-report=")
# Failed tests, skipped ones with their reasons, since a machine may lack Ruby, and the longest ones.
REMARKS = ("-rfEs", "--durations=5")
CORES = 2  # of the machine of reference
SIMULATION_SECONDS = 600  # of processor time
# What only computes gives way to the stages, since the functions on them have time-outs of seconds.
GIVES_WAY = (sys.executable, "-m", "tests.tiers.background")
# Where the tests with each marker are: pytest imports all files of the folders that it is given.
FOLDERS = {
    "emulator": ("tests/integration", "tests/local/emulator", "tests/browser", "tests/docs/test_readme.py"),
    "browser": ("tests/browser",),
    "spark": ("tests/glue",),
    "java": ("tests/adapters", "tests/infrastructure/live", "tests/simulation"),
    "kubernetes": (
        "tests/kubernetes",
        "tests/adapters/splitting",
        "tests/integration/splitting",
        "tests/local/emulator",
    ),
}
CORE_TESTS = ("tests/unit", "tests/adapters", "tests/golden")
# Tests of whole commands, of which most need a stage in moto: a third of the time of all tests without a marker.
COMMAND_TESTS = "tests/cli"
# The parts of a release that are all tests of a folder that `make test` leaves out.
PARTS = {
    **{
        capability: f"tests/integration/{capability}"
        for capability in ("rendezvous", "splitting", "kombu", "sarracenia", "live", "history")
    },
    "stages": "tests/integration/shared",
    "clients": "tests/clients",
    "installation": "tests/cli",
    "emulator": "tests/local/emulator",
    "browser": "tests/browser",
    "functions": "tests/handlers",
    "templates": "tests/infrastructure",
}


@dataclass(frozen=True, slots=True)
class Check:
    """A check: commands that must all succeed."""

    name: str
    commands: tuple[tuple[str, ...], ...]

    def giving_way(self) -> "Check":
        """Return the same check at a low priority."""
        return replace(self, commands=tuple((*GIVES_WAY, *command) for command in self.commands))


def check_tier() -> list[Check]:
    """Return the checks of `make check`, the longest first. They need no emulator, Spark or credentials."""
    return [_tests(f"--ignore={COMMAND_TESTS}"), *_static()]


def _tests(*options: str) -> Check:
    # A file's tests stay in one process, as they share expensive fixtures.
    side_by_side = ("--numprocesses", str(CORES), "--dist", "loadfile")
    return Check("tests", (_pytest("-m", IN_CHECK, *side_by_side, *options),))


def _static() -> list[Check]:
    return [
        Check("types", ((_program("mypy"),),)),
        Check("synth, nag and cfn-lint", (*map(_synth, ("aws", "local")), _cfn_lint())),
        Check("import contracts", ((_program("lint-imports"), "--no-cache"),)),
        Check("lint", ((_program("ruff"), "check", "."),)),
        Check("format (mended by make format)", ((_program("ruff"), "format", "--check", "."),)),
        Check("JavaScript", javascript.check_commands()),
    ]


def test_tier() -> list[Check]:
    """Return the checks of `make test`: those of `make check`, commands, one stage for all, a browser, and Spark."""
    # One process each: a deployment, a browser and a Spark session are expensive to start. The longest ones first.
    return [
        Check("tests on a stage", (_marked("emulator", IN_TEST),)),
        _tests().giving_way(),
        Check("tests in a browser", (_marked("browser", f"not emulator and {IN_TEST}"),)),
        Check("tests in Spark", (_marked("spark", f"not emulator and {IN_TEST}"),)).giving_way(),
        *(one.giving_way() for one in _static()),
    ]


def release_parts() -> list[Check]:
    """Return the parts of `make release`, which can be run alone; together with `make test` they are everything."""
    marked = f"{IN_RELEASE} and not kubernetes"
    stages = [Check(name, (_pytest(folder, "-m", marked, *REMARKS),)) for name, folder in PARTS.items()]
    java = Check("java", (_marked("java", "not emulator"),))
    return [_kubernetes(), *stages, _core(), _jobs(), java, _simulation()]


def _core() -> Check:
    """Return the part with all examples of the properties, and the coverage of the core."""
    fast = f"not ({' or '.join((*SLOW, 'java', 'kubernetes'))})"
    tests = _pytest(*CORE_TESTS, "-m", fast, "--hypothesis-profile=release", *COUNTED)
    return Check("core", (tests, _coverage(*CORE))).giving_way()


def _jobs() -> Check:
    """Return the part with whole jobs, and the coverage of their transformations."""
    tests = _pytest(*FOLDERS["spark"], "-m", "not emulator", *COUNTED)
    return Check("jobs", (tests, _coverage(TRANSFORMS))).giving_way()


def _simulation() -> Check:
    """Return the part with the small scopes and new seeds of the simulation, and the sums of all seeds."""
    simulation = (sys.executable, "-m", "tests.simulation")
    seeds = (*simulation, "--seconds", str(SIMULATION_SECONDS), "--shrink")
    results = (sys.executable, "-m", "tests.simulation.results")
    return Check("simulation", ((*simulation, "--explore"), seeds, results)).giving_way()


def _kubernetes() -> Check:
    """Return the part with all tests on a Kubernetes cluster, which is built first."""
    build = (*GIVES_WAY, _program("python"), "-m", "signalbox.local.kubernetes")
    return Check("kubernetes", (build, _pytest(*FOLDERS["kubernetes"], "-m", "kubernetes", *REMARKS)))


def _marked(marker: str, others: str) -> tuple[str, ...]:
    """Return the command that runs the tests with a marker for which an expression of others holds."""
    return _pytest(*FOLDERS[marker], "-m", f"{marker} and {others}", *REMARKS)


def _program(name: str) -> str:
    return str(PROGRAMS / name)


def _pytest(*options: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "pytest", "--prepared", *options)


def _coverage(*files: str) -> tuple[str, ...]:
    """Return the command that fails unless every branch of these files has been tested."""
    return (_program("coverage"), "report", "--fail-under=100", f"--include={','.join(files)}")


def _synth(kind: str) -> tuple[str, ...]:
    settings = ("--context", f"local={'true' if kind == 'local' else 'false'}")
    app = ("--app", shlex.join([sys.executable, "app.py"]))
    return (*tools.cdk(), "synth", *app, "--quiet", "--no-notices", "--output", str(ASSEMBLY / kind), *settings)


def _cfn_lint() -> tuple[str, ...]:
    return (_program("cfn-lint"), str(ASSEMBLY / "*" / "*.template.json"))


CHECKS: Mapping[str, Callable[[], list[Check]]] = {"check": check_tier, "test": test_tier}
