"""Only its owner gets a command into a control queue: no other user does through SQS itself or as a forged sender."""

import json
import secrets
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.local.demo.exchange import exchange_user
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Role
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

EVE = UserName("eve")
SECONDS = 60
# Every queue of the stage that a function reads, or that a user owns.
QUEUES = (
    *("ExchangeControlQueueUrl", "SplitControlQueueUrl", "ExchangeReplyQueueUrl", "SplitReplyQueueUrl"),
    *("BrokerQueueUrl", "LiveInboxUrl", "LiveOutboxUrl", "ExchangeDeadLetterQueueUrl", "SplitDeadLetterQueueUrl"),
    *("DeadLetterQueueUrl", "LiveOrderedDeadLetterQueueUrl"),
)


@dataclass(frozen=True)
class Attack:
    """A subscriber with a key of her own, and the account's owner."""

    deployment: Deployment
    eve: ExchangeClient
    owner: Any

    def arn(self, url: str) -> str:
        return f"{self.deployment.outputs['BrokerQueueArn'].rpartition(':')[0]}:{url.rpartition('/')[2]}"

    def redrive(self, url: str) -> dict[str, str]:
        return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": self.arn(url), "maxReceiveCount": 1})}

    def dead_letter(self, output: str, mark: str) -> str:
        """Return the reason with which a command became a dead letter; other dead letters stay."""
        found: list[str] = []

        def is_there() -> bool:
            page = self.owner.receive_message(
                QueueUrl=self.deployment.outputs[output],
                MaxNumberOfMessages=10,
                WaitTimeSeconds=1,
                VisibilityTimeout=2,
                MessageAttributeNames=["All"],
            )
            for one in page.get("Messages", ()):
                if mark in one["Body"]:
                    found.append(one["MessageAttributes"]["Reason"]["StringValue"])
                    self.owner.delete_message(
                        QueueUrl=self.deployment.outputs[output], ReceiptHandle=one["ReceiptHandle"]
                    )
            return bool(found)

        wait_for(is_there, f"the dead letter {mark}", seconds=SECONDS)
        return found[0]


@pytest.fixture(scope="module")
def attack(deployment: Deployment) -> Iterator[Attack]:
    with exchange_user(deployment, EVE, Role.SUBSCRIBER) as eve:
        yield Attack(deployment, eve, deployment.session().client("sqs"))


def test_a_user_makes_no_queue_and_changes_none(attack: Attack):
    redrive = attack.redrive(attack.deployment.outputs["ExchangeControlQueueUrl"])
    replies = f"{attack.eve.url_prefix}{attack.eve.names.reply_queue(EVE)}"
    calls = {
        "CreateQueue": lambda: attack.eve.sqs.create_queue(QueueName=f"signalbox-exchange-reply-{EVE}_1"),
        "CreateQueue of the own": lambda: attack.eve.sqs.create_queue(
            QueueName=replies.rpartition("/")[2], Attributes=redrive
        ),
        "SetQueueAttributes": lambda: attack.eve.sqs.set_queue_attributes(QueueUrl=replies, Attributes=redrive),
        "DeleteQueue": lambda: attack.eve.sqs.delete_queue(QueueUrl=replies),
    }

    for call in calls.values():
        with pytest.raises(ClientError, match="AccessDenied"):
            call()


def test_no_queue_of_the_stage_takes_the_dead_letters_of_a_strange_queue(attack: Attack):
    owned = [attack.eve.names.control_queue(EVE), attack.eve.names.reply_queue(EVE)]
    administrator = client_of(attack.deployment)
    administrator.declare_exchange("xs_eve")
    administrator.declare_queue("q_eve")
    names = [*owned, "xs_eve", "xs_eve-dlq", "q_eve", "q_eve-dlq"]
    urls = [attack.deployment.outputs[output] for output in QUEUES]
    urls += [f"{attack.eve.url_prefix}{name}" for name in names]

    try:
        for url in urls:
            ending = ".fifo" if url.endswith(".fifo") else ""
            with pytest.raises(ClientError, match="RedrivePolicy is invalid"):
                attack.owner.create_queue(
                    QueueName=f"eves-{secrets.token_hex(4)}{ending}",
                    Attributes=attack.redrive(url) | ({"FifoQueue": "true"} if ending else {}),
                )
    finally:
        administrator.delete_exchange("xs_eve", force=True)
        administrator.delete_queue("q_eve")


@pytest.mark.parametrize("capability", ["Exchange", "Split"])
def test_a_command_that_sqs_moved_is_dead_lettered_with_its_reason(attack: Attack, capability: str):
    """As before the queue was restricted: a queue that named it then still moves its messages."""
    control = attack.deployment.outputs[f"{capability}ControlQueueUrl"]
    closed = {"RedriveAllowPolicy": json.dumps({"redrivePermission": "denyAll"})}
    mark = secrets.token_hex(8)
    attack.owner.set_queue_attributes(QueueUrl=control, Attributes={"RedriveAllowPolicy": ""})
    source = attack.owner.create_queue(
        QueueName=f"eves-{mark}", Attributes=attack.redrive(control) | {"VisibilityTimeout": "0"}
    )["QueueUrl"]
    attack.owner.set_queue_attributes(QueueUrl=control, Attributes=closed)

    try:
        attack.owner.send_message(QueueUrl=source, MessageBody=json.dumps({"command": "status", "id": mark}))
        for _ in range(2):
            attack.owner.receive_message(QueueUrl=source)

        reason = attack.dead_letter(f"{capability}DeadLetterQueueUrl", mark)
    finally:
        attack.owner.delete_queue(QueueUrl=source)
    assert reason == f"SQS moved the command here from {attack.arn(source)}, without a permission to send it"


def test_a_command_of_another_sender_than_the_owner_is_dead_lettered(attack: Attack):
    mark, url = secrets.token_hex(8), f"{attack.eve.url_prefix}{attack.eve.names.control_queue(EVE)}"

    attack.owner.send_message(QueueUrl=url, MessageBody=json.dumps({"command": "whoami", "id": mark, "reply": True}))

    reason = attack.dead_letter("ExchangeDeadLetterQueueUrl", mark)
    assert f"sent a command to the control queue of user '{EVE}', who has another id" in reason


def test_clients_of_one_user_each_get_their_own_replies_for_no_more_calls_than_with_queues_of_their_own(attack: Attack):
    calls: Counter[str] = Counter()
    sqs: Any = attack.eve.sqs
    sqs.meta.events.register("before-send.sqs.*", lambda event_name, **_: calls.update([event_name.split(".")[-1]]))
    clients = [ExchangeClient(sqs, attack.eve.names, attack.eve.url_prefix, EVE) for _ in range(4)]

    attack.eve.whoami()
    alone = sum(calls.values())
    with ThreadPoolExecutor(len(clients)) as threads:
        found = list(threads.map(lambda client: [client.whoami()["user"] for _ in range(3)], clients))

    assert alone == 3  # send, receive and delete; a queue of its own took two more
    assert found == [[EVE] * 3] * len(clients)
