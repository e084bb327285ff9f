"""The parser of commands, which reports all problems at once."""

from datetime import timedelta

import pytest

from signalbox.control.envelope import Envelope, InvalidCommand
from signalbox.documents import shown
from signalbox.exchange.control.command_reader import COMMANDS
from signalbox.exchange.control.commands import (
    Bind,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    ListBindings,
    ListExchanges,
    PublishMessage,
    QueueSettingsPatch,
    ReplayedMessage,
    ReplayMessages,
    Status,
    Unbind,
    UnbindUser,
)
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import Binding, GroupBy, QueueSettings, ResourceKind, ResourceRef
from signalbox.messages import Attribute
from signalbox.sarracenia.rights.permissions import Ownership, Role

QUEUE = ResourceRef(ResourceKind.QUEUE, "q_alice")
OLD = {"exchange": "xs_a", "routing_key": "a.b", "body": "{}", "message_id": "m-1", "published_at": 1000}


def read(command, **fields):
    return Envelope("1", None, {"command": command, "id": "1", **fields}).command(COMMANDS)


def problems(command, **fields):
    with pytest.raises(InvalidCommand) as caught:
        read(command, **fields)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("command", "fields", "expected"),
    [
        ("declare_exchange", {"exchange": "xs_a"}, DeclareExchange("xs_a", None)),
        (
            "declare_exchange",
            {"exchange": "xs_a", "alternate": ""},
            DeclareExchange("xs_a", None, removes_alternate=True),
        ),
        ("delete_exchange", {"exchange": "xs_a"}, DeleteExchange("xs_a", force=False)),
        ("declare_queue", {"queue": "q_alice"}, DeclareQueue("q_alice", QueueSettingsPatch())),
        (
            "declare_queue",
            {
                "queue": "q_a.b",
                "expires_seconds": 60,
                "message_ttl_seconds": 1,
                "prefetch": 1,
                "maximum_receives": 1000,
                "group_by": "topic",
            },
            DeclareQueue(
                "q_a.b", QueueSettingsPatch(timedelta(minutes=1), timedelta(seconds=1), 1, 1000, GroupBy.TOPIC)
            ),
        ),
        ("bind", {"exchange": "xs_a", "queue": "q_alice", "pattern": ""}, Bind(Binding("xs_a", QUEUE, Pattern(())))),
        (
            "bind",
            {"exchange": "xs_a", "destination": "xs_b", "pattern": "#"},
            Bind(Binding("xs_a", ResourceRef(ResourceKind.EXCHANGE, "xs_b"), Pattern(("#",)))),
        ),
        (
            "unbind",
            {"exchange": "xs_a", "queue": "q_alice", "pattern": "#.#.#"},
            Unbind(Binding("xs_a", QUEUE, Pattern(("#", "#", "#")))),
        ),
        (
            "unbind_user",
            {"user": "alice", "role": "feeder", "ownership": "loose"},
            UnbindUser("alice", Role.FEEDER, Ownership.LOOSE),
        ),
        ("exchanges", {"exchange": "xs_a"}, ListExchanges("xs_a")),
        ("bindings", {}, ListBindings(None)),
        (
            "publish",
            {"exchange": "xs_a", "routing_key": "", "body": "x", "headers": {"a": "b"}},
            PublishMessage("xs_a", MessageProperties("", "x", {"a": Attribute("String", "b")}), "1"),
        ),
        (
            "replay",
            {"queue": "q_alice", "messages": [OLD, {**OLD, "publisher": "bob"}]},
            ReplayMessages(
                "q_alice",
                (
                    ReplayedMessage("xs_a", MessageProperties("a.b", "{}", {}), "m-1", None, 1000),
                    ReplayedMessage("xs_a", MessageProperties("a.b", "{}", {}), "m-1", "bob", 1000),
                ),
            ),
        ),
        ("status", {}, Status()),
    ],
)
def test_a_command_is_read(command, fields, expected):
    """The usual form of each command is in `tests/golden`."""
    assert read(command, **fields) == expected


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_refuses_what_it_does_not_know(command):
    assert any(problem.startswith("durable: unknown field") for problem in problems(command, durable=True))


BETWEEN = {"exchange": "xs_a", "queue": "q_a"}
NAMED = "expected a name, or one with '*', not"


