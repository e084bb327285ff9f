"""A stage as the broker of unmodified kombu: exchanges of all types, acknowledgements, limits and errors."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Consumer, Exchange, Producer, Queue
from kombu.exceptions import ChannelError, OperationalError

from signalbox.clients.deployment import Deployment
from signalbox.local.stage_folder import StageFolder
from tests.integration.kombu.programs import user_with_key, working_folder

pytestmark = pytest.mark.emulator

WAIT_SECONDS = 60  # far longer than a message takes
NUMBERS = count(1)


@pytest.fixture(scope="module")
def folder(deployment: Deployment, stage_folder: StageFolder, tmp_path_factory: Any) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(working_folder(tmp_path_factory.mktemp("kombu"), stage_folder.path))
    yield stage_folder.path
    os.chdir(before)


@pytest.fixture(scope="module")
def alice(deployment: Deployment, folder: Path) -> Iterator[str]:
    with user_with_key(deployment, folder, "alice-kombu") as name:
        yield f"signalbox://{name}@local"


@pytest.fixture(params=["an administrator", "a user"])
def connection(request: pytest.FixtureRequest, folder: Path) -> Iterator[Connection]:
    url = "signalbox://local" if request.param == "an administrator" else request.getfixturevalue("alice")
    with Connection(url) as connection:
        connection.ensure_connection(max_retries=20)
        yield connection


@pytest.fixture
def admin(folder: Path) -> Iterator[Connection]:
    with Connection("signalbox://local") as connection:
        yield connection


def name(what: str) -> str:
    return f"{what}.{next(NUMBERS)}"


def received(connection: Connection, queue: Queue, expected: int) -> list[Any]:
    """Return the bodies of the messages of a queue when `expected` messages came."""
    bodies: list[Any] = []

    def take(body: Any, message: Any) -> None:
        bodies.append(body)
        message.ack()

    with Consumer(connection, [queue], callbacks=[take]):
        while len(bodies) < expected:
            connection.drain_events(timeout=WAIT_SECONDS)
    return bodies


def declared(connection: Connection, *queues: Queue) -> None:
    for queue in queues:
        queue(connection.default_channel).declare()


def test_every_type_of_exchange_routes_as_in_amqp(connection):
    direct, topic, fanout = (Exchange(name(kind), type=kind) for kind in ("direct", "topic", "fanout"))
    one, other = name("one"), name("other")
    queues = [
        Queue(one, [direct.binding("a.*"), topic.binding("v03.*.radar"), fanout.binding()]),
        Queue(other, [direct.binding("a.b"), topic.binding("v03.#"), fanout.binding()]),
    ]
    declared(connection, *queues)
    producer = Producer(connection)

    for exchange, key in (
        *((direct, "a.*"), (direct, "a.b"), (direct, "none")),
        *((topic, "v03.cwao.radar"), (topic, "v03"), (topic, "v02.x.radar")),
        (fanout, "any"),
    ):
        producer.publish(f"{exchange.type} {key}", exchange=exchange, routing_key=key)
    producer.publish("default", exchange="", routing_key=one)

    expected = {"direct a.*", "topic v03.cwao.radar", "fanout any", "default"}
    assert set(received(connection, queues[0], 4)) == expected
    assert set(received(connection, queues[1], 4)) == {"direct a.b", "topic v03.cwao.radar", "topic v03", "fanout any"}


def test_what_is_rejected_comes_again_and_what_is_acknowledged_does_not(connection):
    with closing(connection.SimpleQueue(name("simple"))) as queue:
        queue.put({"n": 1}, headers={"k": "v"})
        first = queue.get(timeout=WAIT_SECONDS)
        assert (first.payload, first.headers, first.delivery_info["redelivered"]) == ({"n": 1}, {"k": "v"}, False)

        first.requeue()
        second = queue.get(timeout=WAIT_SECONDS)
        assert (second.payload, second.delivery_info["redelivered"]) == ({"n": 1}, True)
        second.reject()

        queue.put("after")
        assert queue.get(timeout=WAIT_SECONDS).payload == "after"
        assert queue.clear() == 0


def test_a_closed_connection_releases_what_it_did_not_acknowledge(admin):
    queue = name("released")
    with closing(admin.SimpleQueue(queue)) as first:
        first.put("again")
        first.get(timeout=WAIT_SECONDS)
    admin.release()

    with Connection("signalbox://local") as other, closing(other.SimpleQueue(queue)) as second:
        message = second.get(timeout=WAIT_SECONDS)
        assert (message.payload, message.delivery_info["redelivered"]) == ("again", True)
        message.ack()


def test_a_consumer_has_no_more_unacknowledged_messages_than_its_prefetch_count(admin):
    queue = Queue(name("prefetch"))
    declared(admin, queue)
    for number in range(5):
        Producer(admin).publish(number, routing_key=queue.name)
    messages: list[Any] = []
    channel = admin.channel()
    channel.basic_qos(prefetch_count=2)

    with Consumer(channel, [queue], callbacks=[lambda _body, message: messages.append(message)]):
        admin.drain_events(timeout=WAIT_SECONDS)
        admin.drain_events(timeout=WAIT_SECONDS)
        with pytest.raises(socket.timeout):
            admin.drain_events(timeout=1)
        messages[1].channel.basic_ack(messages[1].delivery_tag, multiple=True)
        admin.drain_events(timeout=WAIT_SECONDS)

    assert len({message.payload for message in messages}) >= 3


def test_higher_priorities_are_delivered_first_and_expired_messages_never(admin):
    queue = Queue(name("priorities"), max_priority=10)
    declared(admin, queue)
    producer = Producer(admin)
    producer.publish("late", routing_key=queue.name, expiration=0.001)
    for priority in (3, 6, 3, 9):
        producer.publish(priority, routing_key=queue.name, priority=priority)

    assert received(admin, queue, 4) == [9, 6, 3, 3]


def test_a_message_that_reaches_no_queue_is_returned_or_raises(connection):
    exchange, lost = Exchange(name("routed"), type="topic"), name("lost")
    queue = Queue(name("routed"), exchange, routing_key="a.#")
    declared(connection, queue)
    returned: list[Any] = []
    handled = Producer(connection.channel(), on_return=lambda _error, *what: returned.append(what[:2]))

    Producer(connection).publish("there", exchange=exchange, routing_key="a.b", mandatory=True)
    for target, key in ((exchange.name, "b"), ("", lost)):
        with pytest.raises(ChannelError, match="NO_ROUTE"):
            Producer(connection).publish("nowhere", exchange=target, routing_key=key, mandatory=True)
        handled.publish("nowhere", exchange=target, routing_key=key, mandatory=True)
        Producer(connection).publish("nowhere", exchange=target, routing_key=key)

    assert returned == [(exchange.name, "b"), ("", lost)]
    assert received(connection, queue, 1) == ["there"]


def test_unrouted_messages_go_to_the_alternate_exchange(connection):
    others = Exchange(name("others"), type="fanout")
    left = Queue(name("left"), others)
    declared(connection, left)
    main = Exchange(name("main"), type="direct", arguments={"alternate-exchange": others.name})
    main(connection.default_channel).declare()

    Producer(connection).publish("unrouted", exchange=main, routing_key="x", mandatory=True)

    assert received(connection, left, 1) == ["unrouted"]


def test_an_exchange_is_bound_to_another_one(connection):
    first, second = Exchange(name("first"), type="topic"), Exchange(name("second"), type="topic")
    queue = Queue(name("behind"), second, routing_key="#")
    declared(connection, queue)
    first(connection.default_channel).declare()
    second(connection.default_channel).bind_to(first, routing_key="a.*")

    Producer(connection).publish("through", exchange=first, routing_key="a.b")

    assert received(connection, queue, 1) == ["through"]


def test_passive_declarations_purge_and_deletion(connection):
    queue, missing = name("counted"), name("missing")
    channel = connection.channel()
    with pytest.raises(ChannelError, match=missing):
        channel.queue_declare(missing, passive=True)
    with pytest.raises(ChannelError, match=missing):
        channel.exchange_declare(missing, passive=True)
    declared(connection, Queue(queue, Exchange(queue)))
    for number in range(12):
        Producer(connection).publish(number, exchange="", routing_key=queue, mandatory=True)
    channel.exchange_declare(queue, passive=True)
    while channel.queue_declare(queue, passive=True).message_count < 12:
        pass

    assert channel.queue_purge(queue) == 12
    assert channel.basic_get(queue) is None
    channel.queue_delete(queue)
    channel.exchange_delete(queue)
    with pytest.raises(ChannelError):
        channel.exchange_declare(queue, passive=True)


def test_an_exchange_keeps_its_type_and_only_three_types_exist(admin):
    exchange = name("typed")
    channel = admin.channel()
    channel.exchange_declare(exchange, "direct")

    with pytest.raises(ChannelError, match="is of type 'direct'"):
        channel.exchange_declare(exchange, "topic")
    with pytest.raises(Exception, match="type 'headers' is not one of"):
        channel.exchange_declare(name("typed"), "headers")


def test_a_name_of_somebody_else_is_refused(alice):
    with Connection(alice) as connection, pytest.raises(ChannelError, match="may not"):
        declared(connection, Queue("q_bob_all"))


@pytest.mark.parametrize(
    ("url", "error", "text"),
    [
        ("signalbox://local:1", OperationalError, "connect"),
        ("signalbox://unknown@local", ChannelError, "no key of user 'unknown'"),
        ("signalbox://elsewhere", ChannelError, "expected signalbox://"),
    ],
)
def test_a_stage_that_is_not_there_raises_kombus_errors(folder, url: str, error: type[Exception], text: str):
    with Connection(url, connect_timeout=1) as connection, pytest.raises(error, match=text):
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
