"""What a stage does around live: rights that end, other ways in and out, exchanges that are not live, and its page."""

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from signalbox.aws.live.sessions import DynamoRealmSessions
from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import Cursor, ReceivedEvent
from signalbox.clients.live.session import JoinRefused, Login, RequestRefused, SubscriptionRevoked
from signalbox.clients.web_socket import connector
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.local.demo.live import live_rows
from signalbox.local.files import CHECKOUT
from tests.integration.live.stage import Place, new_topic
from tests.integration.rendezvous.peers import dead_letter_reasons

pytestmark = pytest.mark.emulator

SOON_SECONDS = 30.0
QUIET_SECONDS = 3.0


@pytest.fixture
def administrator(deployment: Deployment) -> Iterator[ExchangeClient]:
    with client_of(deployment) as client:
        yield client


def taken(client: LiveClient, number: int) -> list[ReceivedEvent]:
    """Take so many events."""
    found = [client.receive(SOON_SECONDS) for _ in range(number)]
    assert None not in found, found
    return [event for event in found if event is not None]


def follow(client: LiveClient, topic: str) -> None:
    """Subscribe, and wait until that has happened."""
    client.follow(Cursor(TopicPattern.parse(topic), LastEvents(1)))
    assert list(client.backfill()) == []


def seen_until_quiet(client: LiveClient) -> list[ReceivedEvent]:
    """Return what comes; some clients are told that their right is gone, and others hear nothing."""
    seen = []
    with suppress(SubscriptionRevoked):
        while event := client.receive(QUIET_SECONDS):
            seen.append(event)
    return seen


def test_nothing_published_after_a_right_was_taken_away_reaches_its_user(place: Place, administrator: ExchangeClient):
    topic, name = new_topic().replace("trial", "private"), place.users["subscriber"][0]
    grant = {"user": name, "exchange": place.realm, "right": "read", "match": "exact", "uri": topic}
    administrator.ask("grant", grant)
    with place.client("subscriber") as client:
        follow(client, topic)
        administrator.publish(place.realm, topic, "before")
        assert taken(client, 1)[0].payload.arguments == ("before",)

        administrator.ask("ungrant", grant)
        administrator.publish(place.realm, topic, "after")

        assert seen_until_quiet(client) == []
    with place.client("subscriber") as client, pytest.raises(RequestRefused):
        follow(client, topic)


def test_what_nobody_can_read_in_an_inbox_or_outbox_is_put_aside_and_in_nobodys_way(
    deployment: Deployment, place: Place, administrator: ExchangeClient
):
    sqs, topic = deployment.session().client("sqs"), new_topic()
    live = deployment.session().resource("dynamodb").Table(deployment.outputs["LiveTable"])
    with place.client("subscriber") as client:
        follow(client, topic)
        (connection,) = DynamoRealmSessions(live).of_user(place.realm, place.users["subscriber"][0])
        for queue in ("LiveInboxUrl", "LiveOutboxUrl"):
            sqs.send_message(
                QueueUrl=deployment.outputs[queue],
                MessageBody=f"nonsense for {queue}",
                MessageGroupId=connection,
                MessageDeduplicationId=secrets.token_hex(8),
            )

        client.follow(Cursor(TopicPattern.parse(f"{topic}.more"), LastEvents(1)))
        administrator.publish(place.realm, topic, "all the same")

        assert taken(client, 1)[0].payload.arguments == ("all the same",)
    url = deployment.outputs["LiveOrderedDeadLetterQueueUrl"]
    letters = dead_letter_reasons(sqs, url, 2, group=connection, seconds=SOON_SECONDS)
    assert letters.keys() == {"nonsense for LiveInboxUrl", "nonsense for LiveOutboxUrl"}
    assert letters["nonsense for LiveInboxUrl"] == "expected 'f' and a frame, or a JSON object"
    assert letters["nonsense for LiveOutboxUrl"].startswith("a message of 26 characters is nothing that an outbox has")


