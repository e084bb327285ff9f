"""Golden files of the stored items and messages of the exchange.

A golden file is changed by hand, on purpose, and together with a migration (see `files.py`).
"""

from datetime import datetime, timedelta

import pytest

from signalbox.aws.exchange.bindings import DynamoBindings
from signalbox.aws.exchange.connections import DynamoConnectionChecks
from signalbox.aws.exchange.counters import DynamoCounters
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues, DynamoUsers
from signalbox.aws.exchange.items import LEFT
from signalbox.aws.exchange.key_holds import DynamoKeyHolds
from signalbox.aws.exchange.routing_table import DynamoCounterWriter, DynamoHeads, DynamoRoutingTable
from signalbox.aws.exchange.sender import SqsExchangeSender
from signalbox.control.envelope import Envelope
from signalbox.exchange.control import commands
from signalbox.exchange.control.command_reader import COMMANDS
from signalbox.exchange.messages import publications
from signalbox.exchange.messages.copies import Copy, read_retry, retry_message
from signalbox.exchange.messages.deliveries import DeliveredMessage
from signalbox.exchange.messages.headers import OWN_NAMES
from signalbox.exchange.messages.properties import MessageProperties, dead_letter_message
from signalbox.exchange.messages.replayed_messages import OriginalMessage, replayed_copy, replayed_publication
from signalbox.exchange.model import events
from signalbox.exchange.model.connections import ConnectionCheck, Readers
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import (
    Binding,
    DeclaredQueue,
    ExchangeRecord,
    LiveSettings,
    MinuteCounts,
    OrderBy,
    QueueSettings,
    ResourceKind,
    ResourceRef,
    Retention,
    User,
)
from signalbox.exchange.routing import events as routing_events
from signalbox.exchange.routing.ports import CopySettings, HeadChange
from signalbox.exchange.routing.sequences import Head
from signalbox.messages import Attribute, Message, outgoing
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.golden.files import AT, RecordingSqs, golden, rewritten, store, stored_items

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
PREFIX = "https://sqs.us-east-1.amazonaws.com/111122223333/"
NAMES = StageNames("trial", "trial-")

PLAIN = ExchangeRecord("xs_plain", None, AT)
ALTERNATE = ExchangeRecord("xs_alt", "alice", AT, alternate="xs_plain", version=3)
RULES = {"": Retention(), "news.": Retention(count=5), "old.": Retention(age=90 * DAY)}
LIVE = ExchangeRecord(
    "xs_live.fifo",
    "alice",
    AT,
    live=LiveSettings(OrderBy.PUBLISHER, "guest", Retention(10, timedelta(hours=1.5)), RULES),
)
SIMPLE_LIVE = ExchangeRecord("xs_simple.fifo", None, AT, live=LiveSettings())
ISSUERS = (
    Issuer("https://a.example.org", "a"),
    Issuer("https://b.example.org", "b", "lab", "email", "role", "roles", 30, "page", ("https://c.example.org",)),
)
TRUSTING = ExchangeRecord("xs_trusting.fifo", None, AT, live=LiveSettings(issuers=ISSUERS))
DELETED = ExchangeRecord("xs_gone", None, AT, is_deleting=True)
EXCHANGES = (ALTERNATE, DELETED, LIVE, PLAIN, SIMPLE_LIVE, TRUSTING)

PLAIN_QUEUE = DeclaredQueue("q_plain", None, AT, AT + SECOND)
SETTINGS = QueueSettings(expires=DAY, message_ttl=20.5 * SECOND, prefetch=7, maximum_receives=3)
FULL_QUEUE = DeclaredQueue("q_alice_all.fifo", "alice", AT, AT + SECOND, AT + 2 * SECOND, SETTINGS, version=4)
DELETED_QUEUE = DeclaredQueue("q_gone", None, AT, AT, is_deleting=True)
QUEUES = (FULL_QUEUE, DELETED_QUEUE, PLAIN_QUEUE)
LEFT_QUEUE = DeclaredQueue("q_left", "alice", AT, AT)

