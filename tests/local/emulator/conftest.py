"""An emulator for the tests, on a free port and in a folder with a space in its name."""

from collections.abc import Iterator

import pytest

from signalbox.local.emulator import lifecycle
from signalbox.local.emulator.lifecycle import Emulator
from signalbox.local.stage_folder import StageFolder


@pytest.fixture(scope="session")
def emulator_folder(tmp_path_factory: pytest.TempPathFactory) -> StageFolder:
    return StageFolder(tmp_path_factory.mktemp("a stage"))


@pytest.fixture(scope="session")
def running(emulator_folder: StageFolder) -> Iterator[Emulator]:
    with lifecycle.lifeline() as lifeline:
        try:
            with pytest.MonkeyPatch.context() as environment:
                environment.setenv("THEIR_SECRET", "not for functions")
                started = lifecycle.start(emulator_folder, port=0, lifeline=lifeline)
            yield started
        finally:
            lifecycle.stop(emulator_folder)
