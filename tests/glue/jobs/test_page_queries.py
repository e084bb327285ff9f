"""The queries of docs/history.md answer their questions from tables of known content.

They run as `signalbox history query` runs them on the local stage.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from glue_jobs import query
from glue_jobs.shared.lake import Lake
from glue_jobs.transforms.tables import TABLES
from tests.docs.markdown import ROOT
from tests.glue.frames import frame, new_lake

pytestmark = [pytest.mark.spark, pytest.mark.release]

PAGE = ROOT / "docs" / "history.md"
DATABASE = "signalbox_lake"
QUERIES = dict(re.findall(r"([^\n]+)\n\n```sql\n(.*?)```", PAGE.read_text(), re.DOTALL))
DAY, NEXT, LONG_AGO = "2026-11-20", "2026-11-21", "2026-09-01"
MESSAGE = "0b5f2f34-8a5e-4f0e-9d6c-3a6f0a1f2c11"


def at(hour: int, *, day: str = DAY, minute: int = 0) -> datetime:
    return datetime.fromisoformat(f"{day}T{hour:02}:{minute:02}").replace(tzinfo=UTC)


def event(identity: str, moment: datetime, capability: str, kind: str, outcome: str, **fields: object):
    named = {"event_id": identity, "occurred_at": moment, "capability": capability, "kind": kind, "outcome": outcome}
    return {"version": 1, "labels": {}, **named, **fields}


def bound(identity: str, moment: datetime, queue: str, **fields: object):
    named = {"source": "bulletins.fifo", "destination": queue, "topic": "data.#"}
    return event(identity, moment, "exchange", "declared", "ok") | named | fields


def routed(identity: str, message: str, topic: str, **fields: object):
    named = {"message_id": message, "source": "xpublic", "topic": topic}
    return event(identity, at(15), "exchange", "routed", "delivered") | named | fields


EVENTS = [
    event("routed", at(9), "exchange", "routed", "ok", message_id=MESSAGE, source="trial", destination="q", attempt=1),
    event("dead", at(10), "exchange", "dead", "failed", message_id=MESSAGE, source="trial", reason="NoQueue"),
    event("too-early", at(9, day="2026-11-19"), "exchange", "routed", "ok", message_id=MESSAGE),
    event("another", at(9), "exchange", "routed", "ok", message_id="another"),
    event("split", at(11), "splitting", "routed", "ok", message_id=MESSAGE, labels={"session": "ann", "verdict": "it"}),
    event("split-of-another", at(11), "splitting", "routed", "ok", message_id="another", labels={"session": "bob"}),
    bound("by-bob", at(8), "q_bob_bulletins.fifo", labels={"user": "bob"}),
    bound("by-alice", at(7), "q_bob_bulletins.fifo", labels={"user": "alice"}, kind="deleted", reason="by name"),
    bound("of-alice", at(6), "q_alice", labels={"user": "alice"}),
    bound("no-name", at(5), None, labels={"user": "alice"}, topic=None),
    routed("copy", "w1", "v03.a.weather", size_bytes=20),
    routed("other-copy", "w1", "v03.a.weather", size_bytes=20),
    routed("larger", "w2", "v03.a.weather", size_bytes=30),
    routed("below", "w3", "v03.b.weather.storm", size_bytes=10),
    routed("no-word", "w4", "v03.weather", size_bytes=10),
    routed("other-word", "w5", "v03.b.weathers", size_bytes=10),
    event("came", at(12), "live", "joined", "ok", source="trial.fifo", labels={"user": "crunch"}),
    event("went", at(13), "live", "revoked", "ok", source="trial.fifo", topic="trial.", reason="ungrant"),
    event("before", at(13, day="2026-11-19"), "live", "joined", "ok", source="trial.fifo"),
    event("first", at(14, minute=1), "exchange", "delivered", "ok", topic="t", sequence=8),
    event("second", at(14, minute=2), "exchange", "delivered", "ok", topic="t", sequence=7),
]
RAW = {
    DAY: [
        event("one", at(1), "rendezvous", "offer", "matched"),
        event("one", at(1), "rendezvous", "offer", "matched"),
        event("two", at(2), "rendezvous", "offer", "denied"),
        event("three", at(2), "rendezvous", "poll", "idle"),
    ],
    NEXT: [event("four", at(1, day=NEXT), "rendezvous", "offer", "matched")],
    LONG_AGO: [event("five", at(1, day=LONG_AGO), "rendezvous", "offer", "matched")],
}


def published(hour: int, topic: str, publisher: str, publications: int, *, day: str = DAY, **fields: object):
    counted = {"publications": publications, "copies": 2 * publications, "bytes_in": 10 * publications}
    nothing = {"dropped": 0, "alternate": 0}
    named = {"day": day, "hour": at(hour, day=day), "exchange": "trial", "topic": topic, "publisher": publisher}
    return named | counted | nothing | fields


def delivered(hour: int, queue: str, *, day: str = DAY, **fields: object):
    named = {"day": day, "hour": at(hour, day=day), "capability": "exchange", "source": "trial", "destination": queue}
    return named | {"delivered": 5, "again": 1, "dead": 0, "p50_ms": 10, "p99_ms": 20} | fields


def finding(kind: str, *, day: str = DAY, queue: str = "q", **fields: object):
    return {"day": day, "exchange": "trial", "topic": "t", "queue": queue, "finding": kind, "number": 1} | fields


def metric(name: str, exact: int, *, day: str = DAY, label: str | None = None):
    return {"day": day, "metric": name, "label": label, "exact": exact}


def split(outcome: str, value: int, *, day: str = DAY, session: str | None = None, queue: str = "orders.fifo"):
    return {"day": day, "metric": "routed", "queue": queue, "session": session, "label": outcome, "value": value}


def cost(item: str, units: int, usd: float, *, day: str = DAY):
    priced = {"units_most": units, "usd_least": usd / 2, "usd_most": usd}
    return {"day": day, "capability": "exchange", "what": "published", "item": item} | priced


CONTENT = {
    "events": EVENTS,
    "topic_hourly": [
        published(9, "weather", "alice", 3600),
        published(9, "weather", "bob", 1800),
        published(10, "nowhere", "bob", 7200, dropped=7, alternate=1),
        published(10, "odd", "bob", 0, alternate=2),
        published(9, "weather", "alice", 9000, day=LONG_AGO, dropped=1),
    ],
    "delivery_hourly": [
        delivered(9, "slow", p99_ms=5001),
        delivered(10, "slower", p99_ms=9000, dead=2, reason="NoQueue"),
        delivered(11, "slower", dead=3, reason="NoQueue"),
        delivered(11, "fast", p99_ms=5000),
        delivered(11, "other", day=LONG_AGO, p99_ms=9000, dead=9, reason="NoQueue"),
    ],
    "order_audit": [
        finding("audited", number=40),
        finding("audited", number=50, day=LONG_AGO),
        finding("seen", number=40),
        finding("gap", first_sequence=3, last_sequence=4, number=2, dead=1, waiting=0, elsewhere=0, nowhere=1),
        finding("reordered", first_sequence=8, last_sequence=7, before_event_id="first", after_event_id="second"),
        finding("duplicate", first_sequence=1, last_sequence=1, day="2026-11-13"),
    ],
    "rendezvous_daily": [
        metric("time-to-answer-ms-by-country-p50", 900, label="CA"),
        metric("time-to-answer-ms-by-country-p99", 4000, label="CA"),
        metric("time-to-answer-ms-by-country-p99", 7000, label="DE"),
        metric("time-to-answer-ms-by-country-p99", 9000, label="FR", day=NEXT),
        metric("time-to-answer-ms-p99", 9999),
        metric("client-snowflake-match-count", 512),
        metric("client-denied-count", 40),
        metric("client-snowflake-timeout-count", 16),
        metric("snowflake-ips-total", 53),
        metric("client-snowflake-match-count", 9, day=LONG_AGO),
    ],
    "split_daily": [
        split("sent", 5, session="ann"),
        split("sent", 7),
        split("sent", 9, queue="others"),
        split("sent", 9, day=LONG_AGO),
    ],
    "cost_daily": [
        cost("SQS requests", 100, 0.5),
        cost("SQS requests", 20, 0.25, day="2026-11-01"),
        cost("Lambda GB-seconds", 7, 4.0, day="2026-11-30"),
        cost("Lambda GB-seconds", 7, 4.0, day="2026-12-01"),
    ],
}
# The rows of each question of the page.
ANSWERS: dict[str, list[list[str | None]]] = json.loads(
    Path(__file__).with_name("page_answers.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def raw(spark, history, tmp_path_factory) -> str:
    """The folder of the raw events, with the partitions of Firehose."""
    folder = tmp_path_factory.mktemp("raw")
    for day, rows in RAW.items():
        history(*rows).write.parquet(str(folder / f"dt={day}" / "hour=01"))
    return str(folder)


@pytest.fixture(scope="module")
def lake(spark) -> Iterator[Lake]:
    """The database of the page, with known rows in each table; the tables of logs are empty."""
    lake = new_lake(spark, DATABASE)
    for name in TABLES:
        schema = lake.ensure(name).schema
        rows = [[row.get(column) for column in schema.names] for row in CONTENT.get(name, ())]
        if rows:
            frame(spark, rows, schema).writeTo(lake.name(name)).append()
    yield lake
    for name in TABLES:
        spark.sql(f"DROP TABLE {lake.name(name)}")


def test_the_page_has_queries_of_each_report():
    asked = "".join(QUERIES.values())

    assert [table for table in TABLES if f"{DATABASE}.{table}" not in asked and not table.startswith("log")] == []


def test_each_query_of_the_page_has_its_answer_here():
    assert QUERIES.keys() == ANSWERS.keys()


@pytest.mark.parametrize("question", ANSWERS)
def test_a_query_of_the_page_answers_its_question(lake, raw, tmp_path, question):
    arguments = {
        "database": DATABASE,
        "history_path": raw,
        "query": QUERIES[question],
        "output": str(tmp_path / "answer"),
    }
    query.main(["query.py", *(word for name, text in arguments.items() for word in (f"--{name}", text))])
    answer = json.loads((tmp_path / "answer").read_text())
    rows = [row[: len(ANSWERS[question][0])] for row in answer["rows"]]

    assert in_order(question, rows) == in_order(question, ANSWERS[question])


def in_order(question: str, rows: list[list[str | None]]) -> list[list[str | None]]:
    """Return the rows in the query's order, or sorted if it has none."""
    return rows if "ORDER BY" in QUERIES[question] else sorted(rows, key=str)