def test_connections_and_queues_get_what_was_published_by_sqs_and_by_wamp(place: Place, administrator: ExchangeClient):
    topic, queue = new_topic(), f"q_live_{secrets.token_hex(4)}.fifo"
    administrator.declare_queue(queue)
    administrator.bind(place.realm, queue, topic)
    with place.client("source") as client:
        follow(client, topic)
        administrator.publish(place.realm, topic, '{"way": "sqs"}', {"by": "hand"})
        client.publish(topic, Payload(({"way": "wamp"},)), options={"exclude_me": False})
        events = taken(client, 2)
    with administrator.consumer(queue) as consumer:
        bodies = []
        while len(bodies) < len(events):
            for message in consumer.receive():
                bodies.append(json.loads(message.delivered.body))
                consumer.ack(message)
    administrator.delete_queue(queue)

    assert [event.payload.arguments[0] for event in events] == bodies == [{"way": "sqs"}, {"way": "wamp"}]
    assert [event.sequence for event in events] == [1, 2]
    assert events[0].headers == {"by": "hand"}


@pytest.mark.parametrize("realm", ["xplain.fifo", "xmissing.fifo"])
def test_an_exchange_that_is_not_live_cannot_be_joined(place: Place, administrator: ExchangeClient, realm: str):
    administrator.declare_exchange("xplain.fifo")
    with (
        LiveClient(connector(place.url), Login(realm, *place.users["admin"])) as client,
        pytest.raises(JoinRefused) as error,
    ):
        client.call("signalbox.topics")

    assert "no_such_realm" in str(error.value)


def test_anybody_joins_where_an_administrator_says_so(place: Place, administrator: ExchangeClient):
    realm = f"xopen{secrets.token_hex(4)}.fifo"
    reader = place.users["source"][0]
    administrator.declare_exchange(realm, live={"anonymous": reader, "retention": {"count": 2}})
    administrator.ask("grant", {"user": reader, "exchange": realm, "match": "prefix", "uri": ""})
    for number in range(4):
        administrator.publish(realm, "news", str(number))

    with LiveClient(connector(place.url), Login(realm)) as client:
        client.follow(Cursor(TopicPattern(MatchPolicy.PREFIX, ""), LastEvents(10)))
        assert [event.payload.arguments[0] for event in taken(client, 2)] == [2, 3]


def test_the_page_and_the_health_of_live_are_told_over_http(deployed: dict[str, Any]):
    def read(name: str) -> str:
        with urlopen(deployed["page_url"] + name, timeout=SOON_SECONDS) as answer:  # noqa: S310 - loopback
            return str(answer.read().decode())

    assert "<title>" in read("")
    assert json.loads(read("health")) == {"health": "OK"}
    assert deployed["realm"] in json.loads(read("config.json"))["realms"]


def test_local_json_tells_who_can_join_and_where(deployed: dict[str, Any]):
    assert {user["role"] for user in deployed["live_users"]} == {"admin", "source", "subscriber"}
    assert deployed["websocket_url"].startswith("ws://127.0.0.1:")


def test_the_demo_of_live_shows_that_nothing_of_a_running_log_is_missed(deployment: Deployment, place: Place):
    told = dict(live_rows(deployment))

    assert "each once and in order" in told["log"]
    assert told["page"].startswith("'Signalbox' at http://127.0.0.1")


def test_the_example_publishes_what_arvados_has_to_tell(deployed: dict[str, Any], place: Place, tmp_path: Path):
    container, folder = f"zzzzz-dz642-{secrets.token_hex(7)}", tmp_path / ".signalbox"
    folder.mkdir()
    (folder / "local.json").write_text(json.dumps(deployed))

    told = subprocess.run(  # noqa: S603 - our own example
        [
            sys.executable,
            str(CHECKOUT / "examples" / "arvados" / "publish.py"),
            "--seconds",
            "3",
            "--container",
            container,
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    with place.client("subscriber") as client:
        client.follow(Cursor(TopicPattern(MatchPolicy.PREFIX, f"trial.container.{container}."), LastEvents(1000)))
        events = list(client.backfill())
    lines = [event.payload.arguments[0] for event in events if event.topic.endswith(".log.stdout")]
    records = [event.payload.arguments[0] for event in events if event.topic.endswith(".record")]
    assert told.stdout.endswith(f"messages about {container}\n")
    assert [line.partition("/")[0] for line in lines] == [str(number) for number in range(1, 31)]
    assert [record["state"] for record in records] == ["Queued", "Running", "Running", "Complete"]
