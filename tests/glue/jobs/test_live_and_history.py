"""The live counters and the Glue job produce the same statistics from the same events."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import product

import pytest

from glue_jobs.texts import log_block as from_history
from glue_jobs.transforms.events import SCHEMA
from glue_jobs.transforms.rendezvous import rendezvous_facts, rendezvous_report
from signalbox.history.event import HistoryEvent
from signalbox.rendezvous.reporting.counters import distinct_keys, event_counters
from signalbox.rendezvous.reporting.statistics import DayStatistics
from tests.glue.frames import frame

pytestmark = [pytest.mark.spark, pytest.mark.release]

DAY = date(2026, 11, 21)
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
ENDS = [
    ("offer", "parked", None),
    ("offer", "denied", "no proxy"),
    ("offer", "stale", None),
    ("offer", "duplicate", None),
    ("offer", "rejected", "invalid NAT type"),
    ("answer", "delivered", None),
    ("timeout", "expired", "no proxy"),
    ("timeout", "expired", "silent proxy"),
    ("dead_letter", "dead", "no client id"),
    ("queue", "created", None),
]
NATS = ("restricted", "unrestricted", "unknown", None)


def client_events() -> list[tuple[dict[str, object], dict[str, str | None]]]:
    cases = product(ENDS, ("http", "ampcache", "sqs"), NATS, ("IR", "RU", None))
    return [
        ({"kind": kind, "outcome": outcome, "reason": reason, "source": source}, {"nat": nat, "country": country})
        for (kind, outcome, reason), source, nat, country in cases
    ]


def proxy_events() -> list[tuple[dict[str, object], dict[str, str | None]]]:
    cases = product(("matched", "idle", "relay_rejected"), NATS, ("standalone", "bloco", "unknown", None), (0, 1, 2, 3))
    return [
        (
            {"kind": "proxy_poll", "outcome": outcome, "source": "proxy"},
            {"nat": nat, "proxy_type": kind, "relay_pattern": "without" if number == 3 else "with"}
            # 0 has no address, 1 changes its country, the others do not.
            | {"party": f"{number}" if number else None, "country": "DE" if number < 2 and outcome == "idle" else "FR"},
        )
        for outcome, nat, kind, number in cases
    ]


def events() -> list[HistoryEvent]:
    made = [*client_events(), *proxy_events()]
    return [
        HistoryEvent(
            event_id=f"event {number}",
            occurred_at=MIDNIGHT + timedelta(seconds=number),
            capability="rendezvous",
            labels={name: value for name, value in labels.items() if value is not None},
            **columns,
        )
        for number, (columns, labels) in enumerate(made)
    ]


def live_block(events: list[HistoryEvent]) -> str:
    """Count one event after the other, as the functions do."""
    counters: Counter[str] = Counter()
    known: set[str] = set()
    for event in events:
        counters.update(event_counters(event))
        counters.update(counter for key, counter in distinct_keys(event) if key not in known)
        known.update(key for key, _ in distinct_keys(event))
    return DayStatistics.from_counters(counters, DAY).log_block()


def test_live_counters_and_glue_job_produce_the_same_block(spark, history):
    happened = events()
    rows = [{name: getattr(event, name) for name in SCHEMA.names[1:]} for event in happened]

    facts = history(*rows).transform(rendezvous_facts, DAY, last=DAY)
    report = rendezvous_report(facts, frame(spark, [(DAY,)], "day date")).collect()

    shown = {(row.metric, row.label): row.shown for row in report}
    assert from_history.log_block(DAY, shown) == live_block(happened)
