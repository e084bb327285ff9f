"""The counters that a history event increments."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.history.event import HistoryEvent
from signalbox.rendezvous.reporting.counters import (
    LABELS,
    CounterSample,
    Metric,
    counter_name,
    distinct_keys,
    event_counters,
    parsed_counters,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def event(kind, outcome, *, reason=None, source=None, capability="rendezvous", **labels):
    return HistoryEvent(
        event_id="1",
        occurred_at=NOON,
        capability=capability,
        kind=kind,
        outcome=outcome,
        reason=reason,
        source=source,
        labels=labels,
    )


def poll(outcome="idle", **labels):
    defaults = {"nat": "restricted", "proxy_type": "webext", "country": "IR", "party": "aa", "relay_pattern": "with"}
    return event("proxy_poll", outcome, **(defaults | labels))


@pytest.mark.parametrize(
    ("happened", "counters"),
    [
        pytest.param(
            poll("idle"),
            ("poll|restricted|idle|webext|with",),
            id="an idle poll",
        ),
        pytest.param(
            poll("matched", nat="unknown", proxy_type="unknown"),
            ("poll|unknown|matched|unknown|with",),
            id="a matched poll",
        ),
        pytest.param(
            poll("relay_rejected", relay_pattern="without"),
            ("poll|restricted|relay_rejected|webext|without",),
            id="a refused poll",
        ),
        pytest.param(
            event("proxy_poll", "idle"),
            ("poll|unknown|idle|unknown|without",),
            id="a poll that says nothing of itself",
        ),
        pytest.param(
            event("proxy_answer", "success", proxy_type="badge"), (), id="an answer taken counts with its client"
        ),
        pytest.param(
            event("proxy_answer", "client_gone", proxy_type="badge"),
            ("proxy_answer|timeout|",),
            id="an answer too late has no type",
        ),
        pytest.param(event("proxy_answer", "invalid"), (), id="an invalid answer is not counted"),
        pytest.param(
            event("offer", "denied", source="sqs", nat="unrestricted", country="RU"),
            ("client_poll|RU|unrestricted|sqs|denied",),
            id="a client denied at once",
        ),
        pytest.param(
            event("offer", "stale", source="sqs", nat="unknown", country="RU"),
            ("client_poll|RU|unknown|sqs|denied",),
            id="an offer that lay in the queue too long was never matched",
        ),
        pytest.param(event("offer", "parked", source="sqs"), (), id="a parked offer is not over yet"),
        pytest.param(
            event("offer", "rejected", source="http"), ("bad_input|http",), id="a malformed offer counts as no client"
        ),
        pytest.param(event("offer", "duplicate", source="sqs"), (), id="a duplicate is not counted"),
        pytest.param(
            event("answer", "delivered", source="http", nat="restricted", country="CN", proxy_type="badge"),
            ("answer|CN|restricted|http|badge",),
            id="a client answered",
        ),
        pytest.param(
            event("timeout", "expired", reason="no proxy", source="sqs", nat="restricted"),
            ("client_poll|??|restricted|sqs|denied",),
            id="a client who waited and was never matched",
        ),
        pytest.param(
            event("timeout", "expired", reason="silent proxy", source="ampcache", nat="restricted", country="CN"),
            ("client_poll|CN|restricted|ampcache|timeout",),
            id="a client whose proxies stayed silent",
        ),
        pytest.param(event("timeout", "expired"), ("client_poll|??|unknown|unknown|timeout",), id="an event of old"),
        pytest.param(event("queue", "created"), (), id="a queue"),
        pytest.param(event("offer", "denied", capability="splitting"), (), id="another capability"),
    ],
)
def test_counters_of_an_event(happened, counters):
    assert event_counters(happened) == counters


def test_an_address_counts_once_and_once_for_each_nat_and_type():
    assert distinct_keys(poll("idle")) == (
        ("aa", "proxy|IR|restricted|webext"),
        ("aa|nat|restricted", "proxy_nat|restricted"),
        ("aa|type|webext", "proxy_type|webext"),
    )


def test_an_unknown_type_is_not_counted_as_a_type():
    assert distinct_keys(poll("matched", proxy_type="unknown", nat="unknown")) == (
        ("aa", "proxy|IR|unknown|unknown"),
        ("aa|nat|unknown", "proxy_nat|unknown"),
    )


@pytest.mark.parametrize(
    "happened",
    [
        pytest.param(poll("relay_rejected"), id="a refused poll"),
        pytest.param(poll(party=""), id="an empty party"),
        pytest.param(event("proxy_poll", "idle", nat="restricted"), id="a poll without an address"),
        pytest.param(event("proxy_answer", "success", party="aa"), id="an answer"),
    ],
)
def test_no_proxy_is_distinct_in(happened):
    assert distinct_keys(happened) == ()


def test_a_counter_name_contains_its_labels():
    samples = parsed_counters({"client_poll|CN|unknown|sqs|denied": 2, "proxy|IR|restricted|webext": 3})

    assert samples == (
        CounterSample(
            Metric.CLIENT_POLL,
            {"cc": "CN", "nat": "unknown", "rendezvous_method": "sqs", "status": "denied"},
            2,
        ),
        CounterSample(Metric.PROXY, {"cc": "IR", "nat": "restricted", "type": "webext"}, 3),
    )


@pytest.mark.parametrize(
    ("name", "read"),
    [
        (
            "poll|restricted|idle|webext|with",
            ("proxy_poll_with_relay_url|restricted|webext", "proxy_poll|restricted|idle|webext"),
        ),
        (
            "poll|unknown|matched|badge|without",
            ("proxy_poll_without_relay_url|unknown|badge", "proxy_poll|unknown|matched|badge"),
        ),
        (
            "poll|restricted|relay_rejected|webext|without",
            ("proxy_poll_without_relay_url|restricted|webext", "proxy_poll_rejected_relay_url|restricted|webext"),
        ),
        (
            "answer|CN|restricted|http|badge",
            ("client_poll|CN|restricted|http|matched", "proxy_answer|success|badge"),
        ),
    ],
)
def test_a_compound_counter_expands_to_two_metrics(name, read):
    """A rejected poll counts by its relay pattern, and neither as idle nor as matched."""
    samples = parsed_counters({name: 3})

    assert tuple(counter_name(s.metric, *s.labels.values()) for s in samples) == read
    assert {s.count for s in samples} == {3}


@pytest.mark.parametrize("name", ["", "weather", "weather|IR", "proxy", "proxy|IR|restricted", "proxy_nat|a|b"])
def test_a_counter_of_another_version_is_skipped(name):
    assert parsed_counters({name: 1}) == ()


@given(st.sampled_from(Metric), st.data())
def test_naming_and_parsing_are_inverse(metric, data):
    values = [data.draw(st.text(st.characters(exclude_characters="|"))) for _ in LABELS[metric]]

    (sample,) = parsed_counters({counter_name(metric, *values): 7})

    assert (sample.metric, list(sample.labels.values()), sample.count) == (metric, values, 7)


@pytest.mark.parametrize(
    ("kind", "outcome", "source", "counter"),
    [
        ("bad_input", "rejected", "http", "bad_input|http"),
        ("offer", "rejected", "sqs", "bad_input|sqs"),
        ("dead_letter", "dead", "sqs", "dead_letter|sqs"),
    ],
)
def test_messages_that_break_the_protocol_are_counted_unlike_upstream(kind, outcome, source, counter):
    assert event_counters(event(kind, outcome, source=source)) == (counter,)
