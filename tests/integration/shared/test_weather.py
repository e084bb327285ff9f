"""One main flow of each capability under AWS's weather: faults, delays, duplicates and limits lose nothing.

The pytest header names the seed; `SIGNALBOX_WEATHER_SEED=… pytest tests/integration/shared/test_weather.py` repeats it.
"""

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from signalbox.aws.history.athena import Athena, quoted
from signalbox.aws.rendezvous.credentials import ClientCredentials
from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.control import NoControlReply
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.clients.live.cursor import Cursor
from signalbox.clients.rendezvous.client import SqsRendezvous
from signalbox.clients.rendezvous.simulator import sample_answer, sample_offer
from signalbox.clients.splitting.control import split_client
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.local.demo.consumer import DeployedConsumer, LocalConsumer, Receipt
from signalbox.queues import QueueName
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.splitting.control.protocol import GONE
from tests.integration.live.followers import Follower, following
from tests.integration.live.stage import TrialRealm, new_topic
from tests.integration.rendezvous.peers import Parties, wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.minutes]

PATIENCE_SECONDS = 240.0
CLIENTS, MESSAGES, KEYS = 5, 60, 4
STANDARD, FIFO = QueueName("demo-storms"), QueueName("demo-orders.fifo")
DEVELOPER, OTHERS = "alice", "others"


@pytest.fixture(scope="module")
def parties(deployed_in_weather: dict[str, Any], weather_deployment: Deployment) -> Parties:
    key = deployed_in_weather["client_credentials"]
    return Parties.of(weather_deployment, ClientCredentials(key["access_key_id"], key["secret_access_key"]))


@pytest.fixture(scope="module")
def administrator(weather_deployment: Deployment) -> Iterator[ExchangeClient]:
    with client_of(weather_deployment) as client:
        yield client


def test_clients_over_sqs_get_the_answers_of_their_proxies(parties: Parties):
    outputs = parties.deployment.outputs
    client = SqsRendezvous(
        parties.client_sqs, outputs["BrokerQueueUrl"], client_queue_prefix=outputs["ClientQueuePrefix"]
    )

    for number in range(CLIENTS):
        proxy, offer = parties.hold(parties.proxy()), sample_offer(f"client {number}")
        answer = client.exchange(offer_body(offer, Nat.RESTRICTED))
        assert (answer.session_description, proxy.offer()) == (sample_answer(offer), offer)


def test_a_standard_and_a_fifo_queue_are_split_and_restored(weather_deployment: Deployment):
    """A standard queue repeats messages and a FIFO queue does not; both deliver all, each to its consumer."""
    session, outputs = weather_deployment.session(), weather_deployment.outputs
    consumer = DeployedConsumer.deploy(
        session, "demo-in-weather", [STANDARD, FIFO], temporary_prefix=outputs["TemporaryQueuePrefix"]
    )
    before = consumer.mappings()

    with _developer(weather_deployment, consumer) as developer:
        ready = developer.start(timeout=timedelta(seconds=PATIENCE_SECONDS))
        with LocalConsumer(session, [queue.url for queue in ready.queues]).reading() as reader:
            sent = {queue: _send(session, consumer.queues[queue], is_fifo=queue == FIFO) for queue in (STANDARD, FIFO)}
            wait_for(
                lambda: _bodies(reader.received) | _bodies(consumer.received()) == sent[STANDARD] | sent[FIFO],
                "all messages",
                seconds=PATIENCE_SECONDS,
            )
        developer.stop()
        wait_for(lambda: _has_ended(developer), "the session and the split have ended", seconds=PATIENCE_SECONDS)

    received = {DEVELOPER: reader.received, OTHERS: consumer.received()}
    assert _first_recipients(received) == {body: json.loads(body)["author"] for body in sent[STANDARD] | sent[FIFO]}
    for author, receipts in received.items():
        assert _fifo(receipts) == {f"g{number}": _numbers(author, number) for number in range(KEYS)}
    assert consumer.mappings() == before


def test_publications_are_routed_to_every_queue_in_order_and_the_history_has_each(
    weather_deployment: Deployment, administrator: ExchangeClient
):
    mark = secrets.token_hex(4)
    exchange, ordered, every = f"xs_{mark}.fifo", f"q_{mark}.fifo", f"q_{mark}_all.fifo"
    administrator.declare_exchange(exchange)
    for queue, pattern in ((ordered, "k.*"), (every, "#")):
        administrator.declare_queue(queue)
        administrator.bind(exchange, queue, pattern)

    requests = [PublishRequest(f"k.{number % KEYS}", str(number)) for number in range(MESSAGES)]
    published = list(administrator.publish_all(exchange, requests))

    assert all(one.message_id for one in published)
    for queue in (ordered, every):
        assert _taken(administrator, queue) == {f"k.{key}": list(range(key, MESSAGES, KEYS)) for key in range(KEYS)}
    expected = 2 * MESSAGES
    wait_for(
        lambda: _delivered(weather_deployment, exchange) == expected,
        f"{expected} deliveries in the history",
        seconds=PATIENCE_SECONDS,
        every=2,
    )


