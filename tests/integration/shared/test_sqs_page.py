"""The page docs/sqs.md on a stage: each example as it stands, with the policy of the page."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from signalbox.aws.exchange.policy import ExchangeLocation, user_policy
from signalbox.clients.deployment import Deployment
from signalbox.exchange.model.names import StageNames
from signalbox.flows.consumer import DeployedConsumer
from signalbox.local import setup
from signalbox.local.demo.splitting import CONSUMER, QUEUE
from signalbox.local.files import CHECKOUT
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests import wheels
from tests.docs.markdown import Block, blocks
from tests.integration.rendezvous.peers import Parties
from tests.integration.splitting.sessions import Users
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

BLOCKS = [*blocks(CHECKOUT / "docs" / "sqs.md")]
AWS_CLI = "awscli==1.46.3"
VENV = CHECKOUT / ".signalbox" / "aws-cli"
SECONDS = 540


def of(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.kind == kind]


def aws_cli() -> Path:
    """Return the folder of `aws`, installed once into an environment of its own."""
    stamp = setup.stamp(VENV, [Path(__file__)])
    if not setup.is_current(VENV, stamp):
        shutil.rmtree(VENV, ignore_errors=True)
        wheels.uv("venv", VENV)
        wheels.uv("pip", "install", "--python", VENV / "bin" / "python", AWS_CLI)
        (VENV / "stamp").write_text(stamp)
    return VENV / "bin"


def policy(kind: str, deployment: Deployment, account: str) -> str:
    sqs, queue = deployment.session().client("sqs"), deployment.outputs["ExchangeControlQueueUrl"]
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["KmsMasterKeyId"])["Attributes"]
    (block,) = of(kind)
    text = block.code.replace("REGION", deployment.region).replace("ACCOUNT", account)
    return text.replace("KEY_ARN", found["KmsMasterKeyId"])


@pytest.fixture
def administrator(deployment: Deployment, deployed: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Yield the key of an IAM user with the policy of the page, that of splitting, and a producer's and a client's."""
    iam, name = deployment.session().client("iam"), f"by-sqs-{secrets.token_hex(4)}"
    arn = f"arn:aws:sqs:{deployment.region}:{deployed['account']}:"
    sends = {"Effect": "Allow", "Action": "sqs:SendMessage"}
    queues = [f"{arn}{QUEUE}", deployment.outputs["BrokerQueueArn"]]
    reads = {"Effect": "Allow", "Action": ["sqs:GetQueueUrl", "sqs:ReceiveMessage"]}
    others = [{**sends, "Resource": queues}, {**reads, "Resource": [f"{arn}snowflake-client-*", f"{arn}{QUEUE}"]}]
    documents = {
        "administrator": policy("administrator", deployment, deployed["account"]),
        "others": json.dumps({"Version": "2012-10-17", "Statement": others}),
    }
    iam.create_user(UserName=name)
    for policy_name, document in documents.items():
        iam.put_user_policy(UserName=name, PolicyName=policy_name, PolicyDocument=document)
    iam.attach_user_policy(UserName=name, PolicyArn=deployment.outputs["SplitUserPolicyArn"])
    key = iam.create_access_key(UserName=name)["AccessKey"]
    yield {"access_key_id": key["AccessKeyId"], "secret_access_key": key["SecretAccessKey"]}
    iam.delete_access_key(UserName=name, AccessKeyId=key["AccessKeyId"])
    iam.detach_user_policy(UserName=name, PolicyArn=deployment.outputs["SplitUserPolicyArn"])
    for policy_name in documents:
        iam.delete_user_policy(UserName=name, PolicyName=policy_name)
    iam.delete_user(UserName=name)


def bash(script: str, folder: Path) -> str:
    """Run a script in a folder like a checkout, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), str(aws_cli()), environment["PATH"]])
    done = subprocess.run(  # noqa: S603 - the examples of the page
        ["/bin/bash", "-ec", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def polling(parties: Parties) -> Iterator[None]:
    """Keep a proxy polling during the block."""
    over = threading.Event()

    def poll() -> None:
        while not over.is_set():
            parties.proxy().serve_once()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.release
def test_the_examples_of_the_page_run(
    administrator: dict[str, str], deployment: Deployment, deployed: dict[str, Any], parties: Parties, tmp_path: Path
):
    prefix = deployment.outputs["TemporaryQueuePrefix"]
    consumer = DeployedConsumer.deploy(deployment.session(), CONSUMER, [QUEUE], temporary_prefix=prefix)
    users = Users(deployment, consumer.target)
    users.apply(consumer.registry())
    (tmp_path / ".signalbox").mkdir()
    (tmp_path / ".signalbox" / "local.json").write_text(json.dumps({**deployed, "admin_credentials": administrator}))
    (tmp_path / "examples").symlink_to(CHECKOUT / "examples")
    examples = "".join(block.code for kind in ("local", "sqs", "offer") for block in of(kind))

    with polling(parties):
        printed = bash(f"{examples}\npython examples/sqs/stage.py offer $BROKER examples/sqs/offer.txt", tmp_path)

    (reply,) = of("reply")
    error = json.loads(reply.code)["error"]
    for text in (f'"error":"{error}"', "order.17.paid", "1 order.17 is paid\n2 order.17 is sent\n", "got by ann"):
        assert text in printed
    assert (printed.count('{\\"answer\\"'), printed.count('{"answer"')) == (1, 1)
    users.wait_until_over()
    assert _reason(deployment) is None


def _reason(deployment: Deployment) -> str | None:
    """Return the reason of a dead letter of the ordered exchange, whose message the page publishes in its group."""
    sqs, prefix = deployment.session().client("sqs"), deployment.outputs["ExchangeControlQueueUrl"].rpartition("/")[0]
    exchange, dead = f"{prefix}/xorders.fifo", f"{prefix}/xorders-dlq.fifo"
    names: Any = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]

    def waiting(url: str) -> int:
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(map(int, found.values()))

    wait_for(lambda: waiting(exchange) == 0, "the message is routed", seconds=SECONDS)
    messages = sqs.receive_message(QueueUrl=dead, MessageAttributeNames=["All"]).get("Messages", ())
    return messages[0]["MessageAttributes"]["Reason"]["StringValue"] if messages else None


def test_the_policy_of_a_user_is_the_one_that_is_attached():
    location = ExchangeLocation(StageNames("signalbox"), "arn:aws:sqs:REGION:ACCOUNT:", "KEY_ARN")

    (block,) = of("user")

    assert json.loads(block.code) == user_policy(UserName("alice"), Role.SOURCE, Ownership.STRICT, location)
