"""The function `page`: every path without a function of its own."""

from datetime import UTC, datetime, timedelta

import pytest

from lambdas.rendezvous import page as page_part
from lambdas.rendezvous import proxies, wiring
from lambdas.rendezvous.clients import handler
from signalbox.aws.rendezvous.statistics import SHARDS
from signalbox.rendezvous.model.pace import ProxyGroup, ProxyKind
from signalbox.rendezvous.reporting.pages import CROSS_ORIGIN, NOT_FOUND_HEADERS, PROMETHEUS_TEXT, TEXT
from signalbox.rendezvous.wire.nat import Nat
from tests.handlers.billed_calls import recorded_calls
from tests.handlers.recorded_events import event, request

NOBODY = """\
current snowflakes available: 0
\tunknown proxies: 0
NAT Types available:
\trestricted: 0
\tunrestricted: 0
\tunknown: 0"""
ONE = NOBODY.replace("available: 0\n", "available: 1\n\twebext proxies: 1\n").replace(
    "\trestricted: 0", "\trestricted: 1"
)


def page(path: str, **changes: object) -> dict:
    return handler(request("page", path=path, **changes), None)


def expect_a_proxy() -> None:
    wiring.paces().add(
        ProxyGroup.RESTRICTED, {ProxyKind(Nat.RESTRICTED, "webext"): 1}, networks={}, now=datetime.now(UTC)
    )


def test_the_page_debug_counts_the_known_proxies(stage):
    before = handler(event("page"), None)
    expect_a_proxy()
    after = handler(event("page"), None)

    assert before == {"statusCode": 200, "headers": {"Content-Type": TEXT, **CROSS_ORIGIN}, "body": NOBODY}
    assert after["body"] == ONE


def test_the_metrics_log_is_empty_on_the_first_day(stage):
    proxies.handler(event("poll"), None)

    assert page("/metrics") == {"statusCode": 200, "headers": {"Content-Type": TEXT, **CROSS_ORIGIN}, "body": ""}


def test_the_metrics_log_has_a_block_for_each_past_day_oldest_first(stage):
    today = datetime.now(UTC).date()
    for ago, count in ((1, 9), (3, 1), (8, 1)):
        wiring.statistics().add(today - timedelta(days=ago), {"proxy_poll|restricted|idle|webext": count})

    lines = page("/metrics")["body"].splitlines()

    assert [line for line in lines if line.startswith(("snowflake-stats-end", "snowflake-idle-count"))] == [
        f"snowflake-stats-end {today - timedelta(days=2)} 00:00:00 (86400 s)",
        "snowflake-idle-count 8",
        f"snowflake-stats-end {today} 00:00:00 (86400 s)",
        "snowflake-idle-count 16",
    ]


def test_complete_days_are_read_once(stage):
    page("/metrics")

    with recorded_calls() as calls:
        page("/metrics")

    assert len(calls) in (0, SHARDS)  # yesterday is complete when it is over for an hour


def test_prometheus_reads_the_counters_of_today(stage):
    proxies.handler(event("poll"), None)
    expect_a_proxy()

    response = page("/prometheus")

    assert response["headers"] == {"Content-Type": PROMETHEUS_TEXT}
    assert 'snowflake_available_proxies{nat="restricted",type="webext"} 1\n' in response["body"]
    assert (
        'snowflake_rounded_proxy_poll_total{nat="unrestricted",status="idle",type="standalone"} 8\n' in response["body"]
    )


def test_an_instance_reads_the_counters_of_a_page_once_in_ten_seconds(stage, monkeypatch):
    """With the counters of many countries, 22 pages a second took all functions of the door."""
    monkeypatch.setattr(page_part, "KEPT_SECONDS", 10**10)
    proxies.handler(event("poll"), None)

    with recorded_calls() as calls:
        first, second = page("/prometheus"), page("/prometheus")

    assert first == second
    assert len(calls) == SHARDS + 1  # and the paces


@pytest.mark.parametrize("path", ["/metrics", "/prometheus"])
def test_a_network_gets_three_pages_of_counters_in_ten_seconds(stage, monkeypatch, path):
    monkeypatch.setattr("signalbox.networks.COUNTED_FOR", timedelta(hours=1))

    statuses = [page(path, source_ip="8.8.4.7")["statusCode"] for _ in range(4)]

    assert statuses == [200, 200, 200, 429]
    assert page(path, source_ip="8.8.4.8")["statusCode"] == 200


def test_robots_txt_disallows_everything(stage):
    assert page("/robots.txt") == {
        "statusCode": 200,
        "headers": {"Content-Type": TEXT},
        "body": "User-agent: *\nDisallow: /\n",
    }


@pytest.mark.parametrize("path", ["/", "/favicon.ico", "/debug/", "/proxy/x"])
def test_other_paths_are_not_found(stage, path):
    assert page(path) == {"statusCode": 404, "headers": NOT_FOUND_HEADERS, "body": "404 page not found\n"}
