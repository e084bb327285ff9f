"""An upgrade and back: a stage's functions use items and messages of the version before, and write the same forms.

The version before is in the golden files (`tests/golden`): what it has stored or has in flight when this version is
deployed over it, and what it can read when it is deployed again.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.live.cursor import Cursor
from signalbox.clients.live.session import Login, join
from signalbox.clients.rendezvous.client import new_client_id
from signalbox.clients.web_socket import connector
from signalbox.control.protocol import ControlReply
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import TopicPattern
from tests.golden.files import golden, store
from tests.golden.on_a_stage import attribute_types, differences, message, moved
from tests.integration.live.stage import TrialRealm
from tests.integration.rendezvous.peers import Parties
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

# The holds and detours of the golden heads are over, and nothing has expired.
AGE = timedelta(seconds=120)
GOLDEN_URLS = "https://sqs.us-east-1.amazonaws.com/111122223333/"
SECONDS = 240.0


@dataclass
class Version:
    """The version before on the stage: its names in the golden files, and those here."""

    deployment: Deployment
    mark: str = field(default_factory=lambda: f"old{secrets.token_hex(3)}")
    at: datetime = field(default_factory=lambda: datetime.now(UTC) - AGE)

    def __post_init__(self) -> None:
        session, outputs = self.deployment.session(), self.deployment.outputs
        self.sqs, self.dynamodb = session.client("sqs"), session.client("dynamodb")
        self.url_prefix = outputs["ExchangeControlQueueUrl"].rpartition("/")[0] + "/"
        mark = self.mark
        self.names = {
            GOLDEN_URLS: self.url_prefix,
            "xs_plain": f"xs_{mark}",
            "xs_alt": f"xs_{mark}_alt",
            "xs_live.fifo": f"xs_{mark}_live.fifo",
            "xs_simple.fifo": f"xs_{mark}_simple.fifo",
            "trial-q_alice_all.fifo": f"q_{mark}_all.fifo",
            "q_alice_all.fifo": f"q_{mark}_all.fifo",
            "q_plain": f"q_{mark}",
            "AIDAALICE": f"AIDA{mark.upper()}",
            "alice": mark,
            "trial-exchange-reply-0011": f"{outputs['ExchangeReplyQueuePrefix']}_{secrets.token_hex(8)}",
            "trial-split-reply-0011": f"{outputs['SplitReplyQueuePrefix']}{secrets.token_hex(16)}",
            "lambda/meme-app": f"lambda/demo-{mark}",
            "c1=": f"{mark}=",
        }

    def name(self, golden_name: str) -> str:
        """Return the name that a golden resource has here."""
        return self.names[golden_name]

    def url(self, golden_name: str) -> str:
        """Return the URL of a golden queue."""
        return self.url_prefix + self.name(golden_name)

    def moved(self, document: Any) -> Any:
        """Return a golden document with the names and at the time of this stage."""
        return moved(document, self.names, to=self.at)

    def send(self, url: str, golden_message: Mapping[str, Any], **changed: str) -> str:
        """Send a golden message; return its id."""
        sent = message(golden_message, self.names, to=self.at, **changed)
        return str(self.sqs.send_message(QueueUrl=url, **sent)["MessageId"])

    def received(self, url: str, count: int) -> list[dict[str, Any]]:
        """Receive and delete messages until there are enough."""
        found: list[dict[str, Any]] = []

        def are_enough() -> bool:
            page = self.sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=1
            ).get("Messages", [])
            for one in page:
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
            found.extend(page)
            return len(found) >= count

        wait_for(are_enough, f"{count} messages in {url}", seconds=SECONDS)
        return found

    def items(self, output: str) -> list[dict[str, Any]]:
        """Return the items of a table that have this version's mark in their keys."""
        pages = self.dynamodb.get_paginator("scan").paginate(
            TableName=self.deployment.outputs[output], ConsistentRead=True
        )
        items = [item for page in pages for item in page["Items"]]
        return [item for item in items if self.mark in item["pk"]["S"] + item["sk"]["S"]]

    def replace(self, output: str, items: Sequence[Any], *, at: datetime | None = None) -> None:
        """Delete this version's items of a table, and store others."""
        table = self.deployment.session().resource("dynamodb").Table(self.deployment.outputs[output])
        for item in self.items(output):
            table.delete_item(Key={name: item[name]["S"] for name in ("pk", "sk")})
        store(table, moved(items, self.names, to=at or self.at), client=self.dynamodb)

    def ask(self, capability: str, commands: Sequence[str]) -> dict[str, Any]:
        """Send golden commands; return the results by command."""
        output = {"exchange": "ExchangeControlQueueUrl", "splitting": "SplitControlQueueUrl"}[capability]
        written = {command: json.loads(self.moved(golden(capability, "control")[command])) for command in commands}
        form = json.loads(golden("splitting", "control")["result"]["MessageBody"]).keys()
        reply_queue, found = written[commands[0]]["reply_queue_url"].rpartition("/")[2], {}
        replies = self.sqs.create_queue(QueueName=reply_queue)["QueueUrl"]
        for command, document in written.items():
            body = json.dumps({**document, "reply_queue_url": replies})
            self.sqs.send_message(QueueUrl=self.deployment.outputs[output], MessageBody=body)
            (reply,) = self.received(replies, 1)
            found[command] = ControlReply.parse(reply["Body"]).value()
            assert json.loads(reply["Body"]).keys() == form
        self.sqs.delete_queue(QueueUrl=replies)
        return found


