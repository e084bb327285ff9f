"""A whole stage for the tests: an emulator of their own, on a free port, with the app deployed into it."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from signalbox.cli.deployment import Deployment, local_deployment
from signalbox.local import deploy
from signalbox.local.state import State


@pytest.fixture(scope="session")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What local.json says of a stage that lives as long as the test run, and ends with it however it ends."""
    state = State(tmp_path_factory.mktemp("stage"))
    lifeline, held = os.pipe()
    try:
        yield deploy.up(state, port=0, lifeline=lifeline)
    finally:
        deploy.down(state)
        os.close(lifeline)
        os.close(held)


@pytest.fixture(scope="session")
def deployment(deployed: dict[str, Any]) -> Deployment:
    """The same as the commands see it."""
    return local_deployment(deployed)
