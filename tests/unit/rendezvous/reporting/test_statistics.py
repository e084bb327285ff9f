"""The daily statistics and their log block; the expected blocks were recorded from upstream v2.14.1."""

from collections import Counter
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.reporting.counters import Metric
from signalbox.rendezvous.reporting.statistics import DayStatistics, rounded_up

DAY = date(2026, 11, 21)

EMPTY_BLOCK = """\
snowflake-stats-end 2026-11-22 00:00:00 (86400 s)
snowflake-ips\x20
snowflake-ips-standalone 0
snowflake-ips-webext 0
snowflake-ips-badge 0
snowflake-ips-iptproxy 0
snowflake-ips-bloco 0
snowflake-ips-total 0
snowflake-idle-count 0
snowflake-proxy-poll-with-relay-url-count 0
snowflake-proxy-poll-without-relay-url-count 0
snowflake-proxy-rejected-for-relay-url-count 0
client-denied-count 0
client-restricted-denied-count 0
client-unrestricted-denied-count 0
client-snowflake-match-count 0
client-snowflake-timeout-count 0
client-http-count 0
client-http-ips\x20
client-ampcache-count 0
client-ampcache-ips\x20
client-sqs-count 0
client-sqs-ips\x20
snowflake-ips-nat-restricted 0
snowflake-ips-nat-unrestricted 0
snowflake-ips-nat-unknown 0
"""

# The recorded input of upstream: seven accepted polls and two rejected ones, fourteen clients.
COUNTERS = {
    "proxy|AU|unrestricted|standalone": 1,
    "proxy|??|restricted|webext": 1,
    "proxy|??|unknown|badge": 1,
    "proxy|??|unknown|unknown": 1,
    "proxy|??|unknown|iptproxy": 1,
    "proxy_nat|restricted": 2,
    "proxy_nat|unrestricted": 1,
    "proxy_nat|unknown": 3,
    "proxy_type|standalone": 1,
    "proxy_type|webext": 2,
    "proxy_type|badge": 1,
    "proxy_type|iptproxy": 1,
    "proxy_poll|unrestricted|idle|standalone": 1,
    "proxy_poll|restricted|idle|standalone": 1,
    "proxy_poll|restricted|idle|webext": 2,
    "proxy_poll|unknown|idle|badge": 1,
    "proxy_poll|unknown|idle|unknown": 1,
    "proxy_poll|unknown|idle|iptproxy": 1,
    "proxy_poll_with_relay_url|restricted|webext": 8,
    "proxy_poll_without_relay_url|unknown|bloco": 1,
    "proxy_poll_rejected_relay_url|unknown|bloco": 2,
    "client_poll|AU|unrestricted|http|denied": 9,
    "client_poll|??|restricted|http|denied": 1,
    "client_poll|??|unknown|ampcache|denied": 1,
    "client_poll|??|unknown|sqs|matched": 1,
    "client_poll|??|restricted|sqs|timeout": 1,
    "client_poll|AU|restricted|sqs|timeout": 1,
}

BLOCK = """\
snowflake-stats-end 2026-11-22 00:00:00 (86400 s)
snowflake-ips ??=4,AU=1
snowflake-ips-standalone 1
snowflake-ips-webext 2
snowflake-ips-badge 1
snowflake-ips-iptproxy 1
snowflake-ips-bloco 0
snowflake-ips-total 5
snowflake-idle-count 8
snowflake-proxy-poll-with-relay-url-count 8
snowflake-proxy-poll-without-relay-url-count 8
snowflake-proxy-rejected-for-relay-url-count 8
client-denied-count 16
client-restricted-denied-count 8
client-unrestricted-denied-count 16
client-snowflake-match-count 8
client-snowflake-timeout-count 8
client-http-count 16
client-http-ips AU=16,??=8
client-ampcache-count 8
client-ampcache-ips ??=8
client-sqs-count 8
client-sqs-ips ??=8,AU=8
snowflake-ips-nat-restricted 2
snowflake-ips-nat-unrestricted 1
snowflake-ips-nat-unknown 3
"""

