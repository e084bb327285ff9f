"""The client of a stage's exchanges."""

from datetime import timedelta
from typing import Any

import pytest

from signalbox.clients.control import NoControlReply
from signalbox.clients.exchange.client import ExchangeClient, NotPublished, user_client
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.control.protocol import CommandRejected, InvalidControlReply
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.messages.properties import InvalidPublication
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.patterns import InvalidPattern
from signalbox.exchange.model.records import OrderBy
from signalbox.queues import InvalidQueueName
from signalbox.sarracenia.rights.names import InvalidExchangeName, InvalidUserName, UserName
from tests.unit.clients.exchange.fake_sqs import URL_PREFIX, PretendedSqs, Refusal

ALICE = UserName("alice")
OTHER_ERROR = "OverLimit"


def echo(command: dict[str, Any]) -> dict[str, Any]:
    return command


@pytest.fixture
def sqs() -> PretendedSqs:
    sqs = PretendedSqs({"xs_alice": [], "xs_alice.fifo": [], "q_alice_in": []})
    sqs.answers["consuming"] = lambda command: {"queue": command["queue"]}
    return sqs


def client(sqs: PretendedSqs, **more: Any) -> ExchangeClient:
    return ExchangeClient(sqs, StageNames("dev"), URL_PREFIX, ALICE, sleep=lambda _: None, **more)


def fields(sent: Any) -> dict[str, Any]:
    return {name: value for name, value in sent.items() if name not in ("command", "id", "reply")}


# Commands with options are in `tests/cli/exchange`.
COMMANDS = {
    "as it is": (lambda c: c.declare_exchange("xs_alice"), "declare_exchange", {"exchange": "xs_alice"}),
    "delete an exchange": (lambda c: c.delete_exchange("xs_alice"), "delete_exchange", {"exchange": "xs_alice"}),
    "declare a queue": (lambda c: c.declare_queue("q_alice.in"), "declare_queue", {"queue": "q_alice.in"}),
    "delete a queue": (lambda c: c.delete_queue("q_alice"), "delete_queue", {"queue": "q_alice"}),
    "unbind an exchange": (
        lambda c: c.unbind("xs_alice", "xpublic", ""),
        "unbind",
        {"exchange": "xs_alice", "destination": "xpublic", "pattern": ""},
    ),
    "status": (lambda c: c.status(), "status", {}),
    "who one is": (lambda c: c.whoami(), "whoami", {}),
}


@pytest.mark.parametrize(("call", "command", "said"), COMMANDS.values(), ids=COMMANDS)
def test_a_call_is_a_command(sqs, call, command, said):
    sqs.answers[command] = echo

    alice = client(sqs)
    sent = call(alice)

    assert sent["command"] == command
    assert fields(sent) == said


LISTS = {
    "exchanges": (lambda c: c.exchanges(), {}),
    "one exchange": (lambda c: c.exchanges("xpublic"), {"exchange": "xpublic"}),
    "queues": (lambda c: c.queues(), {}),
    "bindings": (lambda c: c.bindings(), {}),
    "bindings of one exchange": (lambda c: c.bindings("xpublic"), {"exchange": "xpublic"}),
}


@pytest.mark.parametrize(("call", "said"), LISTS.values(), ids=LISTS)
def test_a_list_is_returned_unchanged(sqs, call, said):
    sqs.answers |= dict.fromkeys(("exchanges", "queues", "bindings"), lambda command: [command])

    alice = client(sqs)
    (sent,) = call(alice)

    assert fields(sent) == said


WRONG_NAMES = {
    "exchange": (lambda c: c.declare_exchange("alice"), InvalidExchangeName),
    "alternate": (lambda c: c.declare_exchange("xs_alice", alternate="rest"), InvalidExchangeName),
    "queue": (lambda c: c.declare_queue("alice"), InvalidQueueName),
    "target": (lambda c: c.bind("xs_alice", "alice", "#"), InvalidQueueName),
    "destination": (lambda c: c.bind("xs_alice", "x.", "#"), InvalidExchangeName),
    "pattern": (lambda c: c.bind("xs_alice", "q_alice", "#.#.#"), InvalidPattern),
}


@pytest.mark.parametrize(("call", "error"), WRONG_NAMES.values(), ids=WRONG_NAMES)
def test_invalid_arguments_are_not_sent(sqs, call, error):
    alice = client(sqs)
    with pytest.raises(error):
        call(alice)

    assert sqs.calls == []


def test_replies_arrive_in_the_queue_of_the_user(sqs):
    sqs.answers["whoami"] = echo

    asked = client(sqs).whoami()

    assert asked.keys() == {"command", "id", "reply"}
    assert sqs.named("SendMessage")[0]["QueueUrl"] == f"{URL_PREFIX}dev-exchange-control-alice"
    assert {one["QueueUrl"] for one in sqs.named("ReceiveMessage")} == {f"{URL_PREFIX}dev-exchange-reply-alice"}
    assert sqs.queues["dev-exchange-reply-alice"] == []


