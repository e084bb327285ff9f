"""The page /prometheus: a day's counters and the known proxies, in the text format of upstream's registry.

Counters restart at zero at midnight UTC; Prometheus treats that as a counter reset.
Source: upstream's broker/metrics.go (names, help texts, rounding) and client_golang (order and number format).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from signalbox.rendezvous.model.pace import ProxyKind
from signalbox.rendezvous.reporting.counters import CounterSample, Metric, parsed_counters
from signalbox.rendezvous.reporting.statistics import rounded_up

EXPONENT_FROM = 10**6  # Go writes larger floats with an exponent


@dataclass(frozen=True, slots=True)
class _Family:
    name: str
    kind: str
    help: str
    samples: Mapping[tuple[tuple[str, str], ...], int]  # by labels


_COUNTERS: Mapping[Metric, tuple[str, str]] = {
    Metric.PROXY: ("snowflake_proxy_total", "The number of unique snowflake IPs"),
    Metric.CLIENT_POLL: ("snowflake_rounded_client_poll_total", "The number of snowflake client polls"),
    Metric.PROXY_ANSWER: ("snowflake_rounded_proxy_answer_total", "The number of snowflake proxy answers"),
    Metric.POLL_REJECTED_RELAY_URL: (
        "snowflake_rounded_proxy_poll_rejected_relay_url_extension_total",
        "The number of snowflake proxy polls rejected by Relay URL Extension",
    ),
    Metric.PROXY_POLL: ("snowflake_rounded_proxy_poll_total", "The number of snowflake proxy polls"),
    Metric.POLL_WITH_RELAY_URL: (
        "snowflake_rounded_proxy_poll_with_relay_url_extension_total",
        "The number of snowflake proxy polls with Relay URL Extension",
    ),
    Metric.POLL_WITHOUT_RELAY_URL: (
        "snowflake_rounded_proxy_poll_without_relay_url_extension_total",
        "The number of snowflake proxy polls without Relay URL Extension",
    ),
    Metric.BAD_INPUT: ("signalbox_rounded_bad_input_total", "The number of messages that broke the protocol"),
    Metric.DEAD_LETTER: (
        "signalbox_rounded_dead_letters_total",
        "The number of offers in the dead-letter queue",
    ),
}


def exposition(counters: Mapping[str, int], *, available: Mapping[ProxyKind, int]) -> str:
    """Return the page for a day's counters and the number of proxies by kind."""
    samples = parsed_counters(counters)
    families = [_available(samples, available), *(_counter(metric, samples) for metric in _COUNTERS)]
    return "".join(_family_text(family) for family in sorted(families, key=lambda family: family.name))


def _available(samples: Iterable[CounterSample], available: Mapping[ProxyKind, int]) -> _Family:
    # A pair that polled today and does not poll now stays on the page with zero.
    seen = {(s.labels["nat"], s.labels["type"]) for s in samples if s.metric is Metric.PROXY_POLL}
    present = Counter({(str(kind.nat), kind.proxy_type): count for kind, count in available.items()})
    return _Family(
        name="snowflake_available_proxies",
        kind="gauge",
        help="The number of currently available snowflake proxies",
        samples={(("nat", pair[0]), ("type", pair[1])): present[pair] for pair in seen | present.keys()},
    )


def _counter(metric: Metric, samples: Iterable[CounterSample]) -> _Family:
    name, text = _COUNTERS[metric]
    counts: Counter[tuple[tuple[str, str], ...]] = Counter()
    for sample in samples:
        if sample.metric is metric:
            counts[tuple(sample.labels.items())] += sample.count
    if metric is Metric.PROXY:
        return _Family(name, "counter", text, counts)
    rounded = {labels: rounded_up(count) for labels, count in counts.items()}
    return _Family(name, "counter", f"{text}, rounded up to a multiple of 8", rounded)


def _family_text(family: _Family) -> str:
    if not family.samples:
        return ""
    head = f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.kind}\n"
    return head + "".join(
        f"{family.name}{{{_labels_text(labels)}}} {_float_text(value)}\n"
        for labels, value in sorted(family.samples.items())
    )


def _labels_text(labels: Iterable[tuple[str, str]]) -> str:
    # Nothing needs escaping: the values are protocol words and country codes.
    return ",".join(f'{name}="{value}"' for name, value in labels)


def _float_text(number: int) -> str:
    """Return a number in Go's shortest notation of a float."""
    if number < EXPONENT_FROM:
        return str(number)
    digits = str(number)
    fraction = digits[1:].rstrip("0")
    return f"{digits[0]}{'.' if fraction else ''}{fraction}e+{len(digits) - 1:02d}"
