"""What all tests share: how properties are tested, and a whole stage for those that need one."""

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
import pytest
from hypothesis import settings

from signalbox.cli.deployment import Deployment, local_deployment
from signalbox.local import deploy
from signalbox.local.state import State

# No deadline: how long an example takes says more about the machine's neighbours than about the code. In CI the
# examples are the same every time, so that a failure there is the change's own; at a desk they are new ones.
settings.register_profile("signalbox", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("signalbox")


# A session of boto3 reads the descriptions of services anew, and moto has a session for each test: that took as long as
# the test, or longer.
botocore.session.create_loader = cache(botocore.session.create_loader)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes minutes, so that no worker is left alone with it when the others have ended."""
    items.sort(key=lambda item: item.get_closest_marker("minutes") is None)


@pytest.fixture(scope="session")
def stage_folder(tmp_path_factory: pytest.TempPathFactory) -> State:
    """Where that stage keeps what belongs to it."""
    return State(tmp_path_factory.mktemp("stage"))


@pytest.fixture(scope="session")
def deployed(stage_folder: State) -> Iterator[dict[str, Any]]:
    """What local.json says of a stage that lives as long as the test run, and ends with it however it ends."""
    lifeline, held = os.pipe()
    try:
        yield deploy.up(stage_folder, port=0, lifeline=lifeline)
    finally:
        deploy.down(stage_folder)
        os.close(lifeline)
        os.close(held)


@pytest.fixture(scope="session")
def deployment(deployed: dict[str, Any]) -> Deployment:
    """The same as the commands see it."""
    return local_deployment(deployed)
