"""The page /prometheus; the text in `upstream` was recorded from v2.14.1."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.rendezvous.model.pace import ProxyKind
from signalbox.rendezvous.reporting.prometheus import exposition
from signalbox.rendezvous.wire.nat import Nat

UPSTREAM = Path(__file__).with_name("upstream")


def test_the_page_equals_upstreams():
    counters = json.loads((UPSTREAM / "prometheus.json").read_text())

    assert exposition(counters, available={}) == (UPSTREAM / "prometheus.txt").read_text()


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
