"""The examples of `examples/cdk`, deployed from the wheel in an environment that holds nothing else, and used."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from uv import find_uv_bin

from signalbox.clients.control import ControlClient
from signalbox.clients.exchange.client import stage_client
from signalbox.clients.stage_session import stack_outputs
from signalbox.local.cdk import QUALIFIER
from signalbox.local.files import CHECKOUT
from tests.integration.shared.stages import Stages, functions
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

EXCHANGE, QUEUE = "xorders", "q_orders"


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    with Stages.started(tmp_path_factory.mktemp("cdk") / ".signalbox") as started:
        # As `cdk bootstrap` does.
        version = f"/cdk-bootstrap/{QUALIFIER}/version"
        started.session.client("ssm").put_parameter(Name=version, Value="30", Type="String")
        yield started


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("wheel")
    run(find_uv_bin(), "build", "--quiet", "--wheel", "--out-dir", folder, CHECKOUT / "packages" / "signalbox-cdk")
    run(find_uv_bin(), "venv", "--quiet", "--python", sys.executable, folder / "venv")
    (wheel,) = folder.glob("*.whl")
    own = folder / "venv" / "bin" / "python"
    run(find_uv_bin(), "pip", "install", "--quiet", "--python", own, wheel)
    return own


def run(*command: str | Path, **environment: str) -> None:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr[-3000:]


def deployed(stages: Stages, python: Path, example: str, *, stack: str) -> dict[str, str]:
    """Synthesize an example, deploy it, and return the outputs of its stack."""
    assembly = python.parents[2] / example
    context = json.dumps({"signalbox:local": "true"})
    run(python, "-I", CHECKOUT / "examples" / "cdk" / example, CDK_OUTDIR=str(assembly), CDK_CONTEXT_JSON=context)
    stages.deploy_again(assembly)
    return stack_outputs(stages.session, stack)


def test_an_order_bus_routes_to_the_queues_that_are_bound(stages: Stages, python: Path):
    outputs = deployed(stages, python, "order_bus.py", stack="shop")
    client = stage_client(stages.session.client("sqs"), outputs)
    client.declare_exchange(EXCHANGE)
    client.declare_queue(QUEUE)
    client.bind(EXCHANGE, QUEUE, "orders.#")

    client.publish(EXCHANGE, "orders.new", "1")

    with client.consumer(QUEUE) as consumer:
        received = wait_for(consumer.receive, "the message arrives")
    assert received


def test_a_split_finds_the_queue_of_the_consumer_of_the_app(stages: Stages, python: Path):
    outputs = deployed(stages, python, "split.py", stack="mail")
    (consumer,) = (name for name in functions(stages.session) if name.startswith("mail-Consumer"))
    control = ControlClient(
        stages.session.client("sqs"), outputs["SplitControlQueueUrl"], outputs["SplitReplyQueueUrl"]
    )

    found = control.ask("discover", {"target": f"lambda/{consumer}"})

    assert "QUEUE_URL" in json.dumps(found)
