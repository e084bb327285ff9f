"""The counters of rendezvous: the names that history events add to, and the metrics and labels of a name.

A counter's name is its metric and the values of its labels, joined by `|`: `proxy_type|webext`. The counters of the
most frequent events are stored once with all their labels, and expand to several metrics when read.
Source of the counting rules: upstream's broker/metrics.go and broker/ipc.go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from signalbox.history.event import HistoryEvent
from signalbox.rendezvous.wire.proxy import KNOWN_TYPES

UNKNOWN = "unknown"
UNKNOWN_COUNTRY = "??"


class Metric(StrEnum):
    """The metrics; the first part of a counter's name."""

    CLIENT_POLL = "client_poll"
    PROXY = "proxy"  # addresses, each under the country, NAT and type of its first poll of the day
    PROXY_NAT = "proxy_nat"  # pairs of address and NAT
    PROXY_TYPE = "proxy_type"  # pairs of address and type
    PROXY_ANSWER = "proxy_answer"
    PROXY_POLL = "proxy_poll"
    POLL_WITH_RELAY_URL = "proxy_poll_with_relay_url"
    POLL_WITHOUT_RELAY_URL = "proxy_poll_without_relay_url"
    POLL_REJECTED_RELAY_URL = "proxy_poll_rejected_relay_url"
    BAD_INPUT = "bad_input"  # upstream counts neither messages that break the protocol nor dead letters
    DEAD_LETTER = "dead_letter"


# In the order in which upstream's registry exports them.
LABELS: Mapping[Metric, tuple[str, ...]] = {
    Metric.CLIENT_POLL: ("cc", "nat", "rendezvous_method", "status"),
    Metric.PROXY: ("cc", "nat", "type"),
    Metric.PROXY_NAT: ("nat",),
    Metric.PROXY_TYPE: ("type",),
    Metric.PROXY_ANSWER: ("status", "type"),
    Metric.PROXY_POLL: ("nat", "status", "type"),
    Metric.POLL_WITH_RELAY_URL: ("nat", "type"),
    Metric.POLL_WITHOUT_RELAY_URL: ("nat", "type"),
    Metric.POLL_REJECTED_RELAY_URL: ("nat", "type"),
    Metric.BAD_INPUT: ("source",),
    Metric.DEAD_LETTER: ("source",),
}


class CompoundCounter(StrEnum):
    """First parts of the names of counters that count for several metrics; values of the labels below follow."""

    POLL = "poll"  # nat, outcome, type, with or without a relay pattern
    ANSWER = "answer"  # country, NAT and method of the client, type of the proxy


def counter_name(metric: Metric | CompoundCounter, *values: str) -> str:
    """Return the name of the counter with these label values."""
    return "|".join((metric, *values))


def event_counters(event: HistoryEvent) -> tuple[str, ...]:
    """Return the counters that an event increments, without those of distinct proxies (`distinct_keys`)."""
    if event.capability != "rendezvous":
        return ()
    if event.kind == "proxy_poll":
        return _poll_counters(event)
    if event.kind == "proxy_answer":
        return _answer_counters(event)
    if event.kind == "dead_letter":
        return (counter_name(Metric.DEAD_LETTER, event.source or UNKNOWN),)
    if event.kind == "bad_input" or (event.kind == "offer" and event.outcome == "rejected"):
        return (counter_name(Metric.BAD_INPUT, event.source or UNKNOWN),)
    return _client_counters(event)


def _client_counters(event: HistoryEvent) -> tuple[str, ...]:
    country, nat = event.labels.get("country", UNKNOWN_COUNTRY), event.labels.get("nat", UNKNOWN)
    source = event.source or UNKNOWN
    if event.kind == "answer":
        return (counter_name(CompoundCounter.ANSWER, country, nat, source, event.labels.get("proxy_type", UNKNOWN)),)
    status = _client_status(event)
    return (counter_name(Metric.CLIENT_POLL, country, nat, source, status),) if status else ()


