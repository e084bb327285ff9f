"""The examples of `examples/cdk` and of the page, deployed from the wheel in an environment of its own, and used."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from signalbox.cli.exchange.stage import stage_name
from signalbox.cli.main import app as signalbox
from signalbox.clients.control import ControlClient
from signalbox.clients.exchange.client import stage_client
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import Login
from signalbox.clients.stage_session import stack_outputs
from signalbox.clients.web_socket import connector
from signalbox.errors import UnavailableError
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.local.files import CHECKOUT
from tests.integration.shared.stages import Stages, functions, resources
from tests.patience import wait_for
from tests.wheels import uv, wheel

pytestmark = [pytest.mark.emulator, pytest.mark.release]

EXAMPLES, PAGE = CHECKOUT / "examples" / "cdk", CHECKOUT / "docs" / "cdk.md"
WAIT_SECONDS = 120
# The app around the constructs of the page.
AROUND = """
from aws_cdk import App, CfnOutput, Duration, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_lambda_event_sources import SqsEventSource
{imports}

class Shop(Stack):
    def __init__(self, scope):
        super().__init__(scope, "whole")
        existing_queue = sqs.Queue(self, "Existing", queue_name="whole-orders")
        existing_function = lambda_.Function(
            self,
            "Consumer",
            code=lambda_.Code.from_inline("def handler(event, context): pass"),
            handler="index.handler",
            runtime=lambda_.Runtime.PYTHON_3_13,
        )
        existing_function.add_event_source(SqsEventSource(existing_queue))
{constructs}

