"""The broker's pages for operators, browsers and Prometheus."""

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.rendezvous.wire.nat import Nat
from tests.integration.rendezvous.peers import Parties, wait_for

pytestmark = pytest.mark.emulator

TEXT = "text/plain; charset=utf-8"
CROSS_ORIGIN = {"access-control-allow-origin": "*", "access-control-allow-headers": "Origin, X-Session-ID"}
NOBODY = """\
current snowflakes available: 0
\tunknown proxies: 0
NAT Types available:
\trestricted: 0
\tunrestricted: 0
\tunknown: 0"""
THREE = """\
current snowflakes available: 3
\tstandalone proxies: 1
\twebext proxies: 1
\tunknown proxies: 1
NAT Types available:
\trestricted: 1
\tunrestricted: 1
\tunknown: 1"""


def test_the_page_debug_counts_the_proxies_that_wait(parties: Parties):
    before = parties.http("GET", "debug")
    kinds = ((Nat.RESTRICTED, "standalone"), (Nat.UNRESTRICTED, "webext"), (Nat.UNKNOWN, "unheard-of"))
    held = [parties.hold(parties.proxy(nat, proxy_type=proxy_type)) for nat, proxy_type in kinds]

    during = parties.http("GET", "debug")
    metrics = parties.http("GET", "prometheus")
    asked = [parties.ask(Nat.UNRESTRICTED) for _ in held]

    assert (before.status, before.body) == (200, NOBODY)
    assert {"content-type": TEXT, **CROSS_ORIGIN}.items() <= before.headers.items()
    assert during.body == THREE
    assert 'snowflake_available_proxies{nat="restricted",type="standalone"} 1\n' in metrics.body
    assert {proxy.offer() for proxy in held} == {client.offer for client in asked}
    wait_for(lambda: parties.http("GET", "debug").body == NOBODY, "no proxy waiting")


def test_prometheus_gets_counters_in_steps_of_eight(parties: Parties):
    proxy = parties.hold(parties.proxy(Nat.RESTRICTED, comes_from="8.8.4.7"))
    asked = parties.ask(Nat.UNRESTRICTED)
    assert parties.reply(asked.client_id) == asked.answer
    assert proxy.served.result().accepted
    parties.http("POST", "proxy", "not json")

    response = parties.http("GET", "prometheus")

    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    assert not CROSS_ORIGIN.keys() & response.headers.keys()
    counters = dict(line.rsplit(" ", 1) for line in response.body.splitlines() if not line.startswith("#"))
    rounded = {name: int(value) for name, value in counters.items() if "_rounded_" in name}
    assert {value % 8 for value in rounded.values()} == {0}
    matched = 'snowflake_rounded_client_poll_total{cc="??",nat="unrestricted",rendezvous_method="sqs",status="matched"}'
    polled = 'snowflake_rounded_proxy_poll_total{nat="restricted",status="matched",type="standalone"}'
    for name in (matched, polled, 'signalbox_rounded_bad_input_total{source="proxy"}'):
        assert rounded[name] >= 8
    assert int(counters['snowflake_proxy_total{cc="??",nat="restricted",type="standalone"}']) >= 1


def test_the_metrics_log_has_a_block_for_each_past_day(parties: Parties):
    end = datetime.now(UTC).date() - timedelta(days=2)  # the stage, which other tests use, is younger
    DynamoStatistics(parties.table).add(end - timedelta(days=1), {"proxy_poll|restricted|idle|webext": 9})

    response = parties.http("GET", "metrics")

    lines = response.body.splitlines()
    assert {"content-type": TEXT, **CROSS_ORIGIN}.items() <= response.headers.items()
    assert f"snowflake-stats-end {end} 00:00:00 (86400 s)" in lines
    assert "snowflake-idle-count 16" in lines


def test_robots_txt_disallows_everything(parties: Parties):
    response = parties.http("GET", "robots.txt")

    assert (response.status, response.body) == (200, "User-agent: *\nDisallow: /\n")
    assert response.headers["content-type"] == TEXT
    assert not CROSS_ORIGIN.keys() & response.headers.keys()


@pytest.mark.parametrize("path", ["", "favicon.ico", "proxy/x", "amp/x"])
def test_another_path_is_not_found(parties: Parties, path: str):
    response = parties.http("GET", path)

    assert (response.status, response.body) == (404, "404 page not found\n")
    assert {"content-type": TEXT, "x-content-type-options": "nosniff"}.items() <= response.headers.items()


@pytest.mark.parametrize("path", ["proxy", "answer", "client", "amp/client/0/x", "debug", "metrics"])
def test_a_preflight_request_of_a_browser_is_allowed(parties: Parties, path: str):
    response = parties.http("OPTIONS", path, headers={"Origin": "https://proxy.example"})

    assert (response.status, response.body) == (200, "")
    assert CROSS_ORIGIN.items() <= response.headers.items()
