"""The reader of the counters that the router writes."""

from datetime import UTC, datetime, timedelta

from signalbox.aws.exchange.counters import DynamoCounters
from signalbox.exchange.model.records import MinuteCounts, ResourceKind, ResourceRef

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PLACE = ResourceRef(ResourceKind.EXCHANGE, "xpublic")
COUNTS = ("received", "routed", "dropped", "alternate", "rejected", "retried", "dead", "redelivered")


def item(resource: str, at: datetime, **counts: int) -> dict[str, object]:
    return {"pk": resource, "sk": f"minute#{round(at.timestamp() / 60)}", **counts}


def test_counters_are_returned_in_order_from_a_minute_on(exchange_table) -> None:
    last_at = round((NOON + MINUTE).timestamp() * 1000) + 7
    every = {name: number for number, name in enumerate(COUNTS, start=1)}
    for stored in (
        item("exchange#xpublic", NOON - MINUTE, received=1),
        item("exchange#xpublic", NOON + MINUTE, **every, bytes=9, last_at=last_at, expires_at=1),
        item("exchange#xpublic", NOON, routed=3),
        item("exchange#xs_alice", NOON, received=1),
        {"pk": "exchange#xpublic", "sk": "exchange", "version": 1},
    ):
        exchange_table.put_item(Item=stored)

    counted = DynamoCounters(exchange_table).since(PLACE, NOON + timedelta(seconds=59))

    last = NOON + MINUTE + timedelta(milliseconds=7)
    assert counted == [MinuteCounts(NOON, routed=3), MinuteCounts(NOON + MINUTE, **every, size_bytes=9, last_at=last)]


def test_a_resource_without_counters_has_no_minutes(exchange_table) -> None:
    assert DynamoCounters(exchange_table).since(PLACE, NOON) == []
