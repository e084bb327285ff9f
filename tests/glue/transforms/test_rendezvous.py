"""The rules of the rendezvous statistics; every expected number is counted by hand."""

from collections.abc import Callable
from datetime import date

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from glue_jobs.transforms.rendezvous import rendezvous_facts, rendezvous_report
from tests.glue.frames import frame

pytestmark = pytest.mark.spark

DAY = date(2026, 11, 21)
NEXT_DAY = date(2026, 11, 22)
REPORT = "day date, metric string, label string, exact bigint, shown bigint"


@pytest.fixture
def report(spark: SparkSession, history: Callable[..., DataFrame]) -> Callable[..., DataFrame]:
    def of(*rows: dict[str, object], days: tuple[date, ...] = (DAY,)) -> DataFrame:
        facts = history(*rows).transform(rendezvous_facts, days[0], last=days[-1])
        return rendezvous_report(facts, frame(spark, [(day,) for day in days], "day date"))

    return of


@pytest.fixture
def assert_lines(spark: SparkSession) -> Callable[..., None]:
    """Compare a report without its zeros."""

    def check(report: DataFrame, *lines: tuple[object, ...]) -> None:
        expected = frame(spark, [(DAY, *line) for line in lines], REPORT)
        actual = report.where(F.col("exact") != 0).orderBy("metric", "label")
        assert_df_equality(actual, expected, ignore_nullable=True)

    return check


@pytest.fixture
def poll(at):
    def event(number: int, outcome: str = "idle", **labels: str) -> dict[str, object]:
        return {
            "event_id": f"poll {number}",
            "occurred_at": at(f"2026-11-21 10:00:{number:02}"),
            "kind": "proxy_poll",
            "outcome": outcome,
            "labels": {"relay_pattern": "with"} | labels,
        }

    return event


@pytest.fixture
def client(at):
    def event(number: int, kind: str, outcome: str, **columns: object) -> dict[str, object]:
        own = {"event_id": f"{kind} {number}", "occurred_at": at("2026-11-21 11:00:00"), "source": "sqs"}
        return own | {"kind": kind, "outcome": outcome, "labels": {"nat": "restricted", "country": "IR"}} | columns

    return event


def test_a_day_without_events_has_only_zeros_of_the_metrics_without_labels(spark, report):
    metrics = [
        *("client-ampcache-count", "client-denied-count", "client-http-count", "client-restricted-denied-count"),
        *("client-snowflake-match-count", "client-snowflake-timeout-count", "client-sqs-count"),
        *("client-unrestricted-denied-count", "snowflake-idle-count", "snowflake-ips-badge", "snowflake-ips-bloco"),
        *("snowflake-ips-iptproxy", "snowflake-ips-nat-restricted", "snowflake-ips-nat-unknown"),
        *("snowflake-ips-nat-unrestricted", "snowflake-ips-standalone", "snowflake-ips-total", "snowflake-ips-webext"),
        *("snowflake-proxy-poll-with-relay-url-count", "snowflake-proxy-poll-without-relay-url-count"),
        "snowflake-proxy-rejected-for-relay-url-count",
    ]

    actual = report().orderBy("metric")

    expected = frame(spark, [(DAY, metric, None, 0, 0) for metric in metrics], REPORT)
    assert_df_equality(actual, expected, ignore_nullable=True)


def test_polls_count_by_outcome_and_pattern_and_are_shown_in_multiples_of_eight(report, assert_lines, poll):
    polls = [poll(1), poll(2, "matched"), poll(3, relay_pattern="without"), poll(4, "relay_rejected")]

    assert_lines(
        report(*polls),
        ("snowflake-idle-count", None, 2, 8),
        ("snowflake-proxy-poll-with-relay-url-count", None, 3, 8),
        ("snowflake-proxy-poll-without-relay-url-count", None, 1, 8),
        ("snowflake-proxy-rejected-for-relay-url-count", None, 1, 8),
    )


@pytest.mark.parametrize(("count", "shown"), [(7, 8), (8, 8), (9, 16)])
def test_a_count_is_shown_as_the_next_multiple_of_eight(report, assert_lines, poll, count, shown):
    polls = [poll(number, "matched") for number in range(count)]

    assert_lines(report(*polls), ("snowflake-proxy-poll-with-relay-url-count", None, count, shown))


def test_a_party_counts_once_in_its_first_country_and_once_for_each_nat_and_type(report, assert_lines, poll):
    polls = [
        poll(3, "matched", party="a", country="FR", nat="restricted", proxy_type="webext"),
        poll(2, "matched", party="a", country="DE", nat="unrestricted", proxy_type="webext"),
        poll(1, "matched", party="b", country="DE", nat="unrestricted", proxy_type="badge"),
    ]

    assert_lines(
        report(*polls),
        ("snowflake-ips", "DE", 2, 2),
        ("snowflake-ips-badge", None, 1, 1),
        ("snowflake-ips-nat-restricted", None, 1, 1),
        ("snowflake-ips-nat-unrestricted", None, 2, 2),
        ("snowflake-ips-total", None, 2, 2),
        ("snowflake-ips-webext", None, 1, 1),
        ("snowflake-proxy-poll-with-relay-url-count", None, 3, 8),
    )