def test_a_refusal_is_raised_with_the_stages_text(sqs):
    def refuse(_command: dict[str, Any]) -> object:
        raise Refusal("user 'alice' (subscriber) may not configure exchange 'xs_bob'")

    sqs.answers["declare_exchange"] = refuse

    alice = client(sqs)
    with pytest.raises(CommandRejected, match="may not configure exchange 'xs_bob'"):
        alice.declare_exchange("xs_bob")


def test_no_stage_is_waited_for_longer_than_one_likes(sqs):
    sqs.answers["whoami"] = echo

    with pytest.raises(NoControlReply):
        client(sqs, reply_timeout=timedelta(0)).whoami()


@pytest.mark.parametrize(
    ("call", "reply"),
    [(lambda c: c.status(), []), (lambda c: c.exchanges(), {}), (lambda c: c.exchanges(), ["x"])],
    ids=["no object", "no list", "no list of objects"],
)
def test_a_reply_of_another_shape_is_not_understood(sqs, call, reply):
    sqs.answers |= {"status": lambda _: reply, "exchanges": lambda _: reply}

    alice = client(sqs)
    with pytest.raises(InvalidControlReply, match="is no"):
        call(alice)


def test_a_user_needs_to_know_nothing_but_the_name_of_the_stage(sqs):
    sqs.answers["whoami"] = lambda _: {"exchange_prefix": "pump-"}

    found = user_client(sqs, "alice", stage="dev")

    assert (found.names, found.url_prefix, found.user) == (StageNames("dev", "pump-"), URL_PREFIX, "alice")


@pytest.mark.parametrize(
    ("user", "denied", "error", "text"),
    [
        ("a_b", set(), InvalidUserName, "expected 1 to 32 letters, digits"),
        ("eve", {"dev-exchange-control-eve"}, NotPermitted, "or these are not that user's credentials"),
    ],
    ids=["no name of a user", "another user's credentials"],
)
def test_credentials_of_another_user_are_reported(sqs, user, denied, error, text):
    sqs.denied = denied

    with pytest.raises(error, match=text):
        user_client(sqs, user, stage="dev")


def test_an_unknown_user_is_reported(sqs):
    with pytest.raises(NotFound, match="stage 'dev' has no user 'eve'"):
        user_client(sqs, "eve", stage="dev")


def published(sqs: PretendedSqs, queue: str = "xs_alice") -> list[tuple[str, dict[str, Any]]]:
    return [(one.message["Body"], one.message["MessageAttributes"]) for one in sqs.queues[queue]]


def test_to_publish_is_to_send_to_the_queue_of_the_exchange(sqs):
    message_id = client(sqs).publish("xs_alice", "v03.a", "hello", {"sum": "z"})

    text = {"DataType": "String"}
    attributes = {"topic": {**text, "StringValue": "v03.a"}, "sum": {**text, "StringValue": "z"}}
    assert message_id == "m1"
    assert published(sqs) == [("hello", attributes)]
    assert sqs.asked == []


def test_a_stage_may_have_a_prefix_for_its_exchanges(sqs):
    sqs.queues["pump-xs_alice"] = []

    ExchangeClient(sqs, StageNames("dev", "pump-"), URL_PREFIX).publish("xs_alice", "", "hello")

    assert len(published(sqs, "pump-xs_alice")) == 1


def test_a_message_that_cannot_be_published_is_not_sent(sqs):
    with pytest.raises(InvalidPublication, match="body: is empty"):
        client(sqs).publish("xs_alice", "a", "")

    assert sqs.calls == []


def test_a_message_that_is_too_large_is_refused_with_the_limit(sqs):
    with pytest.raises(InvalidPublication, match="1048576"):
        client(sqs).publish("xs_alice", "a", "x" * 1_048_577)


@pytest.mark.parametrize(
    ("order_by", "group"), [(OrderBy.TOPIC, "a"), (OrderBy.PUBLISHER, ALICE), (OrderBy.EXCHANGE, "exchange")]
)
def test_messages_are_in_the_groups_that_the_exchange_was_declared_for(sqs, order_by, group):
    client(sqs).publish("xs_alice.fifo", "a", "1", order_by=order_by)

    (call,) = sqs.named("SendMessageBatch")
    assert [entry["MessageGroupId"] for entry in call["Entries"]] == [group]


def test_an_unconfirmed_message_is_reported_as_possibly_published(sqs):
    sqs.send_message_batch = lambda **_: {}

    with pytest.raises(NotPublished, match="exchange 'xs_alice'"):
        client(sqs).publish("xs_alice", "a", "hello")