@pytest.mark.parametrize(
    ("command", "fields", "expected"),
    [
        (
            "declare_queue",
            {"queue": "alice", "expires_seconds": 59, "message_ttl_seconds": 1_209_601, "prefetch": 0}
            | {"maximum_receives": 1001, "group_by": "tenant"},
            [
                (
                    "expires_seconds: expected 60 to 31622400, or 0 for never, not 59; on AWS a queue is deleted 20 "
                    "minutes later, when its metrics are complete"
                ),
                "message_ttl_seconds: expected 1 to 1209600, or 0 for never, not 1209601",
                "prefetch: expected 1 to 1000, not 0",
                "maximum_receives: expected 1 to 1000, not 1001",
                "group_by: expected one of publisher, topic, not 'tenant'",
                "queue: queue 'alice': expected 'q_' and printable characters, 255 bytes",
            ],
        ),
        (
            "bind",
            {"exchange": "alice"},
            [
                "exchange: exchange 'alice': expected 'x' and letters, digits, '-' and '_', 80 in all at most",
                "queue: is missing or empty",
                'pattern: is missing; an empty text is ""',
            ],
        ),
        (
            "bind",
            {"exchange": "xs_a", "destination": "xs_a", "pattern": "#"},
            ["destination: an exchange cannot be bound to itself"],
        ),
        (
            "declare_exchange",
            {"exchange": "xs_a", "alternate": "xs_a"},
            ["alternate: an exchange cannot be its own alternate"],
        ),
        (
            "bind",
            {**BETWEEN, "destination": "xs_b", "pattern": "#"},
            ["destination: expected either a queue or another exchange as destination, not both"],
        ),
        ("unbind", {**BETWEEN, "pattern": "a" * 256}, ["pattern: has 256 bytes of UTF-8; at most 255 are allowed"]),
        (
            "publish",
            {"exchange": "xs_a"},
            ['routing_key: is missing; an empty text is ""', "body: is missing or empty"],
        ),
        (
            "replay",
            {"queue": "q_a", "messages": [{**OLD, "message_id": "a b", "published_at": None, "age": 1}]},
            [
                (
                    "messages[0].age: unknown field; known here: exchange, routing_key, body, headers, message_id, "
                    "publisher, published_at"
                ),
                "messages[0].published_at: expected milliseconds since 1970",
                "messages[0].message_id: expected 100 printable characters at most, not 'a b'",
            ],
        ),
        ("replay", {"queue": "q_a", "messages": []}, ["messages: expected 1 to 100 messages, not 0"]),
        ("replay", {"queue": "q_a", "messages": [OLD] * 101}, ["messages: expected 1 to 100 messages, not 101"]),
        ("status", {"names": ["xpublic"] * 101}, ["names: expected 100 at most, not 101"]),
        (
            "status",
            {"names": ["", "q_*", "q_" * 128]},
            [f"names[0]: {NAMED} ''", f"names[2]: {NAMED} {shown('q_' * 128)}"],
        ),
        (
            "unbind_user",
            {"user": "alice", "role": "king", "ownership": "firm"},
            [
                "role: expected one of admin, feeder, source, subscriber, not 'king'",
                "ownership: expected one of strict, loose, not 'firm'",
            ],
        ),
    ],
)
def test_all_problems_of_a_command_are_reported_at_once(command, fields, expected):
    assert problems(command, **fields) == expected


def test_a_third_many_cannot_be_bound():
    (problem,) = problems("bind", exchange="xs_a", queue="q_a", pattern="#.#.#")

    assert problem.startswith("pattern: pattern '#.#.#' uses '#' 3 times")


def test_all_problems_of_a_message_are_reported_at_once():
    found = problems("publish", exchange="alice", routing_key="a" * 256, body="\0")

    assert found[0].startswith("exchange: ")
    assert found[1].startswith("routing_key: ")
    assert found[1].endswith("has 256 bytes of UTF-8; at most 255 are allowed")
    assert found[2].startswith("body: has characters that SQS does not allow")


def test_settings_that_a_patch_does_not_name_stay_unchanged():
    found = QueueSettings(timedelta(minutes=5), None, 10, 7)

    assert QueueSettingsPatch().apply_to(found) == found
    by_topic = QueueSettingsPatch(group_by=GroupBy.TOPIC).apply_to(found)
    assert (by_topic.group_by, QueueSettingsPatch().apply_to(by_topic)) == (GroupBy.TOPIC, by_topic)
    assert QueueSettingsPatch(message_ttl=timedelta(seconds=9), prefetch=2, maximum_receives=3).apply_to(
        found
    ) == QueueSettings(timedelta(minutes=5), timedelta(seconds=9), 2, 3)


def test_no_time_is_never():
    settings = QueueSettings(timedelta(minutes=5), timedelta(minutes=5))

    assert QueueSettingsPatch(timedelta(0), timedelta(0)).apply_to(settings) == QueueSettings()
    assert read("declare_queue", queue="q_a", expires_seconds=0).patch == QueueSettingsPatch(expires=timedelta(0))
