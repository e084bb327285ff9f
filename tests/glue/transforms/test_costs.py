"""The rules of the cost report; every expected number is counted by hand."""

from collections.abc import Callable
from datetime import date, timedelta

import pytest
from pyspark.sql import Row

from glue_jobs.transforms.costs import COLUMNS, NOT_PRICED, cost_counts, cost_daily
from signalbox.history.prices import PRICES, SQS, USAGES

pytestmark = pytest.mark.spark

DAY = date(2026, 11, 21)


Event = dict[str, object]
Found = dict[tuple[str, str, str], Row]
# The events of each test that has some, each test on a day of its own: one run counts them all.
HAPPENED: dict[date, list[Event]] = {}


def happened(*events: Event) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a test the rows of a day on which these events happened, as `found`."""
    day = DAY + timedelta(len(HAPPENED))
    HAPPENED[day] = [one | {"occurred_at": f"{day} {one['occurred_at']}"} for one in events]
    return pytest.mark.parametrize("found", [pytest.param(day, id=str(len(HAPPENED)))], indirect=True)


def event(capability: str, kind: str, outcome: str = "", **columns: object) -> Event:
    own = {"occurred_at": "10:59:00", "capability": capability, "source": "xpublic"}
    return own | {"message_id": "m", "kind": kind, "outcome": outcome} | columns


@pytest.fixture(scope="module")
def counted(history, at) -> list[Row]:
    events = [one | {"occurred_at": at(one["occurred_at"])} for day in HAPPENED.values() for one in day]
    found = history(*events).transform(cost_counts, DAY, last=max(HAPPENED)).transform(cost_daily)
    assert tuple(found.columns) == COLUMNS
    rows = found.collect()
    assert {row.day for row in rows} <= set(HAPPENED)
    return rows


@pytest.fixture
def found(counted, request) -> Found:
    return {(row.capability, row.what, row["item"]): row for row in counted if row.day == request.param}


def units(row: Row) -> tuple[int, int, int]:
    return (row.number, row.units_least, row.units_most)


@happened(*(event("exchange", "routed", "delivered", destination=f"q{number}", size_bytes=10) for number in range(20)))
def test_a_publication_is_billed_once_and_each_copy_separately(found):
    # The upper bound has one message in each call, the lower bound ten.
    assert units(found["exchange", "publication", "SQS standard request"]) == (1, 1, 3)
    assert units(found["exchange", "copy", "SQS standard request"]) == (20, 6, 60)
    assert found["exchange", "copy", "SQS standard request"].usd_most == pytest.approx(60 * 0.4 / 1_000_000)
    assert found["exchange", "copy", "SQS standard request"].bytes == 200
    assert units(found["exchange", "publication", "DynamoDB write unit"]) == (1, 1, 2)
    assert units(found["history", "event", "Firehose kilobyte"]) == (20, 10, 100)


LARGE = event("exchange", "routed", "delivered", destination="q", size_bytes=65_537)


@happened(LARGE, LARGE | {"message_id": "n"})
def test_a_message_is_billed_as_one_request_for_each_64_kib_even_in_a_full_call(found):
    # Three calls for 131,074 bytes are 6.0001 requests.
    assert units(found["exchange", "copy", "SQS standard request"]) == (2, 7, 12)


ORDERED = event("exchange", "routed", "delivered", source="x.fifo", destination="q.fifo")


@happened(ORDERED, ORDERED | {"destination": "q"})
def test_fifo_queues_have_their_own_price(found):
    assert units(found["exchange", "ordered publication", "SQS FIFO request"]) == (1, 1, 3)
    assert units(found["exchange", "copy", "SQS FIFO request"]) == (1, 1, 3)
    assert units(found["exchange", "copy", "SQS standard request"]) == (1, 1, 3)


@happened(
    event("exchange", "routed", "retried", destination="q"),
    event("exchange", "dead_letter", "dead"),
    event("exchange", "unrouted", "dropped", message_id="o"),
    event("splitting", "routed", "session"),
    event("splitting", "routed", "copied"),
    event("splitting", "returned", "deployed"),
    event("splitting", "dead_letter", "dead"),
    event("rendezvous", "answer", "delivered", source="sqs"),
    event("rendezvous", "offer", "denied", source="http"),
    event("rendezvous", "offer", "parked", source="sqs"),
    event("rendezvous", "timeout", "expired", source=None),
    event("rendezvous", "proxy_poll", "idle"),
    event("rendezvous", "proxy_poll", "matched"),
    event("rendezvous", "proxy_poll", "relay_rejected"),
    event("exchange", "declared", "queue"),
)
def test_each_event_of_each_capability_has_its_billed_actions(found):
    assert {(capability, what): row.number for (capability, what, _), row in found.items()} == {
        ("exchange", "publication"): 2,
        ("exchange", "retry"): 1,
        ("exchange", "dead letter"): 1,
        ("splitting", "message"): 2,
        ("splitting", "copy"): 1,
        ("splitting", "dead letter"): 1,
        ("rendezvous", "answer"): 1,
        ("rendezvous", "refusal"): 2,
        ("rendezvous", "client by SQS"): 1,
        ("rendezvous", "client by HTTP"): 2,
        ("rendezvous", "poll"): 2,
        ("history", "event"): 15,
    }


@happened(ORDERED)
def test_an_ordered_publication_is_billed_for_the_number_of_its_key(found):
    assert ("exchange", "publication", "SQS FIFO request") not in found
    assert units(found["exchange", "ordered publication", "DynamoDB read unit"]) == (1, 1, 2)
    assert units(found["exchange", "ordered publication", "DynamoDB write unit"]) == (1, 1, 3)


@happened(event("exchange", "logged", "live", source="x.fifo"))
def test_a_live_publication_is_billed_for_its_log_and_the_search_for_subscribers(found):
    assert units(found["exchange", "ordered publication", "SQS FIFO request"]) == (1, 1, 3)
    assert units(found["exchange", "logged event", "DynamoDB write unit"]) == (1, 3, 4)
    assert units(found["exchange", "logged event", "DynamoDB read unit"]) == (1, 1, 2)


CONNECTIONS = [
    ({"started": "10:00:00", "ended": "10:00:00"}, 1),
    ({"started": "10:00:00", "ended": "10:01:00"}, 1),
    ({"started": "10:00:00", "ended": "10:01:01"}, 2),
    ({"started": "10:00:00"}, 120),
    ({"started": "23:30:00"}, 30),
    ({"ended": "10:00:00"}, 120),
    ({"ended": "00:30:00"}, 30),
]


@pytest.fixture(scope="module")
def connection_rows(history, at) -> dict[date, Row]:
    """The row of connection minutes of each day; each element of CONNECTIONS is of another day, in one run."""
    events = [
        {"occurred_at": at(f"{DAY + timedelta(number)} {time}"), "event_id": f"session:{outcome}:{session}:f"}
        | {"capability": "live", "kind": "session", "outcome": outcome}
        for number, (times, _) in enumerate(CONNECTIONS)
        for outcome, time in times.items()
        for session in (7, 8)
    ]
    last = DAY + timedelta(len(CONNECTIONS))
    rows = history(*events).transform(cost_counts, DAY, last=last).transform(cost_daily).collect()
    return {row.day: row for row in rows if row["item"] == "WebSocket connection minute"}


@pytest.mark.parametrize("number", range(len(CONNECTIONS)))
def test_a_connection_is_billed_for_each_begun_minute_within_its_longest_duration(connection_rows, number):
    _, minutes = CONNECTIONS[number]

    row = connection_rows[DAY + timedelta(number)]

    assert (row.capability, row.what) == ("live", "connection minute")
    assert units(row) == (2 * minutes,) * 3
    assert row.usd_most == pytest.approx(2 * minutes * 0.25 / 1_000_000)


@happened(
    event("live", "session", "started"),
    event("live", "session", "ended"),
    event("live", "session", "refused"),
    event("live", "subscription", "subscribed"),
    event("live", "publication", "dropped"),
    event("live", "delivered", "posted", labels={"events": "3", "past": "2", "skipped": "1"}, size_bytes=900),
    event("live", "delivered", "posted", labels={"events": "1"}),
    event("live", "delivered", "failed"),
)
def test_each_event_of_live_has_its_billed_actions(found):
    numbers = {what: row.number for (capability, what, _), row in found.items() if capability == "live"}
    assert numbers == {
        **dict.fromkeys(("session start", "session end", "refused login", "subscription", "dropped publication"), 1),
        "connection minute": 1,
        "delivery": 2,
        "posted event": 6,
        NOT_PRICED: 1,
    }
    assert units(found["live", "posted event", "WebSocket message"]) == (6, 6, 6)
    assert units(found["live", "delivery", "SQS FIFO request"]) == (2, 1, 6)
    assert units(found["live", "session start", "SQS standard request"]) == (1, 2, 3)
    assert units(found["live", "session start", "WebSocket message"]) == (1, 4, 4)


@happened(event("live", "granted", "read"))
def test_an_action_without_a_price_is_listed_at_no_cost(found):
    row = found["live", NOT_PRICED, NOT_PRICED]
    assert (row.number, row.usd_least, row.usd_most) == (1, 0.0, 0.0)


def test_events_of_other_days_are_not_counted(history, at):
    later, undated = (event("exchange", "routed") | {"occurred_at": time} for time in (at("2026-11-22 00:00:00"), None))

    assert history(later, undated).transform(cost_counts, DAY, last=DAY).transform(cost_daily).collect() == []


def test_no_sum_of_prices_has_digits_of_its_addition(counted):
    sums = [usd for row in counted for usd in (row.usd_least, row.usd_most)]

    assert [usd for usd in sums if usd != round(usd, 12)] == []


def test_each_used_item_has_a_price():
    assert {use.item for use in USAGES} - {SQS} <= set(PRICES)
    assert all(0 <= use.least <= use.most for use in USAGES)