# Unordered. Source: upstream's test of its country lists (broker/metrics_test.go).
COUNTRIES = {
    "IT": 50,
    "FR": 200,
    "TZ": 100,
    "CN": 250,
    "RU": 150,
    "CA": 1,
    "BE": 1,
    "PH": 1,
    "AT": 105,
    "MY": 112,
    "ZA": 108,
}


def block(counters: dict[str, int], day: date = DAY) -> str:
    return DayStatistics.from_counters(counters, day).log_block()


def test_a_day_without_rendezvous_is_upstreams_empty_block():
    assert block({}) == EMPTY_BLOCK


def test_the_block_equals_upstreams():
    assert block(COUNTERS) == BLOCK


def test_proxies_are_listed_without_rounding_by_descending_count_then_code():
    counters = {f"proxy|{country}|unknown|webext": count for country, count in COUNTRIES.items()}

    assert "\nsnowflake-ips CN=250,FR=200,RU=150,MY=112,ZA=108,AT=105,TZ=100,IT=50,BE=1,CA=1,PH=1\n" in block(counters)


@pytest.mark.parametrize("method", ["http", "ampcache", "sqs"])
def test_clients_are_rounded_before_they_are_sorted(method):
    counters = {f"client_poll|{country}|unknown|{method}|matched": count for country, count in COUNTRIES.items()}

    rounded = "CN=256,FR=200,RU=152,AT=112,MY=112,ZA=112,TZ=104,IT=56,BE=8,CA=8,PH=8"
    assert f"\nclient-{method}-count 1080\nclient-{method}-ips {rounded}\n" in block(counters)


def test_a_day_ends_at_the_next_midnight():
    assert block({}, date(2026, 12, 31)).startswith("snowflake-stats-end 2027-01-01 00:00:00 (86400 s)\n")


@pytest.mark.parametrize(("count", "rounded"), [(0, 0), (1, 8), (7, 8), (8, 8), (9, 16), (105, 112)])
def test_counts_are_rounded_up_to_multiples_of_eight(count, rounded):
    assert rounded_up(count) == rounded


@given(st.integers(0, 10**12))
def test_rounding_up_adds_less_than_one_step(count):
    rounded = rounded_up(count)

    assert rounded % 8 == 0
    assert 0 <= rounded - count < 8


NAMES = st.sampled_from([*COUNTERS, "client_poll|CN|unrestricted|ampcache|timeout", "weather|of|no|matter"])


@given(st.dictionaries(NAMES, st.integers(0, 10**6)), st.dictionaries(NAMES, st.integers(0, 10**6)))
def test_statistics_of_merged_counters_are_the_sums(one, other):
    first, second = (DayStatistics.from_counters(counters, DAY) for counters in (one, other))

    both = DayStatistics.from_counters(Counter(one) + Counter(other), DAY)

    for metric in Metric:
        assert both.total(metric) == first.total(metric) + second.total(metric)
    sqs = [each.sums(Metric.CLIENT_POLL, by="cc", rendezvous_method="sqs") for each in (first, second, both)]
    assert +sqs[2] == sqs[0] + sqs[1]


@given(st.dictionaries(NAMES, st.integers(0, 10**6)))
def test_every_client_is_counted_once_by_outcome_and_once_by_method(counters):
    statistics = DayStatistics.from_counters(counters, DAY)

    by_outcome = [statistics.total(Metric.CLIENT_POLL, status=status) for status in ("denied", "matched", "timeout")]
    by_method = statistics.sums(Metric.CLIENT_POLL, by="rendezvous_method")
    assert sum(by_outcome) == by_method.total()


def test_counts_in_the_summary_that_could_identify_users_are_multiples_of_eight():
    counters = {
        "proxy_type|webext": 3,
        "proxy_nat|restricted": 2,
        "poll|restricted|idle|webext|with": 9,
        "answer|ca|restricted|sqs|webext": 1,
        "client_poll|ca|unknown|sqs|denied": 17,
        "client_poll|ca|unknown|sqs|timeout": 8,
    }

    assert DayStatistics.from_counters(counters, DAY).summary() == {
        "day": "2026-11-21",
        "proxies": {"webext": 3},
        "nats": {"restricted": 2},
        "idle_polls": 16,
        "clients": {"matched": 8, "denied": 24, "timed_out": 8},
    }