@pytest.mark.parametrize("exchange", ["xs_eve", "xs_eve.fifo"])
def test_an_undeclared_exchange_is_named_with_the_remedy(sqs, exchange):
    with pytest.raises(NotFound, match=f"^exchange '{exchange}' does not exist: declare it first$"):
        client(sqs).publish(exchange, "a", "hello")


def test_a_foreign_exchange_is_named_with_the_user(sqs):
    sqs.denied = {"xs_bob"}

    with pytest.raises(NotPermitted, match=r"^user 'alice' may not publish to exchange 'xs_bob': the user's role"):
        client(sqs).publish("xs_bob", "a", "hello")
    with pytest.raises(NotPermitted, match=r"^the owner of these credentials may not"):
        ExchangeClient(sqs, StageNames("dev"), URL_PREFIX).publish("xs_bob", "a", "hello")


def test_other_errors_of_sqs_are_raised_unchanged(sqs):
    def refuse(**_: Any) -> Any:
        raise sqs.exceptions.ClientError({"Error": {"Code": OTHER_ERROR, "Message": ""}}, "SendMessageBatch")

    sqs.send_message_batch = refuse

    with pytest.raises(sqs.exceptions.ClientError, match=OTHER_ERROR):
        client(sqs).publish("xs_alice", "a", "hello")


def test_ten_messages_go_in_one_call(sqs):
    posts = [PublishRequest("a", str(number)) for number in range(1, 24)]

    results = list(client(sqs).publish_all("xs_alice", posts))

    assert [len(call["Entries"]) for call in sqs.named("SendMessageBatch")] == [10, 10, 3]
    assert [(one.request, one.message_id) for one in results] == [(post, f"m{post.body}") for post in posts]


def test_a_call_holds_no_more_than_sqs_takes(sqs):
    posts = [PublishRequest("a", "x" * 500_000) for _ in range(3)]

    assert all(one.message_id for one in client(sqs).publish_all("xs_alice", posts))
    assert [len(call["Entries"]) for call in sqs.named("SendMessageBatch")] == [2, 1]


def test_messages_are_sent_before_the_next_are_known(sqs):
    def posts():
        yield from [PublishRequest("a", "x")] * 10
        assert len(published(sqs)) == 10
        yield PublishRequest("a", "last")

    assert len(list(client(sqs).publish_all("xs_alice", posts()))) == 11


def test_a_message_that_cannot_be_published_does_not_hold_up_the_others(sqs):
    posts = [PublishRequest("a", "first"), PublishRequest("k" * 256, "second"), PublishRequest("a", "third")]

    first, second, third = client(sqs).publish_all("xs_alice", posts)

    assert [body for body, _ in published(sqs)] == ["first", "third"]
    assert (first.message_id, first.problem) == ("m1", None)
    assert (second.message_id, third.message_id) == (None, "m2")
    assert "256 bytes" in str(second.problem)


def test_nothing_is_called_for_messages_that_all_cannot_be_published(sqs):
    assert [one.message_id for one in client(sqs).publish_all("xs_alice", [PublishRequest("a", "")])] == [None]
    assert sqs.calls == []


def test_messages_that_a_batch_call_rejects_are_sent_alone(sqs):
    sqs.failing = {"second"}

    first, second = client(sqs).publish_all("xs_alice", [PublishRequest("a", "first"), PublishRequest("a", "second")])

    assert (first.message_id, second.message_id) == ("m1", "m2")
    assert sqs.named("SendMessage")[0]["MessageBody"] == "second"


def test_an_ordered_exchange_gets_groups_by_key_and_never_two_of_a_group_in_a_call(sqs):
    posts = [
        PublishRequest("a", "1"),
        PublishRequest("b", "2"),
        PublishRequest("a", "3", deduplication_id="mine"),
        PublishRequest("", "4"),
    ]

    list(client(sqs).publish_all("xs_alice.fifo", posts))

    first, second = (call["Entries"] for call in sqs.named("SendMessageBatch"))
    assert [one["MessageGroupId"] for one in first] == ["a", "b"]
    assert second[0]["MessageGroupId"] == "a"
    assert second[1]["MessageGroupId"].startswith("sha256-")
    assert second[0]["MessageDeduplicationId"] == "mine"
    assert first[0]["MessageDeduplicationId"] != first[1]["MessageDeduplicationId"]


def test_no_more_is_sent_than_there_is(sqs):
    assert list(client(sqs).publish_all("xs_alice", [])) == []
    assert len(list(client(sqs).publish_all("xs_alice", [PublishRequest("a", "x")] * 10))) == 10
    assert len(sqs.named("SendMessageBatch")) == 1
