"""Live on a deployed stage: publishers and queues by SQS, and the activity of a publication."""

import json
import secrets
from typing import TYPE_CHECKING

import pytest

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import TopicPattern
from tests.integration.live.stage import TrialRealm, new_topic
from tests.patience import wait_for

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.emulator

SOON_SECONDS = 240.0


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
