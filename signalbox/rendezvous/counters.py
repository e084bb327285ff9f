"""What is counted of rendezvous: from history events to the names of counters, and back from a name to its labels.

A counter's name is its metric and the values of its labels, joined by `|`: `proxy_poll|restricted|idle|webext`.
Source for what counts as what: upstream's broker/metrics.go and broker/ipc.go.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from signalbox.history.event import HistoryEvent
from signalbox.rendezvous.proxy import KNOWN_TYPES

UNKNOWN = "unknown"
UNKNOWN_COUNTRY = "??"


class Metric(StrEnum):
    """What is counted; the first word of a counter's name."""

    CLIENT_POLL = "client_poll"
    PROXY = "proxy"  # addresses, each under the country, NAT and type of its first poll of the day
    PROXY_NAT = "proxy_nat"  # pairs of address and NAT
    PROXY_TYPE = "proxy_type"  # pairs of address and type
    PROXY_ANSWER = "proxy_answer"
    PROXY_POLL = "proxy_poll"
    POLL_WITH_RELAY_URL = "proxy_poll_with_relay_url"
    POLL_WITHOUT_RELAY_URL = "proxy_poll_without_relay_url"
    POLL_REJECTED_RELAY_URL = "proxy_poll_rejected_relay_url"
    BAD_INPUT = "bad_input"  # what upstream does not count: messages that break the protocol, and dead letters
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


def counter_name(metric: Metric, *values: str) -> str:
    """Return the name of the counter with these label values."""
    return "|".join((metric, *values))


def event_counters(event: HistoryEvent) -> tuple[str, ...]:
    """Return the counters that an event adds one to; the distinct proxies are not among them (`distinct_keys`)."""
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
    status = _client_status(event)
    if status is None:
        return ()
    country, nat = event.labels.get("country", UNKNOWN_COUNTRY), event.labels.get("nat", UNKNOWN)
    return (counter_name(Metric.CLIENT_POLL, country, nat, event.source or UNKNOWN, status),)


def _poll_counters(event: HistoryEvent) -> tuple[str, ...]:
    nat, proxy_type = _nat_and_type(event)
    has_pattern = event.labels.get("relay_pattern") == "with"
    relay_url = Metric.POLL_WITH_RELAY_URL if has_pattern else Metric.POLL_WITHOUT_RELAY_URL
    if event.outcome == "relay_rejected":
        outcome = counter_name(Metric.POLL_REJECTED_RELAY_URL, nat, proxy_type)
    else:
        outcome = counter_name(Metric.PROXY_POLL, nat, event.outcome, proxy_type)
    return (counter_name(relay_url, nat, proxy_type), outcome)


def _answer_counters(event: HistoryEvent) -> tuple[str, ...]:
    if event.outcome == "success":
        return (counter_name(Metric.PROXY_ANSWER, "success", event.labels.get("proxy_type", UNKNOWN)),)
    if event.outcome == "client_gone":
        return (counter_name(Metric.PROXY_ANSWER, "timeout", ""),)  # upstream has forgotten the proxy by then
    return ()


def _client_status(event: HistoryEvent) -> str | None:
    """Return how a client's attempt ended in upstream's words; None if it goes on or was never an offer."""
    if event.kind == "offer":
        return "denied" if event.outcome in ("denied", "stale") else None
    if event.kind == "timeout":
        # Parked until its patience ended: upstream, which parks nothing, would have denied it at once.
        return "denied" if event.reason == "no proxy" else "timeout"
    return "matched" if event.kind == "answer" else None


def _nat_and_type(event: HistoryEvent) -> tuple[str, str]:
    return event.labels.get("nat", UNKNOWN), event.labels.get("proxy_type", UNKNOWN)


def distinct_keys(event: HistoryEvent) -> tuple[tuple[str, str], ...]:
    """Return (key, counter) pairs: whenever a key is new on its day, its counter is to be added one to.

    An address counts once a day, and once for each NAT and each known type that it shows.
    """
    party = event.labels.get("party")
    if event.kind != "proxy_poll" or event.outcome == "relay_rejected" or not party:
        return ()
    nat, proxy_type = _nat_and_type(event)
    country = event.labels.get("country", UNKNOWN_COUNTRY)
    keys = [
        (party, counter_name(Metric.PROXY, country, nat, proxy_type)),
        (f"{party}|nat|{nat}", counter_name(Metric.PROXY_NAT, nat)),
    ]
    if proxy_type in KNOWN_TYPES:
        keys.append((f"{party}|type|{proxy_type}", counter_name(Metric.PROXY_TYPE, proxy_type)))
    return tuple(keys)


@dataclass(frozen=True, slots=True)
class Sample:
    """One counter with its value, its name taken apart."""

    metric: Metric
    labels: Mapping[str, str]
    count: int


def parsed_counters(counters: Mapping[str, int]) -> tuple[Sample, ...]:
    """Return the counters whose names this version knows; another version may count more."""
    samples = []
    for name, count in counters.items():
        metric, *values = name.split("|")
        if metric in LABELS and len(values) == len(LABELS[Metric(metric)]):
            known = Metric(metric)
            samples.append(Sample(known, dict(zip(LABELS[known], values, strict=True)), count))
    return tuple(samples)
