"""Tests wait longer on a busy machine, and as long as there is progress."""

import os

import pytest

from tests import patience


@pytest.fixture
def machine(monkeypatch):
    """A machine of two cores whose clock and load a test sets; a second passes in each pause."""

    class Machine:
        now, load = 0.0, 0.0

    def sleep(_seconds):
        Machine.now += 1

    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (Machine.load, 0.0, 0.0))
    monkeypatch.setattr(patience.time, "monotonic", lambda: Machine.now)
    monkeypatch.setattr(patience.time, "sleep", sleep)
    return Machine


@pytest.mark.parametrize(("load", "passed"), [(0, 10), (2, 10), (8, 40)])
def test_patience_lasts_longer_by_the_processes_that_share_a_core(machine, load, passed):
    machine.load = load

    with pytest.raises(AssertionError, match="within 10 s of a free core, not the end"):
        patience.wait_for(lambda: False, "the end", seconds=10)

    assert machine.now == passed


def test_a_load_that_ends_counts_while_it_lasts(machine):
    machine.load = 4

    def look():
        machine.load = 4 if machine.now < 6 else 0

    with pytest.raises(AssertionError):
        patience.wait_for(look, "the end", seconds=10)

    assert machine.now in (13, 14)  # six seconds counted as three


def test_progress_renews_patience(machine):
    assert patience.wait_for(lambda: machine.now >= 100, "the end", seconds=10, progress=lambda: machine.now // 8)
    with pytest.raises(AssertionError):
        patience.wait_for(lambda: False, "the end", seconds=10, progress=lambda: machine.now // 12)


def test_a_machine_that_is_busy_with_other_things_does_fewer_at_once(machine):
    counts = {}
    for machine.load in (0, 6, 12, 60):
        counts[machine.load] = patience.fewer(24)

    assert counts == {0: 24, 6: 24, 12: 12, 60: 8}