def _poll_counters(event: HistoryEvent) -> tuple[str, ...]:
    nat, proxy_type = _nat_and_type(event)
    relay_pattern = event.labels.get("relay_pattern", "without")
    return (counter_name(CompoundCounter.POLL, nat, event.outcome, proxy_type, relay_pattern),)


def _answer_counters(event: HistoryEvent) -> tuple[str, ...]:
    # An accepted answer is counted with the event of its client.
    if event.outcome == "client_gone":
        return (counter_name(Metric.PROXY_ANSWER, "timeout", ""),)  # upstream has no proxy type at that point
    return ()


def _client_status(event: HistoryEvent) -> str | None:
    """Return upstream's status of a client's attempt; None if it continues or the event is not an offer's."""
    if event.kind == "offer":
        return "denied" if event.outcome in ("denied", "stale") else None
    if event.kind == "timeout":
        # It was parked until its patience ended; upstream parks no offers and would have denied it at once.
        return "denied" if event.reason == "no proxy" else "timeout"
    return None


def _nat_and_type(event: HistoryEvent) -> tuple[str, str]:
    return event.labels.get("nat", UNKNOWN), event.labels.get("proxy_type", UNKNOWN)


def distinct_keys(event: HistoryEvent) -> tuple[tuple[str, str], ...]:
    """Return (key, counter) pairs; the caller increments a counter if its key is new on that day.

    An address counts once a day, and once for each NAT type and each known proxy type that it reports.
    """
    address_hash = event.labels.get("party")
    if event.kind != "proxy_poll" or event.outcome == "relay_rejected" or not address_hash:
        return ()
    nat, proxy_type = _nat_and_type(event)
    country = event.labels.get("country", UNKNOWN_COUNTRY)
    keys = [
        (address_hash, counter_name(Metric.PROXY, country, nat, proxy_type)),
        (f"{address_hash}|nat|{nat}", counter_name(Metric.PROXY_NAT, nat)),
    ]
    if proxy_type in KNOWN_TYPES:
        keys.append((f"{address_hash}|type|{proxy_type}", counter_name(Metric.PROXY_TYPE, proxy_type)))
    return tuple(keys)


@dataclass(frozen=True, slots=True)
class CounterSample:
    """A counter's value, with the metric and the labels of its name."""

    metric: Metric
    labels: Mapping[str, str]
    count: int


def parsed_counters(counters: Mapping[str, int]) -> tuple[CounterSample, ...]:
    """Return the samples of all known counter names; unknown names are skipped."""
    return tuple(sample for name, count in counters.items() for sample in _samples(name, count))


def _samples(name: str, count: int) -> tuple[CounterSample, ...]:
    match name.split("|"):
        case [CompoundCounter.POLL, nat, outcome, proxy_type, relay_pattern]:
            return _poll_samples(nat, outcome, proxy_type, relay_pattern, count=count)
        case [CompoundCounter.ANSWER, country, nat, method, proxy_type]:
            client = _sample(Metric.CLIENT_POLL, (country, nat, method, "matched"), count)
            return (client, _sample(Metric.PROXY_ANSWER, ("success", proxy_type), count))
        case [metric, *values] if metric in LABELS and len(values) == len(LABELS[Metric(metric)]):
            return (_sample(Metric(metric), values, count),)
        case _:
            return ()


def _poll_samples(
    nat: str, outcome: str, proxy_type: str, relay_pattern: str, *, count: int
) -> tuple[CounterSample, CounterSample]:
    has_pattern = relay_pattern == "with"
    relay_url = Metric.POLL_WITH_RELAY_URL if has_pattern else Metric.POLL_WITHOUT_RELAY_URL
    if outcome == "relay_rejected":
        polled = _sample(Metric.POLL_REJECTED_RELAY_URL, (nat, proxy_type), count)
    else:
        polled = _sample(Metric.PROXY_POLL, (nat, outcome, proxy_type), count)
    return (_sample(relay_url, (nat, proxy_type), count), polled)


def _sample(metric: Metric, values: Sequence[str], count: int) -> CounterSample:
    return CounterSample(metric, dict(zip(LABELS[metric], values, strict=True)), count)