def test_a_party_without_labels_is_unknown_and_has_no_line_for_its_type(report, assert_lines, poll):
    polls = [poll(1, "matched", party="a"), poll(2, "matched", party="b", proxy_type="unknown")]

    assert_lines(
        report(*polls),
        ("snowflake-ips", "??", 2, 2),
        ("snowflake-ips-nat-unknown", None, 2, 2),
        ("snowflake-ips-total", None, 2, 2),
        ("snowflake-proxy-poll-with-relay-url-count", None, 2, 8),
    )


def test_refused_proxies_and_proxies_without_an_address_are_no_parties(report, assert_lines, poll):
    polls = [poll(1, "relay_rejected", party="a", nat="restricted"), poll(2, "matched", nat="restricted")]

    assert_lines(
        report(*polls),
        ("snowflake-proxy-poll-with-relay-url-count", None, 2, 8),
        ("snowflake-proxy-rejected-for-relay-url-count", None, 1, 8),
    )


def test_denied_clients_count_by_nat_and_unknown_counts_as_restricted(report, assert_lines, client):
    offers = [
        client(1, "offer", "denied", labels={"nat": "restricted"}),
        client(2, "offer", "denied", labels={}),
        client(3, "offer", "stale", labels={"nat": "unrestricted"}),
        client(4, "timeout", "expired", reason="no proxy", labels={"nat": "unrestricted"}),
    ]

    assert_lines(
        report(*offers),
        ("client-denied-count", None, 4, 8),
        ("client-restricted-denied-count", None, 2, 8),
        ("client-sqs-count", None, 4, 8),
        ("client-sqs-ips", "??", 4, 8),
        ("client-unrestricted-denied-count", None, 2, 8),
    )


def test_clients_count_once_by_outcome_and_once_by_method(report, assert_lines, client):
    ends = [
        client(1, "answer", "delivered", source="http"),
        client(2, "timeout", "expired", reason="silent proxy", source="http", labels={"country": "RU"}),
        client(3, "timeout", "expired", reason=None, source="ampcache"),
        client(4, "offer", "denied", source=None),
    ]

    assert_lines(
        report(*ends),
        ("client-ampcache-count", None, 1, 8),
        ("client-ampcache-ips", "IR", 1, 8),
        ("client-denied-count", None, 1, 8),
        ("client-http-count", None, 2, 8),
        ("client-http-ips", "IR", 1, 8),
        ("client-http-ips", "RU", 1, 8),
        ("client-restricted-denied-count", None, 1, 8),
        ("client-snowflake-match-count", None, 1, 8),
        ("client-snowflake-timeout-count", None, 2, 8),
    )


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("offer", "parked"), ("offer", "duplicate"), ("offer", "rejected"), ("proxy_answer", "success"), (None, None)],
    ids=str,
)
def test_events_that_upstream_does_not_count_are_not_counted(report, assert_lines, client, kind, outcome):
    assert_lines(report(client(1, kind, outcome)))


def test_events_of_other_capabilities_are_not_counted(report, assert_lines, client):
    assert_lines(report(client(1, "answer", "delivered", capability="exchange")))


def test_each_day_counts_its_own_events_and_its_own_parties(spark, report, poll, at):
    polls = [
        poll(1, party="a"),
        poll(2, party="a") | {"occurred_at": at("2026-11-22 00:00:00")},
        poll(3, party="a") | {"occurred_at": at("2026-11-23 00:00:00")},
    ]

    actual = report(*polls, days=(DAY, NEXT_DAY)).where("metric in ('snowflake-ips', 'snowflake-idle-count')")

    lines = [(day, *line) for day in (DAY, NEXT_DAY) for line in [("snowflake-idle-count", None, 1, 8), IPS]]
    expected = frame(spark, lines, REPORT)
    assert_df_equality(actual.orderBy("day", "metric"), expected, ignore_nullable=True)


IPS = ("snowflake-ips", "??", 1, 1)


def test_times_to_answer_are_exact_percentiles_by_nat_country_and_proxy_type_without_missing_latencies(
    spark, report, client
):
    answers = [client(i, "answer", "delivered", latency_ms=latency) for i, latency in enumerate([100, 200, 300, None])]
    labels = {"country": "RU", "proxy_type": "webext"}
    answers += [client(9, "answer", "delivered", latency_ms=1500, labels=labels)]

    actual = report(*answers).where(F.col("metric").startswith("time-to-answer")).orderBy("metric", "label")

    # Linear interpolation: p95 of three is 0.95 * 2 = 1.9 steps from the first, 200 + 0.9 * 100;
    # of all four 0.95 * 3 = 2.85 steps, 300 + 0.85 * 1200.
    three, one, all_four = (200, 290, 298), (1500, 1500, 1500), (250, 1320, 1464)
    groups = {"by-country-": {"IR": three, "RU": one}, "by-nat-": {"restricted": three, "unknown": one}}
    groups |= {"by-proxy-type-": {"unknown": three, "webext": one}, "": {None: all_four}}
    lines = [
        (f"time-to-answer-ms-{group}{name}", label, times[place])
        for group, labels in groups.items()
        for place, name in enumerate(("p50", "p95", "p99"))
        for label, times in labels.items()
    ]
    rows = [(DAY, metric, label, ms, ms) for metric, label, ms in lines]
    assert_df_equality(actual, frame(spark, rows, REPORT), ignore_nullable=True)
