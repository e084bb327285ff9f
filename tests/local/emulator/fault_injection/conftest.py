"""An emulator with fault injection, a session without retries, and functions whose roles count already."""

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config

from signalbox.local.emulator import lifecycle
from signalbox.local.emulator.lifecycle import Emulator
from signalbox.local.stage_folder import StageFolder

SEED = 3
Client = Callable[[str], Any]


@pytest.fixture(scope="session")
def faulty_folder(tmp_path_factory: pytest.TempPathFactory) -> StageFolder:
    return StageFolder(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="session")
def faulty(faulty_folder: StageFolder) -> Iterator[Emulator]:
    """Return an emulator with fault injection."""
    with lifecycle.lifeline() as lifeline:
        try:
            yield lifecycle.start(faulty_folder, port=0, lifeline=lifeline, faults=SEED)
        finally:
            lifecycle.stop(faulty_folder)


@pytest.fixture(scope="session")
def session(faulty: Emulator) -> boto3.Session:
    """Return the session of the administrator, whose clients retry as usual."""
    return faulty.session()


@pytest.fixture(scope="session")
def once(session: boto3.Session) -> Client:
    """Return clients of services that never retry."""
    return lambda service: session.client(service, config=Config(retries={"total_max_attempts": 1}))