@pytest.fixture(scope="module")
def before(deployment: Deployment) -> Version:
    return Version(deployment)


@pytest.fixture(scope="module")
def administrator(deployment: Deployment) -> Iterator[ExchangeClient]:
    with client_of(deployment) as client:
        yield client


@pytest.fixture(scope="module")
def declared(before: Version, administrator: ExchangeClient) -> Iterator[list[dict[str, Any]]]:
    """Give the golden exchanges and queues their resources, and put the golden items in place of today's.

    Returns today's items.
    """
    exchanges, queues = ("xs_plain", "xs_alt", "xs_live.fifo", "xs_simple.fifo"), ("q_plain", "q_alice_all.fifo")
    administrator.declare_exchange(before.name("xs_plain"))
    administrator.declare_exchange(before.name("xs_alt"), alternate=before.name("xs_plain"))
    for name in exchanges[2:]:
        administrator.ask("declare_exchange", {"exchange": before.name(name), "live": True})
    for name in queues:
        administrator.declare_queue(before.name(name))
    administrator.bind(before.name("xs_plain"), before.name("q_plain"), "a.*.#")
    administrator.bind(before.name("xs_plain"), before.name("xs_alt"), "#")
    written = before.items("ExchangeTable")
    # Without those that are being deleted, which the next check would delete.
    items = [item for item in golden("exchange", "items") if "_gone" not in item["pk"]["S"]]
    # The head belongs to an exchange whose order is by topic, as that of the messages here.
    before.replace("ExchangeTable", json.loads(json.dumps(items).replace("head#xs_live.fifo", "head#xs_simple.fifo")))
    yield written
    for name in queues:
        administrator.delete_queue(before.name(name))
    for name in exchanges:
        administrator.delete_exchange(before.name(name), force=True)
    before.replace("ExchangeTable", [])


def test_old_bindings_route_an_old_message_to_a_copy_of_the_old_form(before: Version, declared):
    published, copy = (golden("exchange", "messages")[name] for name in ("published", "copy"))
    sent = before.send(before.url("xs_plain"), published)

    (found,) = before.received(before.url("q_plain"), 1)
    assert found["Body"] == published["MessageBody"]
    assert found["MessageAttributes"]["message_id"]["StringValue"] == sent
    assert attribute_types(found) == {**attribute_types(published), **attribute_types(copy)}


def test_an_old_retry_is_delivered_as_it_was(before: Version, declared):
    retry, copy = (golden("exchange", "messages")[name] for name in ("retry", "copy"))
    before.send(before.deployment.outputs["ExchangeControlQueueUrl"].replace("-control", "-retries"), retry)

    (found,) = before.received(before.url("q_plain"), 1)
    assert found["MessageAttributes"] == before.moved(copy["MessageAttributes"])


def test_an_old_head_goes_on_counting(before: Version, declared, administrator: ExchangeClient):
    """The old head has numbered three messages of this key, and a detour of copies through the retries."""
    written = golden("exchange", "messages")
    administrator.bind(before.name("xs_simple.fifo"), before.name("q_alice_all.fifo"), "a.#")
    before.send(before.url("xs_simple.fifo"), written["published in order"], MessageDeduplicationId=before.mark)

    (found,) = before.received(before.url("q_alice_all.fifo"), 1)
    assert found["MessageAttributes"]["sequence"]["StringValue"] == "4"
    # The lifetime of the old queue's messages applies.
    assert attribute_types(found) == attribute_types(written["copy in order"])


def test_old_commands_get_replies_about_old_items(before: Version, declared):
    found = before.ask("exchange", ["bindings", "queues", "exchanges", "whoami", "declare_queue"])

    assert {one["pattern"] for one in found["bindings"]} == {"", "#", "a.*.#"}
    queues = {one["queue"]: one for one in found["queues"]}
    assert queues[before.name("q_alice_all.fifo")]["prefetch"] == 7
    exchanges = {one["exchange"]: one for one in found["exchanges"]}
    assert exchanges[before.name("xs_alt")]["alternate"] == before.name("xs_plain")
    assert exchanges[before.name("xs_live.fifo")]["created_by"] == before.mark


def test_items_of_the_exchange_have_the_old_form(before: Version, declared):
    """Those that were written before the golden ones, and those that followed them."""
    written = golden("exchange", "items")

    assert declared != []
    assert "\n".join(differences([*declared, *before.items("ExchangeTable")], written)) == ""


