"""The table of headline figures."""

from pathlib import Path

import pytest

from benchmarks.shared.headlines import BEGIN, END, Headline, keep, published, with_table
from benchmarks.shared.machine import this_machine

MACHINE = this_machine(upstream=None)


def test_figures_that_a_run_did_not_measure_stay_as_they_are(tmp_path: Path):
    keep("live", [Headline("calls", "9"), Headline("rate", "54", "crossbar: 60")], MACHINE, folder=tmp_path)
    keep("live", [Headline("calls", "6")], MACHINE, folder=tmp_path)

    found = [one.headline for one in published(tmp_path)]

    assert found == [Headline("calls", "6"), Headline("rate", "54", "crossbar: 60")]


def test_a_run_without_figures_writes_no_file(tmp_path: Path):
    keep("live", [], MACHINE, folder=tmp_path)

    assert list(tmp_path.iterdir()) == []


def table(folder: Path, old: str = "") -> list[str]:
    """Return the rows of a page whose table had the rows `old`."""
    page = with_table(f"# Benchmarks\n\n{BEGIN}\n\n| a |\n| --- |\n{old}\n{END}\n\nmore\n", published(folder))
    assert page.startswith(f"# Benchmarks\n\n{BEGIN}\n\n| program | figure |")
    assert page.endswith(f" |\n\n{END}\n\nmore\n")
    return [line for line in page.splitlines() if line.startswith("|")][2:]


def test_programs_are_sorted_and_each_row_has_the_circumstances_of_its_run(tmp_path: Path):
    keep("splitting", [Headline("calls", "0.3")], MACHINE, folder=tmp_path)
    keep("exchange", [Headline("calls", "0.2", "floor: 0.2")], MACHINE, folder=tmp_path)

    first, second = table(tmp_path)

    assert first.startswith("| exchange | calls | 0.2 | floor: 0.2 | 20")
    assert second.startswith("| splitting | calls | 0.3 | - | 20")
    assert first.endswith(f" | {MACHINE.cores} | {MACHINE.load_before} |")


def test_rows_of_figures_that_this_machine_did_not_measure_stay(tmp_path: Path):
    keep("live", [Headline("calls", "6")], MACHINE, folder=tmp_path)
    of_splitting = "| splitting | calls | 0.3 | - | 2026-11-20 | 1234567 | 2 | 0.1 |"
    of_live = "| live | rate | 54 | crossbar: 60 | 2026-11-20 | 1234567 | 2 | 0.1 |"

    found = table(tmp_path, f"{of_splitting}\n{of_live}\n{of_live.replace('rate', 'calls')}\n")

    assert [found[0], found[2]] == [of_live, of_splitting]
    assert found[1].startswith("| live | calls | 6 | - | 20")


def test_a_page_without_the_marks_is_an_error():
    with pytest.raises(ValueError, match="headlines"):
        with_table("# Benchmarks", [])