def test_subscribers_receive_every_publication_once_and_late_ones_the_past(
    deployed_in_weather: dict[str, Any], administrator: ExchangeClient
):
    place, topic = TrialRealm.of(deployed_in_weather), new_topic()
    place.warm_up()
    subscriber = Follower(place.client("subscriber"), [TopicPattern.parse(topic)])
    expected = list(range(MESSAGES))

    with following([subscriber]):
        wait_for(lambda: subscriber.is_ready, "the subscriber is ready", seconds=PATIENCE_SECONDS)
        for number in expected:
            administrator.publish(place.realm, topic, str(number))
        wait_for(lambda: subscriber.count >= MESSAGES, "all events", seconds=PATIENCE_SECONDS)
    with place.client("subscriber") as late:
        late.follow(Cursor(TopicPattern.parse(topic), LastEvents(MESSAGES)))
        past = [event.payload.arguments[0] for event in late.backfill()]

    assert subscriber.error is None
    assert subscriber.seen[topic] == past == expected


@contextmanager
def _developer(deployment: Deployment, consumer: DeployedConsumer) -> Iterator[SessionClient]:
    """Provide a developer's client of a registered consumer."""
    outputs, sqs = deployment.outputs, deployment.session().client("sqs")
    queues = {"*": {"queue_type": "SQS", "message_filter": {"author": f"^{DEVELOPER}$"}}}
    request = SessionRequest(consumer.target, DEVELOPER, f"{DEVELOPER}@laptop", {"feature": {"split_queues": queues}})
    url, prefix = outputs["SplitControlQueueUrl"], outputs["SplitReplyQueuePrefix"]
    with split_client(sqs, control_queue_url=url, reply_queue_prefix=prefix) as control:
        control.ask("apply", {"documents": [consumer.registry()]})
        yield SessionClient(control, request)


def _has_ended(developer: SessionClient) -> bool:
    """Return whether the session is gone and its queues are no longer split; False if the stage does not reply."""
    with suppress(NoControlReply):
        status: Any = developer.control.ask("status", {"target": developer.request.target})
        return developer.heartbeat().phase == GONE and not status["splits"]
    return False


def _send(session: Any, url: str, *, is_fifo: bool) -> set[str]:
    """Send messages of the developer and of others; return their bodies."""
    sqs, bodies = session.client("sqs"), set()
    for number in range(MESSAGES):
        author, group = (DEVELOPER, OTHERS)[number % 2], f"g{number // 2 % KEYS}"
        body = json.dumps({"number": number, "author": author, "group": group, "fifo": is_fifo})
        ordered = {"MessageGroupId": group, "MessageDeduplicationId": str(number)} if is_fifo else {}
        attributes = {"author": {"DataType": "String", "StringValue": author}}
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=attributes, **ordered)
        bodies.add(body)
    return bodies


def _bodies(receipts: Sequence[Receipt]) -> set[str]:
    return {one.body for one in receipts}


def _first_recipients(received: Mapping[str, Sequence[Receipt]]) -> dict[str, str]:
    """Return the first recipient of each message: the second copy of one may wait when the session ends."""
    receipts = [(one.moment_ns, one.body, name) for name, found in received.items() for one in found]
    return {body: name for _, body, name in sorted(receipts, reverse=True)}


def _fifo(receipts: Sequence[Receipt]) -> dict[str, list[int]]:
    """Return the numbers of each group's FIFO messages in the order of their receipts."""
    groups: dict[str, list[int]] = {}
    for one in (json.loads(one.body) for one in receipts):
        if one["fifo"]:
            groups.setdefault(one["group"], []).append(one["number"])
    return groups


def _numbers(author: str, group: int) -> list[int]:
    first = (DEVELOPER, OTHERS).index(author)
    return [number for number in range(first, MESSAGES, 2) if number // 2 % KEYS == group]


def _taken(client: ExchangeClient, queue: str) -> dict[str, list[int]]:
    """Receive all messages of a queue; return the numbers of each key in the order of arrival, repeats included."""
    found: dict[str, dict[str, int]] = {}
    with client.consumer(queue) as consumer:

        def all_of_them() -> bool:
            more = consumer.receive(wait_seconds=1)
            for one in more:
                found.setdefault(one.delivered.key, {})[one.delivered.message_id] = int(one.delivered.body)
            consumer.ack(*more)
            return sum(map(len, found.values())) >= MESSAGES

        wait_for(all_of_them, f"{MESSAGES} messages in {queue}", seconds=PATIENCE_SECONDS)
    return {key: list(numbers.values()) for key, numbers in found.items()}


def _delivered(deployment: Deployment, exchange: str) -> int:
    """Return the number of deliveries of an exchange in the lake, each event counted once."""
    outputs = deployment.outputs
    athena = Athena(
        deployment.session().client("athena"), outputs["HistoryDatabase"], f"s3://{outputs['HistoryBucket']}/queries/"
    )
    condition = f"capability = 'exchange' AND source = {quoted(exchange)} AND outcome = 'delivered'"
    rows = athena.rows(
        f"SELECT count(DISTINCT event_id) AS facts FROM {outputs['HistoryTable']} WHERE {condition}"  # noqa: S608 - ours
    )
    return int(rows[0]["facts"] or 0)
