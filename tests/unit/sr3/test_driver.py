"""The driver as sr3 calls it, with an in-memory SQS and a stage that returns fixed replies."""

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import botocore.session
import pytest
from botocore.exceptions import EndpointConnectionError

from tests.unit.clients.exchange.fake_sqs import SENT_AT, PretendedSqs, Refusal
from tests.unit.sr3 import fake_sr3
from tests.unit.sr3.fake_sr3 import Message

QUEUE, EXCHANGE = "q_alice_in", "xs_alice"
DECLARED = ("whoami", "declare_exchange", "declare_queue", "delete_exchange", "delete_queue", "bind", "unbind")
BROKER = "amqpsqs://alice:AKIA%3Asecret@localhost:4566/dev"


class Credential:
    """A credential as sr3's, whose text omits the key."""

    url = urlsplit(BROKER)

    def __str__(self) -> str:
        return "amqpsqs://alice@localhost/dev"


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> PretendedSqs:
    sqs = PretendedSqs({QUEUE: [], EXCHANGE: []})
    sqs.answers = dict.fromkeys(DECLARED, lambda _command: {})
    sqs.answers["whoami"] = lambda _command: {"exchange_prefix": ""}
    sqs.answers["consuming"] = lambda command: {"queue": command["queue"], "prefetch": 25, "expires_seconds": None}
    monkeypatch.setattr(botocore.session.Session, "create_client", lambda *_, **options: sqs)
    return sqs


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    fake_sr3.install(monkeypatch)
    made = []

    def make(*, is_subscriber: bool, **props: Any) -> Any:
        made.append(import_module("signalbox_sr3.driver").AMQPSQS(props, is_subscriber))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def subscriber(driver: Callable[..., Any]) -> Callable[..., Any]:
    def make(**more: Any) -> Any:
        subscription = {
            "broker": Credential(),
            "queue": {"name": QUEUE, "expire": 300.0, "prefetch": 25},
            "bindings": [{"exchange": EXCHANGE, "topic": "v03.a.#"}],
            "bindings_to_remove": [{"exchange": EXCHANGE, "topic": "v03.b.#"}],
        }
        return driver(is_subscriber=True, subscriptions=[subscription], subscription_index=0, **more)

    return make


@pytest.fixture
def publisher(driver: Callable[..., Any]) -> Callable[..., Any]:
    def make(**more: Any) -> Any:
        props = {"broker": Credential(), "exchange": [EXCHANGE], "format": "v03", "topicPrefix": ["v03"]}
        return driver(is_subscriber=False, **{**props, **more})

    return make


def asked(sqs: PretendedSqs) -> list[str]:
    return [one["command"] for one in sqs.asked]


def delivered(sqs: PretendedSqs, body: str, **headers: str) -> None:
    texts = {"topic": "v03.a", "exchange": EXCHANGE, "message_id": "id", "publisher": "bob", **headers}
    attributes: dict[str, Any] = {name: {"DataType": "String", "StringValue": text} for name, text in texts.items()}
    attributes["published_at"] = {"DataType": "Number", "StringValue": str(SENT_AT)}
    sqs.put(QUEUE, {"MessageBody": body, "MessageAttributes": attributes})


def published(sqs: PretendedSqs) -> list[dict[str, Any]]:
    return [one.message for one in sqs.queues[EXCHANGE]]


def file(path: str = "a/f", **more: Any) -> Message:
    return Message({"relPath": path, "_format": "v03", "_deleteOnPost": {"_format"}, **more})


def test_the_queue_is_declared_with_its_bindings(sqs, subscriber):
    subscriber(no=1).getSetup()

    commands = [{name: value for name, value in one.items() if name not in ("id", "reply")} for one in sqs.asked]
    assert commands == [
        {"command": "whoami"},
        {
            "command": "declare_queue",
            "queue": QUEUE,
            "expires_seconds": 300,
            "message_ttl_seconds": 0,
            "prefetch": 25,
        },
        {"command": "bind", "exchange": EXCHANGE, "queue": QUEUE, "pattern": "v03.a.#"},
        {"command": "unbind", "exchange": EXCHANGE, "queue": QUEUE, "pattern": "v03.b.#"},
    ]


