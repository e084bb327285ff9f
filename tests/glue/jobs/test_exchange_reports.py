"""The report jobs of the exchange, from the command line to tables, texts, pictures and JSON."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from glue_jobs import cost_report, delivery_report, order_audit, topic_report
from glue_jobs.shared.lake import Lake
from glue_jobs.texts.order_text import NOT_AUDITED

pytestmark = [pytest.mark.spark, pytest.mark.release]

DAY = "2026-11-21"
TOPICS = """\
topic-report-end 2026-11-22 00:00:00 (86400 s)
publications=4 copies=4 retried=1 dead=1 dropped=1 alternate=0 logged=0 bytes_in=400 bytes_out=400
fan-out 1.00 copies of a publication
rate 0.000 publications a second; 0.001 in the busiest hour, 10:00

exchanges (1)
  x.fifo publications=4 copies=4 retried=1 dead=1 dropped=1 alternate=0 logged=0 bytes_in=400 bytes_out=400

topics by publications (2)
  x.fifo wx publications=3 copies=4 bytes_in=300 bytes_out=400
  x.fifo "" publications=1 copies=0 bytes_in=100 bytes_out=0

publishers by publications (1)
  alice publications=3 bytes_in=300

unrouted topics (1)
  x.fifo "" dropped=1 alternate=0
"""
DELIVERIES = """\
delivery-report-end 2026-11-22 00:00:00 (86400 s)
exchange delivered=4 again=0 retried=1 dead=1 bytes=400
exchange p50_ms=25 p95_ms=39 p99_ms=40 max_ms=40

busiest paths (2)
  exchange x.fifo → q_a delivered=3 retried=0 dead=0 p50_ms=20 p95_ms=29 p99_ms=30 max_ms=30
  exchange x.fifo → q_b delivered=1 retried=1 dead=1 p50_ms=40 p95_ms=40 p99_ms=40 max_ms=40

dead letters by reason (1)
  1 exchange: too large
"""
ORDER = """\
order-audit-end 2026-11-22 00:00:00 (86400 s)
looked at 4 copies of numbered messages, in 2 pairs of queue and topic
gap=0 duplicate=0 reordered=1

reordered (1)
  x.fifo wx → q_a: 2; a3 at 2026-11-21 10:00:03.000, a2 at 2026-11-21 10:00:30.000
