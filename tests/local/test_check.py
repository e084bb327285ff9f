"""Every marker of slow tests is run by a check of `make test`."""

import os
import re
from pathlib import Path

import pytest

from signalbox.local.check import (
    IN_JAVA,
    OF_THE_JOBS,
    ON_KUBERNETES,
    ON_STAGES,
    REMARKS,
    SLOW,
    WITH_JAVA,
    WITH_KUBERNETES,
    Check,
    run,
)
from signalbox.local.files import CHECKOUT
from tests.scheduling import IN_WEATHER, scope_of

OWN = Path(__file__).relative_to(CHECKOUT).as_posix()
NOT_LANES = {"minutes"}  # orders tests only
IN_JAVA_BY = re.compile(r"mark\.java|params=STORES")
ON_KUBERNETES_BY = re.compile(r"mark\.kubernetes")
# The fixtures of tests/conftest.py with the stage under weather; a file may also name one in a text.
UNDER_WEATHER = re.compile(r"\b(?:deployed_in_weather|weather_deployment)\b")
SLOW_BY = re.compile(r"mark\.(?:emulator|spark|browser)\b")


def test_each_marker_excludes_a_test_from_the_fast_checks() -> None:
    settings = (CHECKOUT / "pyproject.toml").read_text()
    markers = re.findall(r'^    "(\w+)[(:]', settings.partition("markers = [")[2].partition("\n]")[0], re.MULTILINE)

    assert set(markers) - NOT_LANES == {*SLOW.split(" or "), IN_JAVA, ON_KUBERNETES}


@pytest.mark.parametrize(
    ("marked", "paths"),
    [(IN_JAVA_BY, WITH_JAVA), (ON_KUBERNETES_BY, WITH_KUBERNETES), (SLOW_BY, (*ON_STAGES, OF_THE_JOBS))],
    ids=["java", "kubernetes", "stages and jobs"],
)
def test_marked_tests_are_in_the_folders_that_their_check_runs(marked: re.Pattern[str], paths: tuple[str, ...]) -> None:
    tests = {path: path.read_text() for path in (CHECKOUT / "tests").rglob("test_*.py") if path != CHECKOUT / OWN}
    found = [path for path, text in tests.items() if marked.search(text)]
    run = [CHECKOUT / name for name in paths]

    assert found
    assert [path for path in found if not any(one in (path, *path.parents) for one in run)] == []


def test_all_tests_under_weather_run_in_one_process() -> None:
    texts = {path: path.read_text() for path in (CHECKOUT / "tests").rglob("test_*.py")}
    found = {path.relative_to(CHECKOUT).as_posix() for path, text in texts.items() if UNDER_WEATHER.search(text)}
    under_weather = found - {OWN}

    assert under_weather == IN_WEATHER
    assert {scope_of(f"{path}::test_it") for path in under_weather} == {"weather"}


def test_tests_of_other_files_run_with_their_file() -> None:
    assert scope_of("tests/local/test_check.py::test_it[a::b]") == "tests/local/test_check.py"


def test_remarks_are_the_lines_of_skipped_and_of_the_longest_tests() -> None:
    remarks = ["SKIPPED [2] tests/x.py:3: Ruby is not installed", "4.20s call     tests/x.py::test_y"]
    output = "\n".join(["....", remarks[0], "= slowest 5 durations =", remarks[1], "2 passed in 4.2s"])

    assert re.findall(REMARKS, output, re.MULTILINE) == remarks


def test_a_check_ends_with_the_first_command_that_fails() -> None:
    commands = (("sh", "-c", "echo first"), ("sh", "-c", "echo second >&2; exit 3"), ("sh", "-c", "echo third"))

    found = run(Check("shell", commands), os.environ)

    assert (found.passed, found.output) == (False, "first\nsecond\n")


def test_a_check_counts_the_processor_time_of_its_commands() -> None:
    idle, busy = (
        run(Check("shell", (("sh", "-c", command),)), os.environ)
        for command in ("sleep 0.1", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
    )

    assert idle.passed
    assert busy.passed
    assert busy.processor_seconds > idle.processor_seconds
