"""The store of sent copies: memory and DynamoDB behave alike."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.aws.exchange import sent_copies
from signalbox.aws.exchange.sent_copies import DynamoSentCopies
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.expressions import attr
from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.ports import SentCopies
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.aws import STORES
from tests.unit.exchange.routing.routing_world import MemorySentCopies

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)


@pytest.fixture(params=STORES)
def sent(request) -> SentCopies:
    return (
        MemorySentCopies() if request.param == "memory" else DynamoSentCopies(request.getfixturevalue("exchange_table"))
    )


def copy(message_id: str, queue: str, *, attempt: int = 2) -> Copy:
    message = Message(MessageId(message_id), "body", {}, {}, document={})
    name, exchange, key = DeclaredName(queue), ExchangeName("xs"), RoutingKey("a")
    return Copy(name, QueueName(f"s-{queue}"), message, 4, exchange, key, None, NOW, attempt)


def test_what_is_recorded_by_any_attempt_is_not_left(sent) -> None:
    copies = [copy(message_id, queue) for message_id in "ab" for queue in ("q_1", "q_2", "q_3")]
    assert sent.left(copies) == copies

    sent.add([copies[0], copies[4]], now=NOW)
    sent.add([copies[2]], now=NOW + timedelta(minutes=2))

    assert sent.left(copies) == [copies[1], copies[3], copies[5]]
    assert sent.left([replace(one, attempt=1) for one in copies[3:]]) == [replace(one, attempt=1) for one in copies[3:]]


def test_without_redelivered_messages_nothing_is_called() -> None:
    store = DynamoSentCopies(DynamoTable(None, "t"))  # type: ignore[arg-type] # never called
    new = [copy("a", "q_1", attempt=1)]
    store.add([], now=NOW)
    assert store.left(new) == new


def test_records_expire_when_their_messages_do(exchange_table) -> None:
    DynamoSentCopies(exchange_table).add([copy("a", "q_1")], now=NOW)

    item = exchange_table.get({"pk": "sent#a", "sk": "sent"})
    assert item["expires_at"] == (NOW + timedelta(days=14)).timestamp()


def test_any_number_of_copies_is_recorded_in_items_that_dynamodb_takes(exchange_table, monkeypatch) -> None:
    """The sessions of a topic have no limit; an item has 400 KB at most."""
    digest_bytes = 17
    assert 2 * sent_copies.DIGESTS_OF_WRITE * digest_bytes < 400_000
    monkeypatch.setattr(sent_copies, "DIGESTS_OF_WRITE", 10)
    sent = DynamoSentCopies(exchange_table)
    copies = [copy("a", f"q_{number}") for number in range(46)]

    for start, end in ((0, 9), (9, 26), (26, 45)):
        sent.add(copies[start:end], now=NOW)

    assert sent.left(copies) == copies[-1:]
    items = [*exchange_table.query(attr("pk").eq("sent#a"))]
    assert [len(item["copies"]) for item in items] == [19, 17, 9]