"""
REPORTS = {
    "topic_report": (topic_report, "topic_hourly", TOPICS),
    "delivery_report": (delivery_report, "delivery_hourly", DELIVERIES),
    "order_audit": (order_audit, "order_audit", ORDER),
    "cost_report": (cost_report, "cost_daily", None),
}


@pytest.fixture
def run(lake: Lake, tmp_path: Path) -> Callable[..., Path]:
    def made(job: ModuleType, *words: str) -> Path:
        name = job.__name__.rpartition(".")[2]
        job.main([name, "--database", lake.database, "--report_path", f"{tmp_path / name}", *words])
        return tmp_path / name

    return made


@pytest.fixture
def day(remembered: Callable[..., None], at) -> None:
    """Three messages of one topic (one is late; in another queue one waits and one is a dead letter), one dropped."""

    def event(event_id: str, sequence: int, second: int, **columns: object) -> dict[str, object]:
        own = {"event_id": event_id, "occurred_at": at(f"{DAY} 10:00:{second:02}"), "capability": "exchange"}
        of_copy = {"kind": "routed", "outcome": "delivered", "source": "x.fifo", "topic": "wx", "destination": "q_a"}
        of_message = {
            "sequence": sequence,
            "message_id": f"m{sequence}",
            "size_bytes": 100,
            "latency_ms": 10 * sequence,
        }
        return own | of_copy | of_message | {"labels": {"publisher": "alice"}} | columns

    to_b = {"destination": "q_b"}
    remembered(
        event("a1", 1, 1),
        event("a2", 2, 30),
        event("a3", 3, 3),
        event("b1", 1, 1, **to_b, latency_ms=40),
        event("b2", 2, 2, **to_b, outcome="retried"),
        event("b3", 3, 3, **to_b, kind="dead_letter", outcome="dead", reason="too large"),
        event("n", 1, 4, kind="unrouted", outcome="dropped", topic="", destination=None, message_id="n", labels={}),
    )


@pytest.mark.usefixtures("day")
@pytest.mark.parametrize("name", REPORTS)
def test_a_second_run_writes_the_same_table_text_picture_and_json(lake, run, name):
    job, table, text = REPORTS[name]
    both = [_seen(lake, table, run(job, "--day", "2026-11-22", "--days", "2")) for _ in range(2)]

    assert both[0] == both[1]
    _, files = both[0]
    assert len(files) == 6
    if text is not None:
        assert files[f"text/day={DAY}.txt"] == text
    assert files[f"picture/day={DAY}.svg"].startswith("<svg ")
    assert json.loads(files[f"json/day={DAY}.json"])["rows"]


def _seen(lake: Lake, table: str, report: Path) -> tuple[Sequence[object], dict[str, str]]:
    rows = lake.spark.table(lake.name(table)).collect()
    return sorted(map(str, rows)), {f"{path.relative_to(report)}": path.read_text() for path in report.glob("*/day=*")}


@pytest.mark.usefixtures("day")
def test_the_cost_report_contains_the_date_of_its_prices(run):
    text = (run(cost_report, "--day", DAY) / "text" / f"day={DAY}.txt").read_text()

    assert "list prices of us-east-1, as of 20" in text
    assert "\n  copy, 4 times with 400 bytes: 2 to 12 SQS standard request, 0.000001 to 0.000005 USD\n" in text


@pytest.mark.parametrize("name", REPORTS)
def test_a_day_without_events_has_a_report(lake, run, name):
    job, _, _ = REPORTS[name]

    report = run(job, "--day", DAY)

    assert (report / "picture" / f"day={DAY}.svg").exists()
    text = (report / "text" / f"day={DAY}.txt").read_text()
    nothing = {"topic_report": "no publications", "delivery_report": "no deliveries and no dead letters"}
    nothing |= {"order_audit": "nothing is missing, duplicated or out of order"}
    assert nothing.get(name, "total 0.000000 to 0.000000 USD") in text


def test_days_without_an_audit_are_audited_with_the_next_ones(lake, run, remembered, at):
    """Their messages do not count as missing."""

    def event(sequence: int, moment: str) -> dict[str, object]:
        of_copy = {"kind": "routed", "outcome": "delivered", "source": "x.fifo", "topic": "wx", "destination": "q_a"}
        own = {"event_id": f"a{sequence}", "occurred_at": at(moment), "capability": "exchange", "sequence": sequence}
        return own | of_copy

    remembered(event(1, "2026-11-18 10:00:00"), event(2, "2026-11-20 10:00:00"), event(4, "2026-11-21 10:00:00"))
    run(order_audit, "--day", "2026-11-18")

    run(order_audit, "--day", "2026-11-21")

    audit = lake.spark.table(lake.name("order_audit"))
    days = [f"{row.day:%d}" for row in audit.where("finding = 'audited'").orderBy("day").collect()]
    gaps = [(f"{row.day:%d}", row.first_sequence, row.number) for row in audit.where("finding = 'gap'").collect()]
    assert days == ["18", "19", "20", "21"]
    assert gaps == [("21", 3, 1)]


def test_a_day_whose_audit_failed_twice_is_left_out_until_its_own_audit(lake, run, remembered, at, monkeypatch):
    """Its messages do not count as missing, and those before it have no gap."""

    def event(sequence: int, moment: str) -> dict[str, object]:
        of_copy = {"kind": "routed", "outcome": "delivered", "source": "x.fifo", "topic": "wx", "destination": "q_a"}
        own = {"event_id": f"a{sequence}", "occurred_at": at(moment), "capability": "exchange", "sequence": sequence}
        return own | of_copy

    def findings() -> list[tuple[str, str, int | None]]:
        found = lake.spark.table(lake.name("order_audit")).where("finding <> 'seen'").collect()
        return sorted((f"{row.day:%d}", row.finding, row.first_sequence) for row in found)

    remembered(event(1, "2026-11-18 10:00:00"), event(3, "2026-11-19 10:00:00"))
    remembered(event(5, "2026-11-20 10:00:00"), event(7, "2026-11-20 11:00:00"))
    run(order_audit, "--day", "2026-11-18")
    with monkeypatch.context() as killed:
        killed.setattr(order_audit, "order_facts", lambda *_, **__: 1 / 0)
        for _ in range(order_audit.ATTEMPTS):
            with pytest.raises(ZeroDivisionError):
                run(order_audit, "--day", "2026-11-19")

    report = run(order_audit, "--day", "2026-11-20")

    assert findings() == [("18", "audited", None), ("19", "left_out", None), ("20", "audited", None), ("20", "gap", 6)]
    assert NOT_AUDITED in (report / "text" / "day=2026-11-19.txt").read_text()
    assert NOT_AUDITED in (report / "picture" / "day=2026-11-19.svg").read_text()
    run(order_audit, "--day", "2026-11-20", "--days", "2")
    own = [("19", "audited", None), ("19", "gap", 2), ("20", "audited", None), ("20", "gap", 4), ("20", "gap", 6)]
    assert findings() == [("18", "audited", None), *own]
