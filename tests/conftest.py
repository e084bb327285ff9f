"""What all tests share: how properties are tested, and a whole stage for those that need one."""

import fcntl
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from hypothesis import settings

from signalbox.cli.shared.deployment import Deployment, local_deployment
from signalbox.local import cdk, stage
from signalbox.local.stage_folder import StageFolder

# No deadline: how long an example takes says more about the machine's neighbours than about the code. In CI the
# examples are the same every time, so that a failure there is the change's own; at a desk they are new ones.
settings.register_profile("signalbox", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("signalbox")


# A session of boto3 reads the descriptions of services anew, and moto has a session for each test: that took as long as
# the test, or longer.
botocore.session.create_loader = cache(botocore.session.create_loader)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes minutes and end with a browser's short tests, so that all processes end together."""

    def turn(item: pytest.Item) -> tuple[bool, bool]:
        return item.get_closest_marker("minutes") is None, item.get_closest_marker("browser") is not None

    items.sort(key=turn)


@pytest.fixture(scope="session")
def stage_folder(tmp_path_factory: pytest.TempPathFactory) -> StageFolder:
    """Where that stage keeps what belongs to it."""
    return StageFolder(tmp_path_factory.mktemp("stage"))


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The app as it is synthesized for a local stage, by the first of the processes that run tests side by side."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / "assembly"
    with (shared / "assembly.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "manifest.json").exists():
            cdk.synthesize(folder, context=stage.local_context([]), say=lambda _: None)
    return folder


@pytest.fixture(scope="session")
def deployed(stage_folder: StageFolder, assembly: Path) -> Iterator[dict[str, Any]]:
    """What local.json says of a stage that lives as long as the test run, and ends with it however it ends."""
    lifeline, held = os.pipe()
    try:
        yield stage.up(stage_folder, port=0, lifeline=lifeline, assembly=assembly)
    finally:
        stage.down(stage_folder)
        os.close(lifeline)
        os.close(held)


@pytest.fixture(scope="session")
def deployment(deployed: dict[str, Any]) -> Deployment:
    """The same as the commands see it."""
    return local_deployment(deployed)