app = App()
Shop(app)
app.synth()
"""
# The order bus, with a queue whose key the app does not name.
WITH_A_FOREIGN_KEY = {
    "from aws_cdk import aws_lambda": "from aws_cdk import aws_kms as kms\nfrom aws_cdk import aws_lambda",
    'queue_name="shop-audit")': 'queue_name="shop-audit", encryption_master_key=FOREIGN)',
    "mail, audit =": 'FOREIGN = kms.Key(stack, "Foreign", removal_policy=RemovalPolicy.DESTROY)\nmail, audit =',
    'bus.bind(audit, "orders.#")': 'bus.bind(sqs.Queue.from_queue_arn(stack, "Again", audit.queue_arn), "#")',
}


@dataclass(frozen=True, slots=True)
class Shop:
    """An account with apps that were synthesized by a Python with the wheel alone."""

    stages: Stages
    python: Path
    folder: Path

    def deploy(self, app: str, *, stack: str, attempt: int = 1, by_cdk: bool = False) -> dict[str, str]:
        """Synthesize an app, deploy it, and return the outputs of its stack."""
        file, assembly = self.folder / f"{stack}.py", self.folder / f"{stack}-{attempt}"
        file.write_text(app)
        context = json.dumps({"signalbox:local": "true"})
        run(self.python, "-I", file, folder=self.folder, CDK_OUTDIR=str(assembly), CDK_CONTEXT_JSON=context)
        (self.stages.deploy_by_cdk if by_cdk else self.stages.deploy_again)(assembly)
        return stack_outputs(self.stages.session, stack)

    def client(self, service: str) -> Any:
        return self.stages.session.client(service)

    def bodies(self, queue: str, number: int) -> list[str]:
        """Wait for this number of messages in a queue; return their bodies in alphabetical order."""
        sqs, found = self.client("sqs"), list[str]()
        url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]

        def have_come() -> bool:
            for one in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", ()):
                sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
                found.append(one["Body"])
            return len(found) >= number

        wait_for(have_come, f"{number} messages are in {queue}", seconds=WAIT_SECONDS)
        return sorted(found)

    def publish(self, *topics: str) -> None:
        """Let the publisher of the app publish messages whose bodies are their topics."""
        for topic in topics:
            payload = json.dumps({"topic": topic, "body": topic})
            called = self.client("lambda").invoke(FunctionName="shop-publisher", Payload=payload)
            assert "FunctionError" not in called, called["Payload"].read()

    def delete(self, stack: str) -> None:
        self.client("cloudformation").delete_stack(StackName=stack)
        waiter = self.client("cloudformation").get_waiter("stack_delete_complete")
        waiter.wait(StackName=stack, WaiterConfig={"Delay": 1, "MaxAttempts": WAIT_SECONDS})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("cdk")
    own = folder / "venv" / "bin" / "python"
    uv("venv", "--quiet", "--python", sys.executable, folder / "venv")
    uv("pip", "install", "--quiet", "--python", own, wheel(folder / "wheel", CHECKOUT / "packages" / "signalbox-cdk"))
    with Stages.started(folder / ".signalbox") as started:
        yield Shop(started, own, folder)


def run(*command: str | Path, folder: Path, **environment: str) -> None:
    done = subprocess.run(  # noqa: S603 - the Python of the wheel
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_examples_have_at_most_ten_lines_of_signalbox():
    files = sorted(EXAMPLES.glob("*.py"))
    assert [file.name for file in files] == ["live_log.py", "order_bus.py", "split.py"]
    for file in files:
        ours = re.search(r"^(?:bus|split) = .*?(?=^for )", file.read_text(), re.DOTALL | re.MULTILINE)
        assert ours is not None
        assert len(ours[0].splitlines()) <= 10


def test_the_bindings_of_an_order_bus_come_change_and_go_with_the_app(shop: Shop):
    app, before = (EXAMPLES / "order_bus.py").read_text(), resources(shop.stages.session)
    shop.deploy(app, stack="shop")

    shop.publish("orders.new", "orders.paid", "returns.new")
    assert shop.bodies("shop-mail", 1) == ["orders.new"]
    assert shop.bodies("shop-audit", 2) == ["orders.new", "orders.paid"]

    changed = app.replace('bus.bind(mail, "orders.new")', 'bus.bind(mail, "returns.#")')
    shop.deploy(changed, stack="shop", attempt=2)
    shop.publish("orders.new", "returns.new")
    assert (shop.bodies("shop-mail", 1), shop.bodies("shop-audit", 1)) == (["returns.new"], ["orders.new"])

    foreign = changed
    for old, new in WITH_A_FOREIGN_KEY.items():
        assert old in foreign
        foreign = foreign.replace(old, new)
    with pytest.raises(UnavailableError, match="encrypted with the key"):
        shop.deploy(foreign, stack="shop", attempt=3)
    shop.publish("orders.late", "returns.late")
    assert (shop.bodies("shop-mail", 1), shop.bodies("shop-audit", 1)) == (["returns.late"], ["orders.late"])

    shop.delete("shop")
    assert left_since(before, shop, function="shop-publisher") == set()


def left_since(before: set[tuple[str, str]], shop: Shop, *, function: str = "") -> set[tuple[str, str]]:
    """Return the new resources, without those of all deployments and the log group of a function of the app."""
    found = resources(shop.stages.session) - before - {("log group", f"/aws/lambda/{function}")}
    return {one for one in found if one[0] not in ("bucket", "parameter")}


def test_a_split_finds_the_queue_of_the_consumer_of_the_app(shop: Shop):
    outputs = shop.deploy((EXAMPLES / "split.py").read_text(), stack="mail")
    (consumer,) = (name for name in functions(shop.stages.session) if name.startswith("mail-Consumer"))
    control = ControlClient(shop.client("sqs"), outputs["SplitControlQueueUrl"], outputs["SplitReplyQueueUrl"])

    found = control.ask("discover", {"target": f"lambda/{consumer}"})

    assert "QUEUE_URL" in json.dumps(found)


def test_a_live_log_shows_past_and_new_events_to_everyone_and_goes_with_what_commands_made(shop: Shop):
    before = resources(shop.stages.session)
    outputs = shop.deploy((EXAMPLES / "live_log.py").read_text(), stack="news")
    publisher, realm = stage_client(shop.client("sqs"), outputs), "xnews_public.fifo"
    publisher.publish(realm, "weather.north", '"past"')
    endpoint = shop.client("sqs").meta.endpoint_url.replace("http", "ws", 1)
    url = f"{endpoint}/_aws/execute-api/{outputs['LiveWebSocketApiId']}/live"

    with LiveClient(connector(url), Login(realm)) as client:
        client.follow(PatternCursor(TopicPattern.parse("weather.north"), LastEvents(1)))
        received = [client.receive(WAIT_SECONDS)]
        publisher.publish(realm, "weather.north", '"new"')
        received.append(client.receive(WAIT_SECONDS))

    assert [one and one.topic for one in received] == ["weather.north"] * 2
    assert [one and one.payload.arguments for one in received] == [("past",), ("new",)]
    publisher.declare_exchange("xby_command")
    shop.delete("news")
    assert {kind for kind, _ in left_since(before, shop)} == {"queue", "mapping"}
    command = ["destroy", stage_name(outputs["ExchangeControlQueueUrl"]), "--aws", "--yes", "--json"]
    assert CliRunner().invoke(signalbox, command, env=shop.stages.environment, catch_exceptions=False).exit_code == 0
    assert left_since(before, shop) == set()


def test_the_example_of_the_page_is_deployed_as_it_stands(shop: Shop):
    examples = re.findall(r"```python construct\n(.*?)```", PAGE.read_text(), re.DOTALL)
    imports, _, constructs = "".join(examples).partition("\n\n")
    (shop.folder / "bridges.jsonl").write_text("")
    body = "".join(f"        {line}\n" if line else "\n" for line in constructs.splitlines())

    outputs = shop.deploy(AROUND.format(imports=imports, constructs=body), stack="whole", by_cdk=True)

    client = stage_client(shop.client("sqs"), outputs)
    (binding,) = client.bindings()
    assert (binding["queue"], binding["pattern"]) == ("sqs:whole-orders", "orders.#")
    assert len(outputs) > 30
