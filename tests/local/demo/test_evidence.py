"""Demonstrations run side by side; history begins when the others have done what it counts."""

import threading
from types import SimpleNamespace

import pytest

from signalbox.errors import UnavailableError
from signalbox.flows.splitting import SHARED
from signalbox.flows.trial import Journal, Trial, expect
from signalbox.local.demo import evidence

WAIT_SECONDS = 10.0


def trial() -> Trial:
    return Trial(SimpleNamespace(capabilities={"exchange", "splitting", "history"}), Journal())


def test_rows_are_in_the_order_of_their_capabilities():
    def show(made: Trial) -> None:
        for capability, what in (("history", "a"), ("live", "log")):
            with made.journal.step(capability, what):
                pass

    assert [row.what for row in evidence._rows(trial(), {"both": show})] == ["log", "a"]


def test_events_are_there_before_the_splits_end():
    counted = threading.Event()

    def split(made: Trial) -> None:
        with made.journal.step("splitting", SHARED):
            pass
        assert counted.wait(WAIT_SECONDS)

    def count(made: Trial) -> None:
        evidence._wait_for_events(made)
        counted.set()

    shown = {"exchange and live": lambda _: None, "splitting": split, "history": count}

    assert [row.what for row in evidence._rows(trial(), shown)] == [SHARED]


def test_a_failed_demonstration_ends_those_that_wait_for_it():
    def split(made: Trial) -> None:
        with made.journal.step("splitting", SHARED):
            expect(False, "messages reached wrong consumers")  # noqa: FBT003 - the condition

    with pytest.raises(UnavailableError, match="wrong consumers"):
        evidence._rows(trial(), {"splitting": split, "history": evidence._wait_for_events})