def test_an_old_offer_is_matched_and_its_record_keeps_its_form(before: Version, parties: Parties):
    client_id = new_client_id()
    (parked,) = (item for item in golden("rendezvous", "items") if item["pk"]["S"] == "offer#parked")
    # The emulator deletes no message by a receipt handle that it did not give.
    parked = {name: value for name, value in parked.items() if name != "receipt_handle"}
    queue = before.deployment.outputs["ClientQueuePrefix"] + client_id
    names = {**before.names, "parked": client_id, "trial-snowflake-client-c1": queue}
    replies = before.sqs.create_queue(QueueName=queue)["QueueUrl"]
    # Available again, and not yet over.
    store(parties.table, [moved(parked, names, to=datetime.now(UTC) - timedelta(seconds=10))], client=before.dynamodb)

    served = parties.proxy().serve_once()

    assert (served.response.offer, served.accepted) == (parked["session_description"]["S"], True)
    (reply,) = before.received(replies, 1)
    before.sqs.delete_queue(QueueUrl=replies)
    answer = golden("rendezvous", "messages")["answer"]
    assert json.loads(reply["Body"]).keys() == json.loads(answer).keys()
    key = {"pk": {"S": f"offer#{client_id}"}, "sk": {"S": "offer"}}
    item = before.dynamodb.get_item(TableName=parties.table.name, Key=key, ConsistentRead=True)["Item"]
    assert differences([item], golden("rendezvous", "items")) == []


@pytest.fixture(scope="module")
def topics(before: Version, place: TrialRealm) -> dict[str, str]:
    """Put the golden logs into the trial realm, under topics of this test; return the topics by their golden names."""
    topics = {name: f"trial.{before.mark}.{name}" for name in ("a.b", "a.c", "kept.c")}
    names = {"xs_live.fifo": place.realm, "bob": place.users["subscriber"][0], **topics}
    kinds = ("log#", "retained#", "retained-for-some#", "topics#")
    items = [item for item in golden("live", "items") if item["pk"]["S"].startswith(kinds)]
    table = before.deployment.session().resource("dynamodb").Table(before.deployment.outputs["LiveTable"])
    store(table, moved(items, names, to=before.at), client=before.dynamodb)
    # The old head has given the last number of the old log.
    (head,) = (item for item in golden("exchange", "items") if item["pk"]["S"].startswith("head#"))
    names = {"head#xs_live.fifo": f"head#{place.realm}", "key#a.b": f"key#{topics['kept.c']}"}
    heads = before.deployment.session().resource("dynamodb").Table(before.deployment.outputs["ExchangeTable"])
    store(heads, [moved(head, names, to=before.at)], client=before.dynamodb)
    return topics


def test_a_subscriber_gets_the_events_of_an_old_log_and_those_of_today(before: Version, place: TrialRealm, topics):
    with place.client("subscriber") as subscriber, place.publisher() as publisher:
        for topic in ("a.c", "kept.c"):
            subscriber.follow(Cursor(TopicPattern.parse(topics[topic]), LastEvents(5)))
        old = sorted((one.sequence, one.omitted_bytes) for one in subscriber.backfill() if not one.is_retained)
        publisher.publish(topics["kept.c"])
        new = subscriber.receive(SECONDS)

    assert old == [(3, None), (4, 200_000), (5, None)]
    assert new is not None
    assert new.sequence == 4
    assert "\n".join(differences(before.items("LiveTable"), golden("live", "items"))) == ""


def test_an_old_frame_in_an_inbox_is_answered(before: Version, place: TrialRealm):
    """A frame that waits in the queue while the functions change, from a client that stays connected."""
    socket = connector(place.url)()
    try:
        join(socket, Login(place.realm, *place.users["admin"]))
        item = _newest_session(before, place)
        connection = item["connection"]["S"]
        frame = golden("live", "inbox")["frame"]
        before.send(before.deployment.outputs["LiveInboxUrl"], frame, MessageGroupId=connection)
        reply = json.loads(socket.receive(SECONDS))
    finally:
        socket.close()

    assert differences([item], golden("live", "items")) == []
    assert reply[:2] == [50, 1]


def _newest_session(before: Version, place: TrialRealm) -> dict[str, Any]:
    found = before.dynamodb.query(
        TableName=before.deployment.outputs["LiveTable"],
        KeyConditionExpression="pk = :realm AND begins_with(sk, :session)",
        ExpressionAttributeValues={":realm": {"S": f"realm#{place.realm}"}, ":session": {"S": "session#"}},
        ConsistentRead=True,
    )["Items"]
    return max(found, key=lambda item: int(item["joined_at"]["N"]))


def test_old_commands_of_splitting_find_old_items(before: Version):
    items = [item for item in golden("splitting", "items") if "#lambda/meme-app" in item["pk"]["S"]]
    # The old lock is held for a minute, in which no function creates the queues of this split.
    before.replace("SplitTable", items, at=datetime.now(UTC))

    found = before.ask("splitting", ["registries", "explain"])
    before.replace("SplitTable", [])

    targets = {one["target"]: one["documents"] for one in found["registries"]}
    (registry,) = (item for item in items if item["sk"]["S"] == "registry")
    assert targets[before.name("lambda/meme-app")] == json.loads(registry["documents"]["S"])
    assert len(found["explain"]["decisions"]) == 1
