"""The driver as sr3 calls it, over SQS in memory and a stage that only answers."""

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
    """As sr3's: it is shown without its key."""

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
        made.append(import_module("signalbox.sr3.driver").AMQPSQS(props, is_subscriber))
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
        told = {"broker": Credential(), "exchange": [EXCHANGE], "format": "v03", "topicPrefix": ["v03"]}
        return driver(is_subscriber=False, **{**told, **more})

    return make


def asked(sqs: PretendedSqs) -> list[str]:
    return [one["command"] for one in sqs.asked]


def delivered(sqs: PretendedSqs, body: str, **headers: str) -> None:
    told = {"topic": "v03.a", "exchange": EXCHANGE, "message_id": "id", "publisher": "bob", **headers}
    attributes: dict[str, Any] = {name: {"DataType": "String", "StringValue": text} for name, text in told.items()}
    attributes["published_at"] = {"DataType": "Number", "StringValue": str(SENT_AT)}
    sqs.put(QUEUE, {"MessageBody": body, "MessageAttributes": attributes})


def published(sqs: PretendedSqs) -> list[dict[str, Any]]:
    return [one.message for one in sqs.queues[EXCHANGE]]


def file(path: str = "a/f", **more: Any) -> Message:
    return Message({"relPath": path, "_format": "v03", "_deleteOnPost": {"_format"}, **more})


