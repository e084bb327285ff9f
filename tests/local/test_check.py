"""Every test belongs to one tier, and each run of a tier leaves its result."""

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from signalbox.local.files import CHECKOUT
from tests.tiers import check_results, tiers
from tests.tiers.check import REMARKS, run
from tests.tiers.check_results import CheckResult, Counts, ReleaseRecord
from tests.tiers.tiers import Check

OWN = Path(__file__)
OF_JAVA = r"|params=STORES"
CLOSED = "== 1 failed, 20 passed, 2 skipped, 3 deselected, 1 error in 4.21s (0:00:04) =="


def files_with(marker: str) -> list[Path]:
    marked = re.compile(rf"mark\.{marker}\b{OF_JAVA if marker == 'java' else ''}")
    paths = (path for path in (CHECKOUT / "tests").rglob("test_*.py") if path != OWN)
    return [path for path in paths if marked.search(path.read_text())]


def is_within(path: Path, folders: tuple[str, ...]) -> bool:
    return any(CHECKOUT / folder in (path, *path.parents) for folder in folders)


def test_each_marker_is_of_one_tier() -> None:
    settings = (CHECKOUT / "pyproject.toml").read_text()
    markers = re.findall(r'^    "(\w+)[(:]', settings.partition("markers = [")[2].partition("\n]")[0], re.MULTILINE)

    assert sorted(markers) == sorted((*tiers.SLOW, *tiers.RELEASE))


@pytest.mark.parametrize("marker", tiers.FOLDERS)
def test_marked_tests_are_in_the_folders_that_their_checks_run(marker: str) -> None:
    found = files_with(marker)

    assert found
    # On a stage, tests with a marker of another kind run with the capability's.
    known = (*tiers.FOLDERS[marker], *tiers.FOLDERS["emulator"])
    assert [path for path in found if not is_within(path, known)] == []


def test_tests_that_are_left_to_a_release_are_in_one_of_its_parts() -> None:
    known = (*tiers.PARTS.values(), *tiers.CORE_TESTS, *tiers.FOLDERS["spark"])

    assert [path for path in files_with("release") if sum(is_within(path, (folder,)) for folder in known) != 1] == []


@pytest.mark.parametrize("folder", tiers.PARTS.values())
def test_each_part_of_a_release_has_tests(folder: str) -> None:
    marked = [path for marker in tiers.RELEASE for path in files_with(marker)]

    assert [path for path in marked if is_within(path, (folder,))]


def test_parts_have_different_names() -> None:
    names = [part.name for part in tiers.release_parts()]

    assert len(names) == len(set(names))


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


def test_counts_are_those_of_all_closing_lines() -> None:
    output = f"noise: 7 passed\n{CLOSED}\n5 passed in 0.10s\n"

    assert Counts.of(output) == Counts(passed=25, failed=2, skipped=2)


def test_before_the_first_run_the_summary_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_results, "RESULTS", tmp_path / "none")

    assert check_results.summary([]) == "no tier has run in this checkout"


def test_each_run_leaves_a_line_and_the_summary_names_its_failures(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    good = CheckResult("tests", passed=True, output="20 passed in 1.00s\n", seconds=1, processor_seconds=2)
    bad = CheckResult(
        "stage", passed=False, output=f"FAILED tests/x.py::y[a b] - E\n{CLOSED}\n", seconds=3, processor_seconds=4
    )

    check_results.append("check", [good], seconds=1, load=0.5, to=file)
    check_results.append("test", [good, bad], seconds=3, load=0.5, to=file)
    first, second = map(json.loads, file.read_text().splitlines())
    summary = check_results.summary([str(file)])

    assert (first["tier"], first["passed"], first["failures"]) == ("check", 20, [])
    assert (second["tier"], second["passed"], second["processor_seconds"]) == ("test", 40, 6)
    assert second["failures"] == ["tests/x.py::y[a b]"]
    assert "FAILED tests/x.py::y[a b]" in summary
    assert summary.splitlines()[-2:] == ["make check: 1 runs, 0 with a failure", "make test: 1 runs, 1 with a failure"]


def test_a_release_goes_on_after_the_parts_that_have_passed_with_the_same_sources(tmp_path: Path) -> None:
    record = ReleaseRecord("of these sources", tmp_path / "release.json")
    for name, passed in (("core", True), ("java", False), ("jobs", True), ("core", False)):
        record.keep(CheckResult(name, passed=passed, output="", seconds=0, processor_seconds=0))

    assert record.passed(["core", "java", "jobs"]) == ("jobs",)
    assert replace(record, digest="of others").passed(["core", "java", "jobs"]) == ()
    assert replace(record, digest=None).passed(["jobs", "java"]) == ()


def test_a_complete_release_is_run_anew(tmp_path: Path) -> None:
    record = ReleaseRecord("of these sources", tmp_path / "release.json")
    record.keep(CheckResult("core", passed=True, output="", seconds=0, processor_seconds=0))

    assert record.passed(["core"]) == ()