TO_QUEUE = Binding("xs_plain", ResourceRef(ResourceKind.QUEUE, "q_plain"), Pattern.stored("a.*.#"))
TO_ALL = Binding("xs_plain", ResourceRef(ResourceKind.QUEUE, "q_plain"), Pattern.stored(""))
TO_EXCHANGE = Binding("xs_plain", ResourceRef(ResourceKind.EXCHANGE, "xs_alt"), Pattern.stored("#"))
USER = User("alice", Role.SOURCE, Ownership.STRICT, AT, "AIDAALICE")
LIVE_ONLY = User("lee", Role.SUBSCRIBER, Ownership.STRICT, AT, None)

COUNTS = {"received": 5, "routed": 4, "dropped": 1, "bytes": 512}
COUNTED = MinuteCounts(AT.replace(microsecond=0), received=5, routed=4, dropped=1, size_bytes=512, last_at=AT)
HEAD = Head(3, {"m-2": 2, "m-3": 3}, {"trial-q_alice_all.fifo": 2})


def write_exchanges(table) -> None:
    for exchange in EXCHANGES:
        DynamoExchanges(table).create(exchange)
    for queue in QUEUES:
        DynamoQueues(table).create(queue)
    DynamoQueues(table, LEFT).create(LEFT_QUEUE)
    for binding in (TO_QUEUE, TO_ALL, TO_EXCHANGE):
        DynamoBindings(table).bind(binding)
    DynamoUsers(table).put(USER)
    DynamoUsers(table).put_live_only([LIVE_ONLY])
    DynamoCounterWriter(table).add({PLAIN.resource: COUNTS, PLAIN_QUEUE.resource: {"redelivered": 2}}, at=AT)
    heads = DynamoHeads(table, table)
    heads.save("xs_live.fifo", HeadChange("a.b", HEAD, Head()))
    heads.start_detour("xs_live.fifo", "a.b", "trial-q_alice_all.fifo", last=2)
    DynamoKeyHolds(table).hold("xs_live.fifo", "a.b", messages=["m-3", "m-4"], now=AT, until=AT + 30 * SECOND)


def sent(sender_id: str, **attributes: Attribute) -> Message:
    system = {"SentTimestamp": "1772366400250", "SenderId": sender_id, "ApproximateReceiveCount": "2"}
    return Message("m-1", "text", attributes, {**system, "AWSTraceHeader": "Root=1-0"}, {})


TEXT, BINARY = Attribute("String", "red"), Attribute("Binary", base64="AAEC")
PROPERTIES = MessageProperties("a.b", "text", {"color": TEXT, "thumb": BINARY})
TOPIC = {"topic": Attribute("String", "a.b")}
PUBLISHED = sent("AIDAALICE", color=TEXT, thumb=BINARY, **TOPIC)
ODD = MessageProperties("", "text", {"topic": TEXT, "aws.name": BINARY, "half": Attribute("String", "\x00")})
ESCAPED = MessageProperties("a\x01", "text", {})
DELIVERY = {"exchange": "xs_plain", "publisher": "alice"}


def copy_of(properties: MessageProperties, queue: str, *, sequence: int | None = None, lifetime: bool = False) -> Copy:
    message = properties.delivered(
        PUBLISHED,
        **DELIVERY,
        sequence=sequence,
        expires_at=AT + DAY if lifetime else None,
        is_fifo=queue.endswith(".fifo"),
    )
    return Copy(queue, NAMES.queue(queue), message, 101, "xs_plain", properties.key, sequence, AT, attempt=2)


FULL_COPY = copy_of(PROPERTIES, "q_alice_all.fifo", sequence=3, lifetime=True)
PLAIN_COPY = copy_of(MessageProperties("a.b", "text", {}), "q_plain")
ORIGINAL = OriginalMessage("o-1", "xs_plain", PROPERTIES, "m-1", "alice", AT, 3)