def test_the_queue_is_declared_with_its_bindings(sqs, subscriber):
    subscriber(no=1).getSetup()

    told = [{name: value for name, value in one.items() if name not in ("id", "reply_queue_url")} for one in sqs.asked]
    assert told == [
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


def test_no_queue_for_replies_stays_behind(sqs, subscriber):
    subscriber().getSetup()

    assert [name for name in sqs.queues if "-reply-" in name] == []


def test_a_second_instance_takes_messages_and_declares_nothing(sqs, subscriber):
    delivered(sqs, '{"relPath": "a/f"}')

    found = subscriber(no=2).newMessages()

    assert [message["relPath"] for message in found] == ["a/f"]
    assert asked(sqs) == ["whoami", "consuming"]


def test_a_dry_run_asks_for_nothing(sqs, subscriber, publisher):
    consuming, posting = subscriber(dry_run=True), publisher(dry_run=True)

    for call in (consuming.getSetup, consuming.getCleanUp, posting.putSetup, posting.putCleanUp):
        call()

    assert set(asked(sqs)) <= {"whoami"}


def test_a_message_is_sr3s_with_where_it_came_from(sqs, subscriber):
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


def test_acknowledging_all_empties_the_queue(sqs, subscriber):
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


def test_what_sr3_cannot_read_is_left_to_become_a_dead_letter(sqs, subscriber):
    for body in ("no JSON at all", "[1]", '{"size": 7}'):
        delivered(sqs, body)
    delivered(sqs, '{"relPath": "a/f"}')
    consumer = subscriber()

    found = consumer.newMessages()

    assert [message["relPath"] for message in found] == ["a/f"]
    assert consumer.metrics["rxBadCount"] == 3
    assert [one.hidden for one in sqs.queues[QUEUE]] == [0, 0, 0, 60]


def test_a_batch_is_all_that_sr3_gets_at_once(sqs, subscriber):
    for _ in range(5):
        delivered(sqs, '{"relPath": "a/f"}')

    assert len(subscriber(batch=2).newMessages()) == 2


def test_single_messages_can_be_asked_for(sqs, subscriber):
    delivered(sqs, '{"relPath": "a/f"}')
    consumer = subscriber()

    assert consumer.getNewMessage()["relPath"] == "a/f"
    assert consumer.getNewMessage() is None


def test_what_is_not_acknowledged_is_for_others_when_sr3_stops(sqs, subscriber):
    delivered(sqs, '{"relPath": "a/f"}')
    consumer = subscriber()
    consumer.newMessages()

    consumer.close()

    assert [one.hidden for one in sqs.queues[QUEUE]] == [0]


def test_nothing_is_taken_any_more_once_sr3_is_to_stop(sqs, subscriber):
    delivered(sqs, '{"relPath": "a/f"}')
    consumer = subscriber()
    consumer._stop_requested = True

    assert (consumer.newMessages(), consumer.getNewMessage()) == ([], None)


def test_a_queue_that_is_gone_is_declared_again(sqs, subscriber):
    consumer = subscriber()
    consumer.getSetup()
    del sqs.queues[QUEUE]
    assert consumer.newMessages() == []
    sqs.queues[QUEUE] = []
    consumer.next_connect_time = 0

    consumer.newMessages()

    assert asked(sqs).count("declare_queue") == 2


def test_after_a_failure_the_stage_is_left_alone_for_a_while(sqs, subscriber):
    sqs.users.clear()
    consumer = subscriber()

    for _ in range(3):
        assert consumer.newMessages() == []

    assert len(sqs.named("GetQueueUrl")) == 1
    assert consumer.next_connect_failures == 1


def test_a_stage_that_does_not_answer_is_asked_again_later(sqs, subscriber, monkeypatch):
    def fail(**_request: Any) -> None:
        raise EndpointConnectionError(endpoint_url="http://localhost:4566")

    monkeypatch.setattr(sqs, "get_queue_url", fail)
    consumer = subscriber()

    assert consumer.newMessages() == []
    assert not consumer.metrics["connected"]


def test_a_key_that_says_nothing_is_told_in_the_log_and_not_raised(subscriber, caplog, monkeypatch):
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


def test_exchanges_are_not_declared_where_that_is_off(sqs, publisher):
    assert publisher(exchangeDeclare=False).putNewMessage(file())

    assert asked(sqs) == ["whoami"]


def test_a_type_that_sr3_would_take_for_another_goes_with_the_message_and_comes_back(sqs, publisher, subscriber):
    publisher(format="ours").putNewMessage(file())
    (sent,) = published(sqs)
    assert sent["MessageAttributes"]["content_type"]["StringValue"] == "application/x-ours"

    delivered(sqs, sent["Body"], content_type="application/x-ours")

    (message,) = subscriber().newMessages()
    assert message["_format"] == "application/x-ours"


def test_the_format_of_a_message_is_its_own_where_none_is_configured(sqs, publisher):
    poster = publisher()
    del poster.o["format"]

    assert poster.putNewMessage(file())


def test_a_split_exchange_gets_the_messages_that_sr3_picks_for_it(sqs, publisher):
    sqs.queues |= {f"{EXCHANGE}{number:02}": [] for number in range(3)}
    poster = publisher(exchange=[f"{EXCHANGE}{number:02}" for number in range(3)], exchangeSplit=3)

    for path in ("a", "b", "c"):
        assert poster.putNewMessage(file(path))

    assert [len(sqs.queues[f"{EXCHANGE}{number:02}"]) for number in range(3)] == [1, 1, 1]


def test_which_of_several_exchanges_must_be_said(publisher):
    assert not publisher(exchange=["xs_alice", "xs_alice_b"]).putNewMessage(file())


def test_a_caller_may_say_the_exchange(sqs, publisher):
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
def test_a_message_that_no_exchange_takes_is_told_and_does_not_hold_up_others(sqs, publisher, caplog, refused):
    message, form, reason = refused
    poster = publisher(format=form)

    assert not poster.putNewMessage(message)

    assert reason in caplog.text
    poster.o["format"] = "v03"
    assert poster.putNewMessage(file())
    assert asked(sqs).count("declare_exchange") == 1
    assert (poster.metrics["txBadCount"], poster.metrics["txGoodCount"]) == (1, 1)


def test_an_exchange_that_is_gone_is_declared_again(sqs, publisher):
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


def test_an_exchange_that_is_bound_stays_and_the_others_go(sqs, publisher, caplog):
    def refuse(command: Any) -> object:
        if command["exchange"] == "xs_alice":
            raise Refusal("exchange 'xs_alice' has bindings")
        return {}

    sqs.answers["delete_exchange"] = refuse

    publisher(exchange=["xs_alice", "xs_alice_b"]).putCleanUp()

    assert asked(sqs).count("delete_exchange") == 2
    assert "has bindings" in caplog.text


def test_sr3_is_told_how_many_messages_wait_but_not_at_every_look(sqs, subscriber, monkeypatch):
    looks = []

    def count(**request: Any) -> dict[str, Any]:
        looks.append(request)
        return {"Attributes": {"ApproximateNumberOfMessages": "7"}}

    monkeypatch.setattr(PretendedSqs, "get_queue_attributes", staticmethod(count), raising=False)
    consumer = subscriber()
    consumer.newMessages()

    reports = [consumer.metricsReport()["brokerQueuedMessageCount"] for _ in range(3)]

    assert (reports, len(looks)) == ([7, 7, 7], 1)


def test_a_driver_that_took_nothing_reports_what_it_has(publisher):
    assert "brokerQueuedMessageCount" not in publisher().metricsReport()


def test_the_key_goes_to_sqs_alone(sqs, subscriber, monkeypatch, caplog):
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
