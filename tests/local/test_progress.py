"""Steps are shown on a terminal and elsewhere, also when threads run them side by side."""

import io
from contextlib import contextmanager, redirect_stderr, suppress

import pytest

from signalbox.local.progress import step


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _time_stands_still(monkeypatch):
    monkeypatch.setattr("signalbox.local.progress.time.monotonic", lambda: 1.0)
    monkeypatch.setenv("COLUMNS", "100")


@contextmanager
def shown_on(stream):
    """Redirect standard error to a stream."""
    with redirect_stderr(stream):
        yield stream


def fail():
    with suppress(ValueError), step("deploy"):
        raise ValueError


def test_a_step_is_a_line_with_its_duration():
    with shown_on(io.StringIO()) as plain:
        with step("deploy") as say:
            assert plain.getvalue() == "  deploy ..."
            say("a detail")
        with step("start"):
            pass

    assert plain.getvalue() == "  deploy ... 0.0 s\n  start ... 0.0 s\n"


def test_steps_side_by_side_have_a_line_at_the_start_and_one_at_the_end():
    with shown_on(io.StringIO()) as plain, step("long"):
        with step("short"):
            pass
        with step("middle"):
            pass

    lines = ["  long ...", "  short ... 0.0 s", "  middle ... 0.0 s", "  long ... 0.0 s"]
    assert plain.getvalue().splitlines() == lines


def test_a_step_that_fails_has_no_duration():
    with shown_on(io.StringIO()) as plain:
        fail()

    assert plain.getvalue() == "  deploy ...\n"


def test_a_terminal_shows_what_runs_and_keeps_what_has_ended():
    with shown_on(Terminal()) as terminal, step("deploy [one]") as say:
        say("a detail [two]")
        with step("start"):
            pass

    shown = terminal.getvalue()
    assert "deploy [one] ..." in shown
    assert shown.index("  start ... 0.0 s\n") < shown.index("  deploy [one] ... 0.0 s\n")


def test_a_step_that_fails_leaves_nothing_on_a_terminal():
    with shown_on(Terminal()) as terminal:
        fail()

    assert "deploy ... 0" not in terminal.getvalue()