def messages() -> dict[str, object]:
    sqs = RecordingSqs()
    sender = SqsExchangeSender(sqs, PREFIX)
    found = {
        "published": PROPERTIES.published(),
        "published in order": PROPERTIES.published(deduplication_id="q-1", order_by=OrderBy.TOPIC),
        "published in order by publisher": PROPERTIES.published(
            publisher="alice", deduplication_id="q-1", order_by=OrderBy.PUBLISHER
        ),
        "published in order of all": PROPERTIES.published(deduplication_id="q-1", order_by=OrderBy.EXCHANGE),
        "published with packed headers": ODD.published(publisher="alice"),
        "published with escaped key": ESCAPED.published(deduplication_id="q-1"),
        "copy": PLAIN_COPY.message,
        "copy in order": FULL_COPY.message,
        "copy with packed headers": copy_of(ODD, "q_plain").message,
        "copy with escaped key": copy_of(ESCAPED, "q_alice_all.fifo", sequence=1).message,
        "retry": retry_message(PLAIN_COPY),
        "retry in order": retry_message(FULL_COPY),
        "dead letter": dead_letter_message(FULL_COPY.message, own_names=OWN_NAMES, reason="not declared", is_fifo=True),
        "dead letter without order": dead_letter_message(
            PUBLISHED, own_names=["topic"], reason="no topic", is_fifo=False
        ),
        "replayed publication": replayed_publication(ORIGINAL, "r-1", order_by=OrderBy.TOPIC),
        "replayed publication without order": replayed_publication(ORIGINAL, "r-1", order_by=None),
        "replayed copy": replayed_copy(ORIGINAL, "r-1", into="trial-q_alice_all.fifo", expires_at=AT + DAY),
    }
    for message in found.values():
        sender.send("trial-q", message)
    return dict(zip(found, sqs.sent, strict=True))


def as_received(message: object) -> Message:
    """Return a golden message as a queue returns it."""
    system = {name: message[name] for name in ("MessageGroupId", "MessageDeduplicationId") if name in message}
    header = message.get("MessageSystemAttributes", {}).get("AWSTraceHeader")
    document = {
        "MessageId": "w-1",
        "Body": message["MessageBody"],
        "MessageAttributes": message.get("MessageAttributes", {}),
        "Attributes": {
            **system,
            **({"AWSTraceHeader": header["StringValue"]} if header else {}),
            "ApproximateReceiveCount": "1",
            "SentTimestamp": str(round(AT.timestamp() * 1000)),
        },
    }
    return Message.parse(document)


SENDERS = publications.TrustedSenders("AROACONTROL", "AROASESSION")
PUBLICATION = publications.publication(
    PUBLISHED, PROPERTIES, publications.Routes((), by_alternate=False), "alice", SENDERS
)
BY = {"user": "alice", "at": AT}
EVENTS = {
    "exchange declared": events.declared(LIVE, **BY),
    "queue declared": events.declared(FULL_QUEUE, user=None, at=AT),
    "exchange deleted": events.deleted(PLAIN, **BY),
    "queue deleted": events.deleted(PLAIN_QUEUE, **BY, reason="expired"),
    "bound": events.bound(TO_QUEUE, **BY),
    "unbound": events.unbound(TO_EXCHANGE, **BY),
    "delivered": routing_events.routed(FULL_COPY, "delivered", at=AT + SECOND),
    "retried": routing_events.routed(PLAIN_COPY, "retried", at=AT + SECOND),
    "dead copy": routing_events.dead_copy(PLAIN_COPY, reason="not declared", at=AT),
    "rejected": routing_events.rejected(PUBLISHED, exchange="xs_plain", reason="no topic", at=AT),
    "rejected retry": routing_events.rejected(PUBLISHED, exchange=None, reason="no copy", at=AT),
    "unrouted": routing_events.unrouted(PUBLICATION, "dropped", exchange="xs_plain", sequence=None, at=AT),
    "logged": routing_events.logged(PUBLICATION, exchange="xs_live.fifo", sequence=3, at=AT),
}

