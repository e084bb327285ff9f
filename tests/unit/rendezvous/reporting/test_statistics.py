"""The daily statistics and their log block; the blocks in `upstream` were recorded from v2.14.1."""

import json
from collections import Counter
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.reporting.counters import Metric
from signalbox.rendezvous.reporting.statistics import DayStatistics, rounded_up

DAY = date(2026, 11, 21)
UPSTREAM = Path(__file__).with_name("upstream")
# The recorded input: seven accepted polls and two rejected ones, fourteen clients.
COUNTERS: dict[str, int] = json.loads((UPSTREAM / "block.json").read_text())

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
    assert block({}) == (UPSTREAM / "empty_block.txt").read_text()


def test_the_block_equals_upstreams():
    assert block(COUNTERS) == (UPSTREAM / "block.txt").read_text()


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