def test_a_second_instance_receives_messages_and_declares_nothing(sqs, subscriber):
    delivered(sqs, '{"relPath": "a/f"}')

    found = subscriber(no=2).newMessages()

    assert [message["relPath"] for message in found] == ["a/f"]
    assert asked(sqs) == ["whoami", "consuming"]


def test_a_dry_run_sends_no_commands(sqs, subscriber, publisher):
    consuming, posting = subscriber(dry_run=True), publisher(dry_run=True)

    for call in (consuming.getSetup, consuming.getCleanUp, posting.putSetup, posting.putCleanUp):
        call()

    assert set(asked(sqs)) <= {"whoami"}


def test_a_received_message_has_sr3s_fields_and_its_origin(sqs, subscriber):
    delivered(sqs, '{"relPath": "a/f"}', sum="d,1")
    consumer = subscriber()

    (message,) = consumer.newMessages()

    assert message.pop("ack_id") == {"broker": consumer.broker, "receipt": "r1"}
    local = {"ack_id", "exchange", "local_offset", "subtopic", "subscription_index"}
    assert message == {
        "relPath": "a/f",
        "sum": "d,1",
        "_format": "application/json",
        "_deleteOnPost": local,
        "exchange": EXCHANGE,
        "source": "alice",
        "subtopic": ["a"],
        "subscription_index": 0,
        "local_offset": 0,
    }
    assert consumer.metrics["rxGoodCount"] == 1


def test_acknowledging_all_messages_empties_the_queue(sqs, subscriber):
    for _ in range(3):
        delivered(sqs, '{"relPath": "a/f"}')
    consumer = subscriber()

    done = [consumer.ack(message) for message in consumer.newMessages()]

    assert done == [True, True, True]
    assert sqs.queues[QUEUE] == []


def test_a_message_of_sr3s_own_retries_needs_no_acknowledgement(subscriber):
    assert subscriber().ack(file())


def test_a_message_is_acknowledged_only_once(sqs, subscriber):
    delivered(sqs, '{"relPath": "a/f"}')
    consumer = subscriber()
    (message,) = consumer.newMessages()
    again = Message({**message, "_deleteOnPost": {"ack_id"}})

    assert [consumer.ack(message), consumer.ack(again)] == [True, False]
    assert "ack_id" not in message["_deleteOnPost"]


def test_an_unreadable_message_is_left_to_become_a_dead_letter(sqs, subscriber):
    for body in ("no JSON at all", "[1]", '{"size": 7}'):
        delivered(sqs, body)
    delivered(sqs, '{"relPath": "a/f"}')
    consumer = subscriber()

    found = consumer.newMessages()

    assert [message["relPath"] for message in found] == ["a/f"]
    assert consumer.metrics["rxBadCount"] == 3
    assert [one.hidden for one in sqs.queues[QUEUE]] == [0, 0, 0, 60]


def test_sr3_receives_at_most_one_batch(sqs, subscriber):
    for _ in range(5):
        delivered(sqs, '{"relPath": "a/f"}')

    assert len(subscriber(batch=2).newMessages()) == 2


def test_messages_can_be_received_one_by_one(sqs, subscriber):
    delivered(sqs, '{"relPath": "a/f"}')
    consumer = subscriber()

    assert consumer.getNewMessage()["relPath"] == "a/f"
    assert consumer.getNewMessage() is None


def test_unacknowledged_messages_are_returned_when_sr3_stops(sqs, subscriber):
    delivered(sqs, '{"relPath": "a/f"}')
    consumer = subscriber()
    consumer.newMessages()

    consumer.close()

    assert [one.hidden for one in sqs.queues[QUEUE]] == [0]


def test_no_messages_are_received_after_a_stop_request(sqs, subscriber):
    delivered(sqs, '{"relPath": "a/f"}')
    consumer = subscriber()
    consumer._stop_requested = True

    assert (consumer.newMessages(), consumer.getNewMessage()) == ([], None)


