"""Cheap attacks of users of the exchange: forged topics, names and attributes, and ways around a deny and a removal."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from botocore.exceptions import ClientError

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.control.protocol import CommandRejected
from signalbox.exchange.messages.properties import group_of
from signalbox.exchange.model.topics import RoutingKey
from signalbox.local.demo.exchange import exchange_user
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Role
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

MAL = UserName("mal")
REALM = "xs_mal.fifo"
SECONDS = 90  # a deny counts for bound queues within a minute


@dataclass
class Attack:
    """A source with a realm of her own that is bound to her queue and to an archive, and the administrators."""

    mal: ExchangeClient
    administrator: ExchangeClient
    owner: Any
    seen: dict[str, list[Any]] = field(default_factory=dict)

    def send(self, topic: str, **forged: str) -> str:
        """Send to the realm's queue by SQS with forged attributes; return the body."""
        body = secrets.token_hex(8)
        texts = {"topic": topic, **forged}
        self.mal.sqs.send_message(
            QueueUrl=f"{self.mal.url_prefix}{REALM}",
            MessageBody=body,
            MessageAttributes={name: {"DataType": "String", "StringValue": text} for name, text in texts.items()},
            MessageGroupId=group_of(RoutingKey(topic)),
            MessageDeduplicationId=body,
        )
        return body

    def find(self, queue: str, body: str) -> Any:
        """Return a message when it is in a queue."""
        wait_for(lambda: body in self.bodies(queue), f"{body} in {queue}", seconds=SECONDS)
        return next(one for one in self.seen[queue] if one["Body"] == body)

    def bodies(self, queue: str) -> set[str]:
        """Return the bodies that a queue has had so far."""
        url = f"{self.mal.url_prefix}{queue}"
        page = self.owner.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        for one in page.get("Messages", ()):
            self.owner.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
            self.seen.setdefault(queue, []).append(one)
        return {one["Body"] for one in self.seen.get(queue, ())}


@pytest.fixture(scope="module")
def attack(deployment: Deployment) -> Iterator[Attack]:
    administrator = client_of(deployment)
    administrator.declare_exchange(REALM, live={"live": True})
    for queue in ("q_mal", "q_attacked"):
        administrator.declare_queue(queue)
        administrator.bind(REALM, queue, "#")
    with exchange_user(deployment, MAL, Role.SOURCE) as mal:
        yield Attack(mal, administrator, deployment.session().client("sqs"))
    administrator.delete_exchange(REALM, force=True)
    for queue in ("q_mal", "q_attacked"):
        administrator.delete_queue(queue)


def test_topics_of_sessions_are_dead_letters_and_refused_commands(attack: Attack):
    forged = attack.send("wamp.session.on_join")

    dead = attack.find("xs_mal-dlq.fifo", forged)
    assert "such topics are for the events of sessions" in dead["MessageAttributes"]["Reason"]["StringValue"]
    with pytest.raises(CommandRejected, match="such topics are for the events of sessions"):
        attack.mal.ask("publish", {"exchange": REALM, "routing_key": "wamp.session.on_join", "body": "forged"})
    assert forged not in attack.bodies("q_attacked")


def test_forged_attributes_are_headers(attack: Attack):
    body = attack.send("a", publisher="ann", exchange="xpublic", live="{}", sequence="7")

    found = {name: one["StringValue"] for name, one in attack.find("q_attacked", body)["MessageAttributes"].items()}
    assert (found["publisher"], found["exchange"]) == (MAL, REALM)
    headers = json.loads(found["headers"])
    assert headers == {"publisher": "ann", "exchange": "xpublic", "live": "{}", "sequence": "7"}


def test_a_user_replays_as_no_other_publisher(attack: Attack):
    message = {"exchange": "xpublic", "routing_key": "a", "body": secrets.token_hex(8), "message_id": "m-1"}

    attack.mal.ask("replay", {"queue": "q_mal", "messages": [message | {"publisher": "ann", "published_at": 1}]})

    found = attack.find("q_mal", message["body"])["MessageAttributes"]
    assert found["publisher"]["StringValue"] == MAL


def test_a_deny_wins_on_every_way(attack: Attack):
    deny = {"user": MAL, "exchange": REALM, "match": "prefix", "uri": "secret.", "deny": True}
    before = attack.send("secret.a")
    attack.find("q_mal", before)

    for right in ("read", "write"):
        attack.administrator.ask("grant", {**deny, "right": right})

    with pytest.raises(CommandRejected, match=r"may not write 'secret\.a'"):
        attack.mal.ask("publish", {"exchange": REALM, "routing_key": "secret.a", "body": "by command"})
    with pytest.raises(CommandRejected, match="may not read 'secret"):
        attack.mal.bind(REALM, "q_mal", "secret.*")
    sent: list[str] = []

    def is_dead() -> bool:
        sent.append(attack.send("secret.a"))
        return bool(attack.bodies("xs_mal-dlq.fifo") & set(sent))

    wait_for(is_dead, "a dead letter of the denied writer", seconds=SECONDS)
    published = attack.administrator.publish(REALM, "secret.a", "of administrators")
    copy = attack.find("q_attacked", "of administrators")
    assert copy["MessageAttributes"]["message_id"]["StringValue"] == published
    assert "of administrators" not in attack.bodies("q_mal")


def test_a_removed_user_has_no_way_left(attack: Attack, deployment: Deployment):
    with exchange_user(deployment, UserName("gone"), Role.SOURCE) as gone:
        attack.administrator.declare_queue("q_gone")
        attack.administrator.bind(REALM, "q_gone", "#")
        attack.administrator.declare_exchange("xs_gone")
        gone.whoami()

    found = attack.administrator.ask("unbind_user", {"user": "gone"})

    assert found == {
        "user": "gone",
        "unbound": [{"exchange": REALM, "queue": "q_gone", "pattern": "#"}],
        "queues": ["q_gone"],
        "exchanges": ["xs_gone"],
        "unlisted": 0,
    }
    body = attack.send("a")
    attack.find("q_attacked", body)
    assert body not in attack.bodies("q_gone")
    with pytest.raises(ClientError):
        gone.sqs.send_message(QueueUrl=f"{gone.url_prefix}xs_gone", MessageBody="b")
    with pytest.raises(ClientError):
        gone.sqs.receive_message(QueueUrl=f"{gone.url_prefix}q_gone")
    attack.administrator.delete_queue("q_gone")
    attack.administrator.delete_exchange("xs_gone", force=True)
