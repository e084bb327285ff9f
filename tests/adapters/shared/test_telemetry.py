"""Metrics in the log format that CloudWatch extracts (EMF)."""

import json
from datetime import timedelta

import pytest

from signalbox.aws.shared.telemetry import PowertoolsTelemetry, measure_oldest_message
from signalbox.history.event import HistoryEvent
from tests.fakes.rendezvous import START


def event(kind: str, outcome: str, *, latency_ms: int | None = None, capability: str = "rendezvous") -> HistoryEvent:
    return HistoryEvent(
        event_id=f"{kind}-{latency_ms}",
        occurred_at=START,
        capability=capability,
        kind=kind,
        outcome=outcome,
        latency_ms=latency_ms,
    )


def written(capsys: pytest.CaptureFixture[str]) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_events_become_counts_and_latencies_of_their_capability(capsys: pytest.CaptureFixture[str]) -> None:
    PowertoolsTelemetry().count(
        [event("answer", "delivered", latency_ms=120), event("answer", "delivered", latency_ms=80)]
    )

    (line,) = written(capsys)
    assert line["service"] == "rendezvous"
    assert sum(line["AnswerDelivered"]) == 2
    assert line["AnswerDeliveredLatency"] == [120, 80]
    directive = line["_aws"]["CloudWatchMetrics"][0]
    assert directive["Namespace"] == "Signalbox"
    assert {"Name": "AnswerDeliveredLatency", "Unit": "Milliseconds"} in directive["Metrics"]


def test_each_capability_has_metrics_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    PowertoolsTelemetry().count([event("dead_letter", "dead"), event("queue", "deleted", capability="exchange")])

    assert {line["service"] for line in written(capsys)} == {"rendezvous", "exchange"}


def test_the_age_of_the_oldest_message_is_a_metric_of_the_stage(capsys: pytest.CaptureFixture[str]) -> None:
    measure_oldest_message(timedelta(minutes=2), capability="exchange", stage="trial")

    (line,) = written(capsys)
    assert (line["service"], line["stage"], line["OldestMessageAge"]) == ("exchange", "trial", [120.0])
    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert [sorted(names) for names in directive["Dimensions"]] == [["service", "stage"]]
    assert directive["Metrics"] == [{"Name": "OldestMessageAge", "Unit": "Seconds"}]