def test_a_deleted_queue_is_declared_again(sqs, subscriber):
    consumer = subscriber()
    consumer.getSetup()
    del sqs.queues[QUEUE]
    assert consumer.newMessages() == []
    sqs.queues[QUEUE] = []
    consumer.next_connect_time = 0

    consumer.newMessages()

    assert asked(sqs).count("declare_queue") == 2


def test_after_a_failure_the_stage_is_not_called_until_the_pause_ends(sqs, subscriber):
    sqs.users.clear()
    consumer = subscriber()

    for _ in range(3):
        assert consumer.newMessages() == []

    assert len(sqs.named("GetQueueUrl")) == 1
    assert consumer.next_connect_failures == 1


def test_an_unreachable_stage_is_called_again_later(sqs, subscriber, monkeypatch):
    def fail(**_request: Any) -> None:
        raise EndpointConnectionError(endpoint_url="http://localhost:4566")

    monkeypatch.setattr(sqs, "get_queue_url", fail)
    consumer = subscriber()

    assert consumer.newMessages() == []
    assert not consumer.metrics["connected"]


def test_a_missing_key_is_logged_and_not_raised(subscriber, caplog, monkeypatch):
    monkeypatch.setattr(Credential, "url", urlsplit("amqpsqs://alice@localhost/dev"))

    assert subscriber().newMessages() == []

    assert "access key's id and secret" in caplog.text


def test_exchanges_are_declared_and_messages_published(sqs, publisher):
    message = file()
    poster = publisher()

    assert poster.putNewMessage(message)

    assert asked(sqs) == ["whoami", "declare_exchange"]
    (sent,) = published(sqs)
    assert json.loads(sent["Body"]) == {"relPath": "a/f"}
    attributes = {name: one["StringValue"] for name, one in sent["MessageAttributes"].items()}
    assert attributes == {"topic": "v03.a", "size": "7"}
    assert message["posts"] == [{"broker": str(Credential()), "topic": "v03.a", "exchange": EXCHANGE}]
    assert poster.metrics["txGoodCount"] == 1


def test_the_declaration_of_exchanges_can_be_disabled(sqs, publisher):
    assert publisher(exchangeDeclare=False).putNewMessage(file())

    assert asked(sqs) == ["whoami"]


def test_an_unusual_content_type_is_sent_and_received_as_a_header(sqs, publisher, subscriber):
    publisher(format="ours").putNewMessage(file())
    (sent,) = published(sqs)
    assert sent["MessageAttributes"]["content_type"]["StringValue"] == "application/x-ours"

    delivered(sqs, sent["Body"], content_type="application/x-ours")

    (message,) = subscriber().newMessages()
    assert message["_format"] == "application/x-ours"


def test_the_default_format_of_a_message_is_its_original_one(sqs, publisher):
    poster = publisher()
    del poster.o["format"]

    assert poster.putNewMessage(file())


def test_a_split_exchange_receives_the_messages_that_sr3_selects_for_it(sqs, publisher):
    sqs.queues |= {f"{EXCHANGE}{number:02}": [] for number in range(3)}
    poster = publisher(exchange=[f"{EXCHANGE}{number:02}" for number in range(3)], exchangeSplit=3)

    for path in ("a", "b", "c"):
        assert poster.putNewMessage(file(path))

    assert [len(sqs.queues[f"{EXCHANGE}{number:02}"]) for number in range(3)] == [1, 1, 1]


def test_publishing_to_several_exchanges_needs_a_selection(publisher):
    assert not publisher(exchange=["xs_alice", "xs_alice_b"]).putNewMessage(file())


def test_a_caller_can_select_the_exchange(sqs, publisher):
    assert publisher(exchange=["xs_alice", "xs_alice_b"]).putNewMessage(file(), exchange=EXCHANGE)

    assert len(published(sqs)) == 1


