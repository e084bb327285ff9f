"""An emulator for the tests, on a free port and in a folder with a space in its name."""

import os
from collections.abc import Iterator

import pytest

from signalbox.local.emulator import lifecycle
from signalbox.local.emulator.lifecycle import Emulator
from signalbox.local.state import State


@pytest.fixture(scope="session")
def stage_state(tmp_path_factory: pytest.TempPathFactory) -> State:
    return State(tmp_path_factory.mktemp("a stage"))


@pytest.fixture(scope="session")
def running(stage_state: State) -> Iterator[Emulator]:
    lifeline, held = os.pipe()
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("THEIR_SECRET", "not for functions")
            started = lifecycle.start(stage_state, port=0, lifeline=lifeline)
        yield started
    finally:
        lifecycle.stop(stage_state)
        os.close(lifeline)
        os.close(held)