IN_WORDS = MessageProperties("a.b", "text", {"color": TEXT})
READ = {
    "declare_exchange": commands.DeclareExchange("xs_alt", "xs_plain"),
    "delete_exchange": commands.DeleteExchange("xs_alt", force=True),
    "declare_queue": commands.DeclareQueue(
        "q_plain", commands.QueueSettingsPatch(600 * SECOND, 20 * SECOND, prefetch=7)
    ),
    "delete_queue": commands.DeleteQueue("q_plain", if_empty=True),
    "bind": commands.Bind(TO_QUEUE),
    "unbind": commands.Unbind(TO_EXCHANGE),
    "unbind_user": commands.UnbindUser("alice"),
    "bindings": commands.ListBindings("xs_plain"),
    "publish": commands.PublishMessage("xs_plain", IN_WORDS, "q-1"),
    "consuming": commands.ConsumerHeartbeat("q_plain"),
    "status": commands.Status(("q_*",)),
    "whoami": commands.WhoAmI(),
    "exchanges": commands.ListExchanges(),
    "queues": commands.ListQueues(),
    "replay": commands.ReplayMessages(
        "q_plain", (commands.ReplayedMessage("xs_plain", IN_WORDS, "m-1", "alice", 1_772_366_400_250),)
    ),
}


def test_items_are_written_as_in_the_golden_file(exchange_table) -> None:
    write_exchanges(exchange_table)

    assert stored_items(exchange_table) == golden("exchange", "items")


def test_golden_records_are_read(exchange_table) -> None:
    store(exchange_table, golden("exchange", "items"))

    exchanges, queues, users = (one(exchange_table) for one in (DynamoExchanges, DynamoQueues, DynamoUsers))
    assert exchanges.every() == [one.listed for one in EXCHANGES]
    # Each binding has raised the versions of the exchanges at its ends.
    assert [exchanges.find(name).version for name in ("xs_plain", "xs_alt")] == [4, 4]
    assert [exchanges.find(one.name) for one in (LIVE, SIMPLE_LIVE, DELETED)] == [LIVE, SIMPLE_LIVE, DELETED]
    assert exchanges.find("xs_live.fifo").live.rules == RULES
    assert exchanges.find("xs_alt").alternate == "xs_plain"
    assert queues.every() == list(QUEUES)
    assert DynamoQueues(exchange_table, LEFT).every() == [LEFT_QUEUE]
    assert users.every() == [USER]
    assert list(users.live_only()) == [LIVE_ONLY]
    assert users.find_all(["alice", "lee", "mia"]) == {"alice": USER, "lee": LIVE_ONLY}


def test_golden_bindings_counters_and_heads_are_read(exchange_table) -> None:
    store(exchange_table, golden("exchange", "items"))

    bindings, table = DynamoBindings(exchange_table), DynamoRoutingTable(exchange_table)
    assert set(bindings.of("xs_plain")) == {TO_QUEUE, TO_ALL, TO_EXCHANGE}
    assert set(bindings.to(PLAIN_QUEUE.resource)) == {TO_QUEUE, TO_ALL}
    assert TO_QUEUE in table.bindings("xs_plain", first_word="a")
    assert table.snapshot([], senders=["AIDAALICE"]).users == {"AIDAALICE": "alice"}
    settings = table.copy_settings(["q_alice_all.fifo", "q_plain"])
    assert settings == {"q_alice_all.fifo": CopySettings(20.5 * SECOND, owner="alice"), "q_plain": CopySettings()}
    assert [table.created_at(name) for name in ("q_plain", "q_gone")] == [PLAIN_QUEUE.created_at, None]
    assert DynamoCounters(exchange_table).since(PLAIN.resource, AT) == [COUNTED]
    assert DynamoHeads(exchange_table, exchange_table).read("xs_live.fifo", ["a.b"]) == {"a.b": HEAD}
    holds = DynamoKeyHolds(exchange_table)
    assert holds.hold("xs_live.fifo", "a.b", messages=["m-9"], now=AT, until=AT + SECOND) is None
    held = holds.hold("xs_live.fifo", "a.b", messages=["m-3"], now=AT, until=AT + SECOND)
    assert held == ["m-3", "m-4", "m-3"]