@pytest.mark.parametrize(
    "refused",
    [
        (file(content="x" * 1_100_000), "v03", "bytes"),
        (file(), "unknown", "no format 'unknown'"),
        (file("é" * 200 + "/f"), "v03", "fit"),
    ],
    ids=["too large", "no such format", "topic too long"],
)
def test_an_unpublishable_message_is_logged_and_does_not_block_others(sqs, publisher, caplog, refused):
    message, form, reason = refused
    poster = publisher(format=form)

    assert not poster.putNewMessage(message)

    assert reason in caplog.text
    poster.o["format"] = "v03"
    assert poster.putNewMessage(file())
    assert asked(sqs).count("declare_exchange") == 1
    assert (poster.metrics["txBadCount"], poster.metrics["txGoodCount"]) == (1, 1)


def test_a_deleted_exchange_is_declared_again(sqs, publisher):
    poster = publisher()
    poster.putSetup()
    del sqs.queues[EXCHANGE]
    assert not poster.putNewMessage(file())
    sqs.queues[EXCHANGE] = []

    assert poster.putNewMessage(file())

    assert asked(sqs).count("declare_exchange") == 2


def test_nothing_is_published_while_the_stage_refuses(sqs, publisher, caplog):
    def refuse(_command: Any) -> object:
        raise Refusal("user 'alice' (subscriber) may not configure exchange 'xs_alice'")

    sqs.answers["declare_exchange"] = refuse

    assert not publisher().putNewMessage(file())

    assert "may not configure exchange" in caplog.text


def test_queues_and_exchanges_are_deleted(sqs, subscriber, publisher):
    subscriber().getCleanUp()
    publisher(exchange=["xs_alice", "xs_alice_b"]).putCleanUp()

    deleted = [(one["command"], one.get("queue") or one.get("exchange")) for one in sqs.asked if "id" in one]
    assert [one for one in deleted if one[0].startswith("delete")] == [
        ("delete_queue", QUEUE),
        ("delete_exchange", "xs_alice"),
        ("delete_exchange", "xs_alice_b"),
    ]


def test_a_bound_exchange_stays_and_the_others_are_deleted(sqs, publisher, caplog):
    def refuse(command: Any) -> object:
        if command["exchange"] == "xs_alice":
            raise Refusal("exchange 'xs_alice' has bindings")
        return {}

    sqs.answers["delete_exchange"] = refuse

    publisher(exchange=["xs_alice", "xs_alice_b"]).putCleanUp()

    assert asked(sqs).count("delete_exchange") == 2
    assert "has bindings" in caplog.text


def test_waiting_messages_are_counted_at_most_every_half_minute(sqs, subscriber, monkeypatch):
    looks = []

    def count(**request: Any) -> dict[str, Any]:
        looks.append(request)
        return {"Attributes": {"ApproximateNumberOfMessages": "7"}}

    monkeypatch.setattr(PretendedSqs, "get_queue_attributes", staticmethod(count), raising=False)
    consumer = subscriber()
    consumer.newMessages()

    reports = [consumer.metricsReport()["brokerQueuedMessageCount"] for _ in range(3)]

    assert (reports, len(looks)) == ([7, 7, 7], 1)


def test_a_driver_without_a_queue_reports_no_waiting_messages(publisher):
    assert "brokerQueuedMessageCount" not in publisher().metricsReport()


def test_the_key_is_given_to_sqs_only(sqs, subscriber, monkeypatch, caplog):
    given = {}

    def create(_session: Any, service: str, **options: Any) -> PretendedSqs:
        given.update(options, service=service)
        return sqs

    monkeypatch.setattr(botocore.session.Session, "create_client", create)
    caplog.set_level("DEBUG")

    subscriber().getSetup()

    assert (given["service"], given["endpoint_url"], given["region_name"]) == (
        "sqs",
        "http://localhost:4566",
        "us-east-1",
    )
    assert (given["aws_access_key_id"], given["aws_secret_access_key"]) == ("AKIA", "secret")
    assert "secret" not in caplog.text
