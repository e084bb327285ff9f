"""An emulator with weather, a session without retries, and functions whose roles count already."""

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config

from signalbox.local.emulator import lifecycle
from signalbox.local.emulator.lifecycle import Emulator
from signalbox.local.emulator.weather.conditions import Weather
from signalbox.local.stage_folder import StageFolder

SEED = 3
ACCOUNT_CONCURRENCY = 4
Client = Callable[[str], Any]


@pytest.fixture(scope="session")
def stormy_folder(tmp_path_factory: pytest.TempPathFactory) -> StageFolder:
    return StageFolder(tmp_path_factory.mktemp("stormy"))


@pytest.fixture(scope="session")
def stormy(stormy_folder: StageFolder) -> Iterator[Emulator]:
    """Return an emulator with weather."""
    with lifecycle.lifeline() as lifeline:
        try:
            yield lifecycle.start(stormy_folder, port=0, lifeline=lifeline, weather=Weather(SEED, ACCOUNT_CONCURRENCY))
        finally:
            lifecycle.stop(stormy_folder)


@pytest.fixture(scope="session")
def session(stormy: Emulator) -> boto3.Session:
    """Return the session of the administrator, whose clients retry as usual."""
    return stormy.session()


@pytest.fixture(scope="session")
def once(session: boto3.Session) -> Client:
    """Return clients of services that never retry."""
    return lambda service: session.client(service, config=Config(retries={"total_max_attempts": 1}))
