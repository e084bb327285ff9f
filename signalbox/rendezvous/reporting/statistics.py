"""The statistics of one day of rendezvous: their log block in upstream's format (broker/metrics.go), and a summary."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from signalbox.rendezvous.reporting.counters import UNKNOWN, CounterSample, Metric, parsed_counters
from signalbox.rendezvous.wire.proxy import KNOWN_TYPES

BIN = 8  # counts that could identify single users are published in multiples of this
DAY = timedelta(days=1)
METHODS = ("http", "ampcache", "sqs")


def rounded_up(count: int) -> int:
    """Return the smallest multiple of `BIN` that is at least `count`."""
    return -(-count // BIN) * BIN


@dataclass(frozen=True, slots=True)
class DayStatistics:
    """The exact counts of one UTC day, before rounding."""

    day: date
    samples: tuple[CounterSample, ...]

    @classmethod
    def from_counters(cls, counters: Mapping[str, int], day: date) -> "DayStatistics":
        """Return the statistics of a day's counters."""
        return cls(day, parsed_counters(counters))

    def sums(self, metric: Metric, *, by: str, **labels: str) -> Counter[str]:
        """Return the counts of a metric with these labels, by another label."""
        sums: Counter[str] = Counter()
        for sample in self.samples:
            if sample.metric is metric and labels.items() <= sample.labels.items():
                sums[sample.labels[by]] += sample.count
        return sums

    def total(self, metric: Metric, **labels: str) -> int:
        """Return the count of a metric with these labels."""
        return sum(s.count for s in self.samples if s.metric is metric and labels.items() <= s.labels.items())

    def summary(self) -> dict[str, object]:
        """Return distinct proxies by type and NAT, idle polls, and clients by result.

        Idle polls and clients are rounded up to multiples of eight as in the log block, to hide single users.
        """
        return {
            "day": self.day.isoformat(),
            "proxies": dict(self.sums(Metric.PROXY_TYPE, by="type")),
            "nats": dict(self.sums(Metric.PROXY_NAT, by="nat")),
            "idle_polls": rounded_up(self.total(Metric.PROXY_POLL, status="idle")),
            "clients": {
                "matched": rounded_up(self.total(Metric.CLIENT_POLL, status="matched")),
                "denied": rounded_up(self.total(Metric.CLIENT_POLL, status="denied")),
                "timed_out": rounded_up(self.total(Metric.CLIENT_POLL, status="timeout")),
            },
        }

    def log_block(self) -> str:
        """Return upstream's block of the metrics log, byte for byte; the day ends at the next midnight."""
        by_nat = self.sums(Metric.PROXY_NAT, by="nat")
        lines = [
            ("snowflake-stats-end", f"{self.day + DAY} 00:00:00 ({DAY // timedelta(seconds=1)} s)"),
            *self._proxy_lines(),
            *self._client_lines(),
            *((f"snowflake-ips-nat-{nat}", by_nat[nat]) for nat in ("restricted", "unrestricted", UNKNOWN)),
        ]
        return "".join(f"{name} {value}\n" for name, value in lines)

    def _proxy_lines(self) -> Iterator[tuple[str, str | int]]:
        by_country, by_type = self.sums(Metric.PROXY, by="cc"), self.sums(Metric.PROXY_TYPE, by="type")
        yield "snowflake-ips", _country_list(by_country)
        yield from ((f"snowflake-ips-{name}", by_type[name]) for name in KNOWN_TYPES)
        yield "snowflake-ips-total", by_country.total()
        for name, count in (
            ("idle", self.total(Metric.PROXY_POLL, status="idle")),
            ("proxy-poll-with-relay-url", self.total(Metric.POLL_WITH_RELAY_URL)),
            ("proxy-poll-without-relay-url", self.total(Metric.POLL_WITHOUT_RELAY_URL)),
            ("proxy-rejected-for-relay-url", self.total(Metric.POLL_REJECTED_RELAY_URL)),
        ):
            yield f"snowflake-{name}-count", rounded_up(count)

    def _client_lines(self) -> Iterator[tuple[str, str | int]]:
        by_nat = self.sums(Metric.CLIENT_POLL, by="nat", status="denied")
        for name, count in (
            ("denied", by_nat.total()),
            ("restricted-denied", by_nat.total() - by_nat["unrestricted"]),
            ("unrestricted-denied", by_nat["unrestricted"]),
            ("snowflake-match", self.total(Metric.CLIENT_POLL, status="matched")),
            ("snowflake-timeout", self.total(Metric.CLIENT_POLL, status="timeout")),
        ):
            yield f"client-{name}-count", rounded_up(count)
        for method in METHODS:
            by_country = self.sums(Metric.CLIENT_POLL, by="cc", rendezvous_method=method)
            yield f"client-{method}-count", rounded_up(by_country.total())
            # Each country is rounded by itself, and before sorting.
            yield f"client-{method}-ips", _country_list({cc: rounded_up(count) for cc, count in by_country.items()})


def _country_list(counts: Mapping[str, int]) -> str:
    """Return `CC=COUNT` pairs by descending count, then by code."""
    return ",".join(f"{cc}={count}" for cc, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
