"""The statistics of one day of rendezvous, and their log block in upstream's format (broker/metrics.go)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from signalbox.rendezvous.reporting.counters import UNKNOWN, CounterSample, Metric, parsed_counters
from signalbox.rendezvous.wire.proxy import KNOWN_TYPES

BIN = 8  # counts that could identify single users are published in multiples of this
DAY = timedelta(days=1)


def rounded_up(count: int, step: int = BIN) -> int:
    """Return the smallest multiple of `step` that is at least `count`."""
    return -(-count // step) * step


@dataclass(frozen=True, slots=True)
class DayStatistics:
    """The exact counts of one UTC day, before rounding; denied clients are also counted by NAT type."""

    day: date
    proxies_by_country: Mapping[str, int]
    proxies_by_type: Mapping[str, int]
    proxies_by_nat: Mapping[str, int]
    idle_polls: int
    polls_with_relay_url: int
    polls_without_relay_url: int
    polls_rejected_for_relay_url: int
    clients_denied: int
    unrestricted_clients_denied: int
    clients_matched: int
    clients_timed_out: int
    http_clients_by_country: Mapping[str, int]
    ampcache_clients_by_country: Mapping[str, int]
    sqs_clients_by_country: Mapping[str, int]

    @classmethod
    def from_counters(cls, counters: Mapping[str, int], day: date) -> "DayStatistics":
        """Return the sums of a day's counters."""
        samples = parsed_counters(counters)
        return cls(
            day=day,
            proxies_by_country=_sums(samples, Metric.PROXY, by="cc"),
            proxies_by_type=_sums(samples, Metric.PROXY_TYPE, by="type"),
            proxies_by_nat=_sums(samples, Metric.PROXY_NAT, by="nat"),
            idle_polls=_total(samples, Metric.PROXY_POLL, status="idle"),
            polls_with_relay_url=_total(samples, Metric.POLL_WITH_RELAY_URL),
            polls_without_relay_url=_total(samples, Metric.POLL_WITHOUT_RELAY_URL),
            polls_rejected_for_relay_url=_total(samples, Metric.POLL_REJECTED_RELAY_URL),
            clients_denied=_total(samples, Metric.CLIENT_POLL, status="denied"),
            unrestricted_clients_denied=_total(samples, Metric.CLIENT_POLL, status="denied", nat="unrestricted"),
            clients_matched=_total(samples, Metric.CLIENT_POLL, status="matched"),
            clients_timed_out=_total(samples, Metric.CLIENT_POLL, status="timeout"),
            http_clients_by_country=_sums(samples, Metric.CLIENT_POLL, by="cc", rendezvous_method="http"),
            ampcache_clients_by_country=_sums(samples, Metric.CLIENT_POLL, by="cc", rendezvous_method="ampcache"),
            sqs_clients_by_country=_sums(samples, Metric.CLIENT_POLL, by="cc", rendezvous_method="sqs"),
        )

    @property
    def end(self) -> datetime:
        """The midnight at which the day ends."""
        return datetime.combine(self.day, time(), UTC) + DAY


def _sums(samples: Iterable[CounterSample], metric: Metric, *, by: str, **where: str) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for sample in samples:
        if sample.metric is metric and where.items() <= sample.labels.items():
            sums[sample.labels[by]] += sample.count
    return dict(sums)


def _total(samples: Iterable[CounterSample], metric: Metric, **where: str) -> int:
    return sum(s.count for s in samples if s.metric is metric and where.items() <= s.labels.items())


def log_block(statistics: DayStatistics, *, end: datetime, seconds: int = 86400) -> str:
    """Return upstream's block of the metrics log, byte for byte; its first line contains `end` and `seconds`."""
    lines = [("snowflake-stats-end", f"{end.astimezone(UTC):%Y-%m-%d %H:%M:%S} ({seconds} s)")]
    lines += _proxy_lines(statistics)
    lines += _client_lines(statistics)
    lines += [(f"snowflake-ips-nat-{nat}", f"{count}") for nat, count in _by_nat(statistics)]
    return "".join(f"{name} {value}\n" for name, value in lines)


def _proxy_lines(statistics: DayStatistics) -> list[tuple[str, str]]:
    by_country, by_type = statistics.proxies_by_country, statistics.proxies_by_type
    return [
        ("snowflake-ips", _country_list(by_country)),
        *((f"snowflake-ips-{name}", f"{by_type.get(name, 0)}") for name in KNOWN_TYPES),
        ("snowflake-ips-total", f"{sum(by_country.values())}"),
        ("snowflake-idle-count", _rounded(statistics.idle_polls)),
        ("snowflake-proxy-poll-with-relay-url-count", _rounded(statistics.polls_with_relay_url)),
        ("snowflake-proxy-poll-without-relay-url-count", _rounded(statistics.polls_without_relay_url)),
        ("snowflake-proxy-rejected-for-relay-url-count", _rounded(statistics.polls_rejected_for_relay_url)),
    ]


def _client_lines(statistics: DayStatistics) -> list[tuple[str, str]]:
    denied, unrestricted = statistics.clients_denied, statistics.unrestricted_clients_denied
    return [
        ("client-denied-count", _rounded(denied)),
        ("client-restricted-denied-count", _rounded(denied - unrestricted)),
        ("client-unrestricted-denied-count", _rounded(unrestricted)),
        ("client-snowflake-match-count", _rounded(statistics.clients_matched)),
        ("client-snowflake-timeout-count", _rounded(statistics.clients_timed_out)),
        *_method_lines("http", statistics.http_clients_by_country),
        *_method_lines("ampcache", statistics.ampcache_clients_by_country),
        *_method_lines("sqs", statistics.sqs_clients_by_country),
    ]


def _method_lines(method: str, by_country: Mapping[str, int]) -> list[tuple[str, str]]:
    # Each country is rounded by itself, and before sorting; the count is the rounded sum, not the sum of the rounded.
    rounded = {country: rounded_up(count) for country, count in by_country.items()}
    return [
        (f"client-{method}-count", _rounded(sum(by_country.values()))),
        (f"client-{method}-ips", _country_list(rounded)),
    ]


def _by_nat(statistics: DayStatistics) -> list[tuple[str, int]]:
    return [(nat, statistics.proxies_by_nat.get(nat, 0)) for nat in ("restricted", "unrestricted", UNKNOWN)]


def _rounded(count: int) -> str:
    return f"{rounded_up(count)}"


def _country_list(counts: Mapping[str, int]) -> str:
    """Return `CC=COUNT` pairs by descending count, then by code."""
    return ",".join(f"{cc}={count}" for cc, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
