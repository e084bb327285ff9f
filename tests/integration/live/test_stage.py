"""Live on a deployed stage: revoked rights, dead letters, SQS publishers and queues, and the page."""

import json
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest

from signalbox.aws.live.sessions import DynamoRealmSessions
from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.clients.live.session import RequestRefused, SubscriptionRevoked
from signalbox.flows.trial import Journal, Trial
from signalbox.live.model.state import ConnectionId
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.local.demo.live import show_live
from tests.integration.live.stage import TrialRealm, new_topic
from tests.integration.rendezvous.peers import dead_letter_reasons
from tests.patience import Deadline, wait_for

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

pytestmark = pytest.mark.emulator

SOON_SECONDS = 240.0
QUIET_SECONDS = 3.0


@pytest.fixture
def administrator(deployment: Deployment) -> ExchangeClient:
    return client_of(deployment)


def taken(client: LiveClient, number: int) -> list[ReceivedEvent]:
    """Return the next `count` events."""
    found = [client.receive(SOON_SECONDS) for _ in range(number)]
    assert None not in found, found
    return [event for event in found if event is not None]


def follow(client: LiveClient, topic: str) -> None:
    """Subscribe and wait for the reply."""
    client.follow(PatternCursor(TopicPattern.parse(topic), LastEvents(1)))
    assert list(client.backfill()) == []


def seen_until_quiet(client: LiveClient) -> list[ReceivedEvent]:
    """Return the received events; some clients get a revocation, others nothing."""
    seen = []
    with suppress(SubscriptionRevoked):
        while event := client.receive(QUIET_SECONDS):
            seen.append(event)
    return seen


def test_no_event_published_after_a_revocation_reaches_the_user(place: TrialRealm, administrator: ExchangeClient):
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


def only_connection(live: "Table", place: TrialRealm) -> ConnectionId:
    """Return the subscriber's connection, as soon as those of earlier tests have ended."""
    deadline = Deadline(SOON_SECONDS)
    while len(found := DynamoRealmSessions(live).of_user(place.realm, place.users["subscriber"][0])) != 1:
        assert not deadline.is_over(), found
        time.sleep(0.1)
    return found[0]


def test_unreadable_messages_of_queues_become_dead_letters_and_block_no_others(
    deployment: Deployment, place: TrialRealm, administrator: ExchangeClient
):
    sqs, topic = deployment.session().client("sqs"), new_topic()
    live = deployment.session().resource("dynamodb").Table(deployment.outputs["LiveTable"])
    with place.client("subscriber") as client:
        follow(client, topic)
        connection = only_connection(live, place)
        for queue in ("LiveInboxUrl", "LiveOutboxUrl"):
            sqs.send_message(
                QueueUrl=deployment.outputs[queue],
                MessageBody=f"nonsense for {queue}",
                MessageGroupId=connection,
                MessageDeduplicationId=secrets.token_hex(8),
            )

        client.follow(PatternCursor(TopicPattern.parse(f"{topic}.more"), LastEvents(1)))
        administrator.publish(place.realm, topic, "still delivered")

        assert taken(client, 1)[0].payload.arguments == ("still delivered",)
    url = deployment.outputs["LiveOrderedDeadLetterQueueUrl"]
    dead_letters = dead_letter_reasons(sqs, url, 2, group=connection, seconds=SOON_SECONDS)
    assert dead_letters.keys() == {"nonsense for LiveInboxUrl", "nonsense for LiveOutboxUrl"}
    assert dead_letters["nonsense for LiveInboxUrl"] == "expected 'f' and a frame, or a JSON object"
    assert dead_letters["nonsense for LiveOutboxUrl"].startswith(
        "a message of 26 characters is nothing that an outbox has"
    )


def test_connections_and_queues_get_publications_by_sqs_and_by_wamp(place: TrialRealm, administrator: ExchangeClient):
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


def test_a_publication_is_activity_of_the_exchange_and_of_history(place: TrialRealm, administrator: ExchangeClient):
    with place.client("admin") as client:

        def work() -> dict[str, int]:
            (activity,) = client.call("signalbox.activity").arguments
            return {one["capability"]: sum(one["minutes"]) for one in activity["capabilities"]}

        before = work()
        administrator.publish(place.realm, new_topic(), "hello")

        wait_for(lambda: work()["history"] > before["history"], "the event of the publication among the metrics")
        assert work()["exchange"] > before["exchange"]


def test_the_page_and_the_health_check_are_served_over_http(deployed: dict[str, Any]):
    def read(name: str) -> str:
        with urlopen(deployed["page_url"] + name, timeout=SOON_SECONDS) as answer:  # noqa: S310 - loopback
            return str(answer.read().decode())

    assert "<title>" in read("")
    assert json.loads(read("health")) == {"health": "OK"}
    wait_for(
        lambda: deployed["realm"] in json.loads(read("config.json"))["realms"], "the realm among those of the page"
    )


def test_the_demo_of_live_follows_a_log_without_a_gap(deployment: Deployment, place: TrialRealm):
    trial = Trial(deployment, Journal())

    show_live(trial)

    seen = {row.what: row.detail for row in trial.journal.rows}
    assert seen["a later client gets the past"] == "20 old lines, each once and in order"
    assert seen["events are published and received"].startswith("10 new lines, each once and in order; ")
    assert seen["the page shows the log"].startswith("'Signalbox' at http://127.0.0.1")
