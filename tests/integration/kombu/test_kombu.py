"""A stage as the broker of unmodified kombu: exchanges of all types, acknowledgements, limits and errors."""

import os
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from kombu import Connection, Consumer, Exchange, Producer, Queue
from kombu.exceptions import ChannelError, OperationalError

from signalbox.cli.shared.deployment import DEFAULT_STAGE
from signalbox.cli.shared.user_keys import user_key
from signalbox.clients.deployment import LocalDeployment
from signalbox.local.stage_folder import StageFolder
from signalbox.sarracenia.rights.names import UserName
from tests.integration.kombu.programs import user_with_key, working_folder
from tests.patience import wait_for

pytestmark = pytest.mark.emulator

WAIT_SECONDS = 60  # far longer than a message takes
NUMBERS = count(1)


@pytest.fixture(scope="module")
def folder(deployment: LocalDeployment, stage_folder: StageFolder, tmp_path_factory: Any) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(working_folder(tmp_path_factory.mktemp("kombu"), stage_folder.path))
    yield stage_folder.path
    os.chdir(before)


@pytest.fixture(scope="module")
def alice(deployment: LocalDeployment, folder: Path) -> Iterator[str]:
    with user_with_key(deployment, folder, "alice-kombu") as name:
        yield name


@pytest.fixture
def in_aws(deployment: LocalDeployment, alice: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return a user's broker URL of a stage in AWS, for which the emulator stands, with the user's credentials."""
    key = user_key(deployment, UserName(alice))
    for name, value in deployment.program_environment({}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key.secret_access_key)
    return f"signalbox://{alice}@aws/{DEFAULT_STAGE}?region={deployment.region}"


@pytest.fixture(params=["an administrator", "a user in AWS"])
def connection(request: pytest.FixtureRequest, folder: Path) -> Iterator[Connection]:
    url = "signalbox://local" if request.param == "an administrator" else request.getfixturevalue("in_aws")
    with Connection(url) as connection:
        connection.ensure_connection(max_retries=20)
        yield connection


@pytest.fixture
def admin(folder: Path) -> Iterator[Connection]:
    options = {"confirm_publish": True}
    with Connection("signalbox://local", heartbeat=10, transport_options=options) as connection:
        yield connection


def name(what: str) -> str:
    return f"{what}.{next(NUMBERS)}"


def received(connection: Connection, queue: Queue, *expected: Any) -> list[Any]:
    """Return the bodies of the messages of a queue when all expected ones came. An exchange may send one twice."""
    bodies: list[Any] = []

    def take(body: Any, message: Any) -> None:
        bodies.append(body)
        message.ack()

    with Consumer(connection, [queue], callbacks=[take]):
        while Counter(expected) - Counter(bodies):
            connection.drain_events(timeout=WAIT_SECONDS)
    return bodies


def declared(connection: Connection, *queues: Queue) -> None:
    for queue in queues:
        queue(connection.default_channel).declare()


def test_every_type_of_exchange_routes_as_in_amqp(connection):
    kinds = ("direct", "topic", "fanout")
    direct, topic, fanout = (Exchange(name(kind), type=kind, durable=False, auto_delete=True) for kind in kinds)
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

    for queue, expected in (
        (queues[0], {"direct a.*", "topic v03.cwao.radar", "fanout any", "default"}),
        (queues[1], {"direct a.b", "topic v03.cwao.radar", "topic v03", "fanout any"}),
    ):
        assert set(received(connection, queue, *expected)) == expected


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
        first.put("again", signal=object())  # not a property of AMQP
        first.get(timeout=WAIT_SECONDS)
        admin.heartbeat_check()
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

    assert received(admin, queue, 9, 6, 3, 3) == [9, 6, 3, 3]


def test_the_arguments_of_a_queue_are_settings_of_the_stage(connection):
    queue = Queue(name("settings"), message_ttl=1.5, expires=90, queue_arguments={"x-delivery-limit": 5})
    declared(connection, queue)

    stage = connection.default_channel.stage
    (found,) = (one for one in stage.ask("queues", {}) if one["queue"] == stage.namespace.queue(queue.name))
    assert (found["message_ttl_seconds"], found["expires_seconds"], found["maximum_receives"]) == (2, 90, 5)


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
    assert set(received(connection, queue, "there")) == {"there"}


def test_unrouted_messages_go_to_the_alternate_exchange(connection):
    others = Exchange(name("others"), type="fanout")
    left = Queue(name("left"), others)
    declared(connection, left)
    main = Exchange(name("main"), type="direct", arguments={"alternate-exchange": others.name})
    main(connection.default_channel).declare()

    Producer(connection).publish("unrouted", exchange=main, routing_key="x", mandatory=True)

    assert set(received(connection, left, "unrouted")) == {"unrouted"}


def test_an_exchange_is_bound_to_another_one(connection):
    first, second = Exchange(name("first"), type="topic"), Exchange(name("second"), type="topic")
    queue = Queue(name("behind"), second, routing_key="#")
    declared(connection, queue)
    first(connection.default_channel).declare()
    second(connection.default_channel).bind_to(first, routing_key="a.*")

    Producer(connection).publish("through", exchange=first, routing_key="a.b")

    assert set(received(connection, queue, "through")) == {"through"}


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
    with Connection(f"signalbox://{alice}@local") as connection, pytest.raises(ChannelError, match="may not"):
        declared(connection, Queue("q_bob_all"))


def test_a_stage_in_aws_refuses_the_credentials_of_another_user(in_aws, alice, deployment):
    with Connection(in_aws.replace(alice, "bob")) as bob, pytest.raises(ChannelError, match="has no user 'bob'"):
        bob.connect()
    with Connection(in_aws.replace(f"{alice}@", "")) as admin, pytest.raises(ChannelError, match="administrator's"):
        admin.connect()


def test_each_new_queue_and_binding_costs_one_round_trip_and_a_known_one_none(connection):
    channel, calls = connection.default_channel, list[str]()
    channel.stage.client.sqs.meta.events.register("before-call.sqs", lambda model, **_: calls.append(model.name))
    kinds = ("direct", "topic", "fanout")
    bound = [Queue(name("new"), Exchange(name("main"), type=kind), routing_key="a") for kind in kinds]
    queues = [*bound, Queue(name("alone"))]

    declared(connection, *queues)
    of_user = len(queues) if channel.stage.client.user else 0  # bindings to the user's default exchange
    assert _round_trips(calls) == len(queues) + len(bound) + of_user
    calls.clear()
    declared(connection, *queues)
    Producer(connection).publish("m", exchange=bound[0].exchange, routing_key="a")
    assert calls == ["SendMessage"]


def _round_trips(calls: list[str]) -> int:
    """Return how many times commands were sent and then their replies received."""
    return sum(before != "SendMessage" and call == "SendMessage" for before, call in pairwise(["", *calls]))


@pytest.mark.release
def test_a_queue_that_expires_stays_while_it_is_polled(admin):
    polled, unused = (Queue(name("expires"), expires=1, auto_delete=True) for _ in range(2))
    declared(admin, polled, unused)
    with Connection("signalbox://local") as other:
        consumer = Consumer(other, [polled], callbacks=[lambda _body, message: message.ack()])
        with consumer:
            wait_for(lambda: not _exists(admin, unused), "the end of the unused queue")
            Producer(admin).publish("still there", exchange="", routing_key=polled.name, mandatory=True)
            other.drain_events(timeout=WAIT_SECONDS)


def _exists(connection: Connection, queue: Queue) -> bool:
    with connection.channel() as channel:
        try:
            channel.queue_declare(queue.name, passive=True)
        except ChannelError:
            return False
    return True


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
