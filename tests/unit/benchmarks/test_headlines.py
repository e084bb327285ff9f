"""The table of headline figures."""

from pathlib import Path

import pytest

from benchmarks.shared.headlines import BEGIN, END, Headline, keep, markdown, published, with_table
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


def test_programs_are_sorted_and_each_row_has_the_circumstances_of_its_run(tmp_path: Path):
    keep("splitting", [Headline("calls", "0.3")], MACHINE, folder=tmp_path)
    keep("exchange", [Headline("calls", "0.2", "floor: 0.2")], MACHINE, folder=tmp_path)

    _, _, first, second = markdown(published(tmp_path)).splitlines()

    assert first.startswith("| exchange | calls | 0.2 | floor: 0.2 | 20")
    assert second.startswith("| splitting | calls | 0.3 | - | 20")
    assert first.endswith(f" | {MACHINE.cores} | {MACHINE.load_before} |")


def test_the_table_replaces_what_is_between_the_marks():
    page = f"# Benchmarks\n\n{BEGIN}\n\nold\n\n{END}\n\nmore\n"

    assert with_table(page, "new") == f"# Benchmarks\n\n{BEGIN}\n\nnew\n\n{END}\n\nmore\n"


def test_a_page_without_the_marks_is_an_error():
    with pytest.raises(ValueError, match="headlines"):
        with_table("# Benchmarks", "new")
