"""The ordering modes of live exchanges on a stage, with publishers that do not wait for acknowledgements."""

import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.integration.live.stage import TrialRealm, new_topic

pytestmark = pytest.mark.emulator

EVENTS, TOPICS = 50, 2
SOON_SECONDS = 240.0
HELLO, WELCOME, AUTHENTICATE, PUBLISH = 1, 2, 5, 16


def publish_without_waiting(place: TrialRealm, role: str, topics: list[str]) -> None:
    """Publish events to topics round robin without waiting, and wait for the last acknowledgement."""
    name, ticket = place.users[role]
    with connect(place.url, subprotocols=[Subprotocol("wamp.2.json")]) as socket:
        socket.send(
            json.dumps([HELLO, place.realm, {"roles": {"publisher": {}}, "authid": name, "authmethods": ["ticket"]}])
        )
        socket.recv(SOON_SECONDS)
        socket.send(json.dumps([AUTHENTICATE, ticket, {}]))
        assert json.loads(socket.recv(SOON_SECONDS))[0] == WELCOME
        for number in range(EVENTS):
            options = {"acknowledge": number == EVENTS - 1}
            socket.send(json.dumps([PUBLISH, number + 1, options, topics[number % TOPICS], [role, number]]))
        socket.recv(SOON_SECONDS)


def taken(client: LiveClient, number: int) -> list[ReceivedEvent]:
    found = [client.receive(SOON_SECONDS) for _ in range(number)]
    assert None not in found, found
    return [event for event in found if event is not None]


@pytest.mark.parametrize("settings", [{}, {"order_by": "exchange"}], ids=["default", "exchange"])
def test_the_order_of_each_publisher_holds_across_topics(
    place: TrialRealm, deployment: Deployment, settings: dict[str, str]
):
    realm, topics = f"xorder-{secrets.token_hex(3)}.fifo", [new_topic() for _ in range(TOPICS)]
    administrator = client_of(deployment)
    administrator.ask("declare_exchange", {"exchange": realm, "live": True, **settings})
    grant = {
        "user": place.users["source"][0],
        "exchange": realm,
        "right": "write",
        "match": "prefix",
        "uri": "trial",
    }
    administrator.ask("grant", grant)
    there = replace(place, realm=realm)

    with there.client("admin") as follower, ThreadPoolExecutor() as pool:
        follower.follow(PatternCursor(TopicPattern.parse("trial", MatchPolicy.PREFIX), LastEvents(1)))
        assert list(follower.backfill()) == []
        publishers = [pool.submit(publish_without_waiting, there, role, topics) for role in ("admin", "source")]
        events = taken(follower, 2 * EVENTS)
        for publisher in publishers:
            publisher.result()

    said = [tuple(event.payload.arguments) for event in events]
    for role in ("admin", "source"):
        assert [number for who, number in said if who == role] == list(range(EVENTS))
    for topic in topics:
        numbers = [event.sequence for event in events if event.topic == topic]
        assert numbers == list(range(1, len(numbers) + 1))