def test_the_last_check_of_connections_has_an_item_of_its_own(exchange_table) -> None:
    store(exchange_table, golden("exchange", "connections"))

    checks = DynamoConnectionChecks(exchange_table)
    check = checks.last()
    assert check == ConnectionCheck(Readers("arn:route", "arn:control"), AT)
    checks.record(check)
    assert stored_items(exchange_table) == golden("exchange", "connections")


def test_messages_are_written_as_in_the_golden_file() -> None:
    assert messages() == golden("exchange", "messages")


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        ("published", PROPERTIES),
        ("published in order", PROPERTIES),
        ("published with packed headers", ODD),
        ("published with escaped key", ESCAPED),
    ],
)
def test_golden_publications_are_read(name: str, properties: MessageProperties) -> None:
    message = as_received(golden("exchange", "messages")[name])

    assert MessageProperties.from_published(message, own_names=("topic", "publisher")) == properties


@pytest.mark.parametrize(
    ("name", "properties", "sequence", "expires_at"),
    [
        ("copy", MessageProperties("a.b", "text", {}), None, None),
        ("copy in order", PROPERTIES, 3, AT + DAY),
        ("copy with packed headers", ODD, None, None),
        ("copy with escaped key", ESCAPED, 1, None),
    ],
)
def test_golden_copies_are_read(
    name: str, properties: MessageProperties, sequence: int | None, expires_at: datetime | None
) -> None:
    found = DeliveredMessage.parse(as_received(golden("exchange", "messages")[name]))

    assert MessageProperties(found.key, found.body, found.attributes) == properties
    assert (found.exchange, found.message_id, found.publisher) == ("xs_plain", "m-1", "alice")
    assert (found.published_at, found.sequence, found.expires_at) == (AT, sequence, expires_at)


@pytest.mark.parametrize(("name", "copy"), [("retry", PLAIN_COPY), ("retry in order", FULL_COPY)])
def test_golden_retries_are_read(name: str, copy: Copy) -> None:
    found = read_retry(as_received(golden("exchange", "messages")[name]), NAMES)

    assert outgoing(found.message) == outgoing(copy.message)
    assert (found.queue, found.destination, found.exchange) == (copy.queue, copy.destination, copy.exchange)
    assert (found.key, found.sequence, found.published_at) == (copy.key, copy.sequence, copy.published_at)
    assert (found.attempt, found.waiting_since) == (2, AT)


def test_control_messages_are_written_as_in_the_golden_file() -> None:
    sent = golden("exchange", "control")

    assert {name: rewritten(body) for name, body in sent.items()} == sent


@pytest.mark.parametrize("name", READ)
def test_golden_commands_are_read(name: str) -> None:
    envelope = Envelope.parse(golden("exchange", "control")[name])

    assert envelope.command(COMMANDS) == READ[name]


def test_golden_live_settings_are_read() -> None:
    envelope = Envelope.parse(golden("exchange", "control")["declare_exchange live"])

    found = envelope.command(COMMANDS).live.apply_to(None)
    retention = Retention(10, timedelta(hours=1.5))
    assert (found.order_by, found.anonymous, found.retention) == (OrderBy.PUBLISHER, "guest", retention)
    assert found.rules == {"news.": Retention(5), "old.": Retention(age=90 * DAY)}


@pytest.mark.parametrize("name", EVENTS)
def test_history_events_are_written_as_in_the_golden_file(name: str) -> None:
    assert EVENTS[name].to_json() == golden("exchange", "events")[name]
