"""The text block that upstream's broker logs every 24 hours."""

from collections.abc import Mapping
from datetime import date, timedelta

COUNTRY_LINES = frozenset({"snowflake-ips", "client-http-ips", "client-ampcache-ips", "client-sqs-ips"})
# In upstream's order, except for the five lines of proxy types, whose order upstream randomizes.
LINES = (
    "snowflake-ips",
    "snowflake-ips-standalone",
    "snowflake-ips-webext",
    "snowflake-ips-badge",
    "snowflake-ips-iptproxy",
    "snowflake-ips-bloco",
    "snowflake-ips-total",
    "snowflake-idle-count",
    "snowflake-proxy-poll-with-relay-url-count",
    "snowflake-proxy-poll-without-relay-url-count",
    "snowflake-proxy-rejected-for-relay-url-count",
    "client-denied-count",
    "client-restricted-denied-count",
    "client-unrestricted-denied-count",
    "client-snowflake-match-count",
    "client-snowflake-timeout-count",
    "client-http-count",
    "client-http-ips",
    "client-ampcache-count",
    "client-ampcache-ips",
    "client-sqs-count",
    "client-sqs-ips",
    "snowflake-ips-nat-restricted",
    "snowflake-ips-nat-unrestricted",
    "snowflake-ips-nat-unknown",
)
COUNT_LINES = tuple(line for line in LINES if line not in COUNTRY_LINES)


def log_block(day: date, shown: Mapping[tuple[str, str | None], int]) -> str:
    """Return the block of a UTC day; `shown` are its rounded numbers by metric and label."""
    end = day + timedelta(days=1)
    lines = [f"snowflake-stats-end {end.isoformat()} 00:00:00 (86400 s)"]
    lines += [f"{line} {_value(line, shown)}" for line in LINES]
    return "".join(f"{line}\n" for line in lines)


def _value(line: str, shown: Mapping[tuple[str, str | None], int]) -> str:
    if line not in COUNTRY_LINES:
        return str(shown.get((line, None), 0))
    countries = [(label or "", number) for (metric, label), number in shown.items() if metric == line]
    return ",".join(f"{country}={number}" for country, number in sorted(countries, key=_largest_first))


def _largest_first(entry: tuple[str, int]) -> tuple[int, str]:
    country, number = entry
    return (-number, country)
