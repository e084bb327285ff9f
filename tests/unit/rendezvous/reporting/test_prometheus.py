"""The page /prometheus; the expected text was recorded from upstream v2.14.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.model.pace import ProxyKind
from signalbox.rendezvous.reporting.prometheus import exposition
from signalbox.rendezvous.wire.nat import Nat

COUNTERS = {
    "proxy|AU|unrestricted|standalone": 1,
    "proxy|??|restricted|webext": 1,
    "proxy|??|unknown|badge": 1,
    "proxy|??|unknown|unknown": 1,
    "proxy|??|unknown|iptproxy": 1,
    "proxy_nat|restricted": 2,
    "proxy_type|webext": 2,
    "proxy_poll|unrestricted|idle|standalone": 1,
    "proxy_poll|restricted|idle|standalone": 1,
    "proxy_poll|restricted|idle|webext": 2,
    "proxy_poll|unknown|idle|badge": 1,
    "proxy_poll|unknown|idle|unknown": 1,
    "proxy_poll|unknown|idle|iptproxy": 1,
    "proxy_poll_with_relay_url|unrestricted|standalone": 1,
    "proxy_poll_with_relay_url|restricted|standalone": 1,
    "proxy_poll_with_relay_url|restricted|webext": 2,
    "proxy_poll_with_relay_url|unknown|badge": 1,
    "proxy_poll_with_relay_url|unknown|unknown": 1,
    "proxy_poll_with_relay_url|unknown|iptproxy": 1,
    "proxy_poll_with_relay_url|unknown|bloco": 1,
    "proxy_poll_without_relay_url|unknown|bloco": 1,
    "proxy_poll_rejected_relay_url|unknown|bloco": 2,
    "proxy_answer|timeout|": 1,
    "proxy_answer|success|webext": 1,
    "client_poll|AU|unrestricted|http|denied": 9,
    "client_poll|??|restricted|http|denied": 1,
    "client_poll|??|unknown|ampcache|denied": 1,
    "client_poll|??|unknown|sqs|matched": 1,
    "client_poll|??|restricted|sqs|timeout": 1,
    "client_poll|AU|restricted|sqs|timeout": 1,
}

PAGE = """\
# HELP snowflake_available_proxies The number of currently available snowflake proxies
# TYPE snowflake_available_proxies gauge
snowflake_available_proxies{nat="restricted",type="standalone"} 0
snowflake_available_proxies{nat="restricted",type="webext"} 0
snowflake_available_proxies{nat="unknown",type="badge"} 0
snowflake_available_proxies{nat="unknown",type="iptproxy"} 0
snowflake_available_proxies{nat="unknown",type="unknown"} 0
snowflake_available_proxies{nat="unrestricted",type="standalone"} 0
# HELP snowflake_proxy_total The number of unique snowflake IPs
# TYPE snowflake_proxy_total counter
snowflake_proxy_total{cc="??",nat="restricted",type="webext"} 1
snowflake_proxy_total{cc="??",nat="unknown",type="badge"} 1
snowflake_proxy_total{cc="??",nat="unknown",type="iptproxy"} 1
snowflake_proxy_total{cc="??",nat="unknown",type="unknown"} 1
snowflake_proxy_total{cc="AU",nat="unrestricted",type="standalone"} 1
# HELP snowflake_rounded_client_poll_total The number of snowflake client polls, rounded up to a multiple of 8
# TYPE snowflake_rounded_client_poll_total counter
snowflake_rounded_client_poll_total{cc="??",nat="restricted",rendezvous_method="http",status="denied"} 8
snowflake_rounded_client_poll_total{cc="??",nat="restricted",rendezvous_method="sqs",status="timeout"} 8
snowflake_rounded_client_poll_total{cc="??",nat="unknown",rendezvous_method="ampcache",status="denied"} 8
snowflake_rounded_client_poll_total{cc="??",nat="unknown",rendezvous_method="sqs",status="matched"} 8
snowflake_rounded_client_poll_total{cc="AU",nat="restricted",rendezvous_method="sqs",status="timeout"} 8
snowflake_rounded_client_poll_total{cc="AU",nat="unrestricted",rendezvous_method="http",status="denied"} 16
# HELP snowflake_rounded_proxy_answer_total The number of snowflake proxy answers, rounded up to a multiple of 8
# TYPE snowflake_rounded_proxy_answer_total counter
snowflake_rounded_proxy_answer_total{status="success",type="webext"} 8
snowflake_rounded_proxy_answer_total{status="timeout",type=""} 8
# HELP snowflake_rounded_proxy_poll_rejected_relay_url_extension_total The number of snowflake proxy polls rejected by Relay URL Extension, rounded up to a multiple of 8
# TYPE snowflake_rounded_proxy_poll_rejected_relay_url_extension_total counter
snowflake_rounded_proxy_poll_rejected_relay_url_extension_total{nat="unknown",type="bloco"} 8
# HELP snowflake_rounded_proxy_poll_total The number of snowflake proxy polls, rounded up to a multiple of 8
# TYPE snowflake_rounded_proxy_poll_total counter
snowflake_rounded_proxy_poll_total{nat="restricted",status="idle",type="standalone"} 8
snowflake_rounded_proxy_poll_total{nat="restricted",status="idle",type="webext"} 8
snowflake_rounded_proxy_poll_total{nat="unknown",status="idle",type="badge"} 8
snowflake_rounded_proxy_poll_total{nat="unknown",status="idle",type="iptproxy"} 8
snowflake_rounded_proxy_poll_total{nat="unknown",status="idle",type="unknown"} 8
snowflake_rounded_proxy_poll_total{nat="unrestricted",status="idle",type="standalone"} 8
# HELP snowflake_rounded_proxy_poll_with_relay_url_extension_total The number of snowflake proxy polls with Relay URL Extension, rounded up to a multiple of 8
# TYPE snowflake_rounded_proxy_poll_with_relay_url_extension_total counter
snowflake_rounded_proxy_poll_with_relay_url_extension_total{nat="restricted",type="standalone"} 8
snowflake_rounded_proxy_poll_with_relay_url_extension_total{nat="restricted",type="webext"} 8
snowflake_rounded_proxy_poll_with_relay_url_extension_total{nat="unknown",type="badge"} 8
snowflake_rounded_proxy_poll_with_relay_url_extension_total{nat="unknown",type="bloco"} 8
snowflake_rounded_proxy_poll_with_relay_url_extension_total{nat="unknown",type="iptproxy"} 8
snowflake_rounded_proxy_poll_with_relay_url_extension_total{nat="unknown",type="unknown"} 8
snowflake_rounded_proxy_poll_with_relay_url_extension_total{nat="unrestricted",type="standalone"} 8
# HELP snowflake_rounded_proxy_poll_without_relay_url_extension_total The number of snowflake proxy polls without Relay URL Extension, rounded up to a multiple of 8
# TYPE snowflake_rounded_proxy_poll_without_relay_url_extension_total counter
snowflake_rounded_proxy_poll_without_relay_url_extension_total{nat="unknown",type="bloco"} 8
"""  # noqa: E501 (upstream's lines)


def test_the_page_equals_upstreams():
    assert exposition(COUNTERS, available={}) == PAGE


def test_without_counters_the_page_is_empty():
    assert exposition({}, available={}) == ""


def test_known_proxies_are_shown_before_their_polls_are_counted():
    known = {ProxyKind(Nat.RESTRICTED, "webext"): 2, ProxyKind(Nat.UNKNOWN, "badge"): 1}

    lines = exposition({"proxy_poll|restricted|idle|badge": 4}, available=known).splitlines()

    assert [line for line in lines if line.startswith("snowflake_available_proxies")] == [
        'snowflake_available_proxies{nat="restricted",type="badge"} 0',
        'snowflake_available_proxies{nat="restricted",type="webext"} 2',
        'snowflake_available_proxies{nat="unknown",type="badge"} 1',
    ]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (999999, "999999"),
        (1000000, "1e+06"),
        (1200000, "1.2e+06"),
        (1234567, "1.234567e+06"),
        (12345678901, "1.2345678901e+10"),
    ],
)
def test_large_numbers_are_written_as_go_writes_them(count, text):
    page = exposition({"proxy|IR|unknown|webext": count}, available={})

    assert page.endswith(f'{{cc="IR",nat="unknown",type="webext"}} {text}\n')


@given(st.integers(0, 2**53))
def test_no_digit_of_a_number_is_lost(count):
    page = exposition({"proxy|IR|unknown|webext": count}, available={})

    assert float(page.split()[-1]) == count
