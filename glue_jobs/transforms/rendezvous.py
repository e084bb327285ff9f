"""The daily rendezvous statistics, counted by the rules of upstream's broker."""

from collections.abc import Iterator
from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from glue_jobs.texts.log_block import COUNT_LINES
from glue_jobs.transforms.events import rounded, within_days

PROXY_TYPES = ("standalone", "webext", "badge", "iptproxy", "bloco")  # upstream prints no line for others
GROUPS = {"nat": "nat", "country": "country", "proxy-type": "proxy_type"}
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
# Events with equal values in these columns count for the same lines; there are few distinct groups.
ALIKE = ("kind", "outcome", "reason", "source", "nat", "country", "relay_pattern")


def rendezvous_facts(events: DataFrame, first: date, *, last: date) -> DataFrame:
    """Return the rendezvous events of the days from `first` to `last`, with their labels as columns."""
    chosen = events.where(F.col("capability") == "rendezvous")
    return chosen.transform(within_days, first, last=last).select(
        *("day", "occurred_at", "event_id", "kind", "outcome", "reason", "source", "latency_ms"),
        _label("nat", absent="unknown"),
        _label("country", absent="??"),
        _label("proxy_type", absent="unknown"),
        F.col("labels").getItem("relay_pattern").alias("relay_pattern"),
        F.col("labels").getItem("party").alias("party"),
    )


def _label(name: str, *, absent: str) -> Column:
    return F.coalesce(F.col("labels").getItem(name), F.lit(absent)).alias(name)


def rendezvous_report(facts: DataFrame, days: DataFrame) -> DataFrame:
    """Return the tidy report of each of `days`: one row for each metric and label.

    Metrics without labels have a row even if 0. `shown` is `exact`, rounded up to a multiple of 8 where upstream
    rounds. Upstream counts events of proxies and clients, but addresses (here: parties) only of proxies.
    """
    counted = facts.transform(_event_lines).unionByName(facts.transform(_party_lines))
    counted = counted.unionByName(days.transform(_zero_lines))
    totals = counted.groupBy("day", "metric", "label").agg(F.sum("exact").alias("exact"))
    report = totals.unionByName(facts.transform(_time_to_answer))
    return report.select("day", "metric", "label", "exact", _shown())


def _event_lines(facts: DataFrame) -> DataFrame:
    lines = F.array_compact(F.array(*_proxy_poll_lines(), *_client_poll_lines()))
    alike = facts.groupBy("day", *ALIKE).agg(F.count("*").alias("events"))
    exploded = alike.select("day", "events", F.explode(lines).alias("line"))
    return exploded.select("day", "line.*", F.col("events").alias("exact"))


def _proxy_poll_lines() -> list[Column]:
    is_poll = F.col("kind") == "proxy_poll"
    has_pattern = F.col("relay_pattern").eqNullSafe("with")
    return [
        _line("snowflake-idle-count", when=is_poll & (F.col("outcome") == "idle")),
        _line("snowflake-proxy-poll-with-relay-url-count", when=is_poll & has_pattern),
        _line("snowflake-proxy-poll-without-relay-url-count", when=is_poll & ~has_pattern),
        _line("snowflake-proxy-rejected-for-relay-url-count", when=is_poll & (F.col("outcome") == "relay_rejected")),
    ]


def _client_poll_lines() -> list[Column]:
    """Count each client's poll once, by its outcome.

    A poll that timed out without a proxy counts as denied: upstream does not park offers and denies it at once.
    """
    is_timeout = F.col("kind") == "timeout"
    is_refused = (F.col("kind") == "offer") & F.col("outcome").isin("denied", "stale")
    is_denied = is_refused | (is_timeout & F.col("reason").eqNullSafe("no proxy"))
    is_silent = is_timeout & ~F.col("reason").eqNullSafe("no proxy")
    is_match = F.col("kind") == "answer"
    is_unrestricted = F.col("nat") == "unrestricted"
    return [
        _line("client-denied-count", when=is_denied),
        _line("client-restricted-denied-count", when=is_denied & ~is_unrestricted),
        _line("client-unrestricted-denied-count", when=is_denied & is_unrestricted),
        _line("client-snowflake-match-count", when=is_match),
        _line("client-snowflake-timeout-count", when=is_silent),
        *_method_lines(is_denied | is_match | is_silent),
    ]


def _method_lines(is_counted: Column) -> Iterator[Column]:
    for method in ("http", "ampcache", "sqs"):
        is_by_method = is_counted & (F.col("source") == method)
        yield _line(f"client-{method}-count", when=is_by_method)
        yield _line(f"client-{method}-ips", when=is_by_method, label=F.col("country"))


def _line(metric: str, *, when: Column, label: Column | None = None) -> Column:
    text = _no_label() if label is None else label
    return F.when(when, F.struct(F.lit(metric).alias("metric"), text.alias("label")))


def _no_label() -> Column:
    return F.lit(None).cast("string")


def _seen_parties(facts: DataFrame) -> DataFrame:
    # Upstream checks the relay pattern before it records the address, so refused proxies do not count.
    is_accepted_poll = (F.col("kind") == "proxy_poll") & (F.col("outcome") != "relay_rejected")
    seen = facts.where(is_accepted_poll & F.col("party").isNotNull())
    return seen.select("day", "occurred_at", "event_id", "party", "nat", "proxy_type", "country")


def _party_lines(facts: DataFrame) -> DataFrame:
    """Count a party once a day in the total, for each of its NAT types and proxy types, and in one country.

    Its country is that of its first poll of the day.
    """
    first_seen = F.min_by("country", F.struct("occurred_at", "event_id"))
    parties = facts.transform(_seen_parties).groupBy("day", "party")
    found = parties.agg(
        F.collect_set("nat").alias("nats"), F.collect_set("proxy_type").alias("types"), first_seen.alias("country")
    )
    known_types = F.array_intersect("types", F.array(*map(F.lit, PROXY_TYPES)))
    named = [
        F.array(_party_line(F.lit("total"))),
        F.transform("nats", lambda nat: _party_line(F.concat(F.lit("nat-"), nat))),
        F.transform(known_types, _party_line),
        F.array(F.struct(F.lit("snowflake-ips").alias("metric"), F.col("country").alias("label"))),
    ]
    lines = found.select("day", F.explode(F.concat(*named)).alias("line"))
    return lines.select("day", "line.*", F.lit(1).cast("long").alias("exact"))


def _party_line(name: Column) -> Column:
    return F.struct(F.concat(F.lit("snowflake-ips-"), name).alias("metric"), _no_label().alias("label"))


def _zero_lines(days: DataFrame) -> DataFrame:
    metrics = F.explode(F.array(*map(F.lit, COUNT_LINES)))
    zeros = days.select("day", metrics.alias("metric"))
    return zeros.select("day", "metric", _no_label().alias("label"), F.lit(0).cast("long").alias("exact"))


def _time_to_answer(facts: DataFrame) -> DataFrame:
    """Return exact percentiles, not approximate ones: two runs agree, and there are few distinct latencies."""
    is_timed_answer = (F.col("kind") == "answer") & F.col("latency_ms").isNotNull()
    answers = (
        facts.where(is_timed_answer).groupBy("day", *GROUPS.values(), "latency_ms").agg(F.count("*").alias("number"))
    )
    groups = [
        F.struct(F.lit(f"by-{group}-").alias("group"), F.col(name).alias("label")) for group, name in GROUPS.items()
    ]
    all_answers = F.struct(F.lit("").alias("group"), _no_label().alias("label"))
    grouped = answers.select("day", F.explode(F.array(all_answers, *groups)).alias("of"), "latency_ms", "number")
    percentiles = F.percentile("latency_ms", list(PERCENTILES.values()), F.col("number")).alias("percentiles")
    rows_with_times = grouped.groupBy("day", "of.group", "of.label").agg(percentiles)
    rows = rows_with_times.select("day", "group", "label", F.posexplode("percentiles").alias("position", "exact"))
    name = F.get(F.array(*map(F.lit, PERCENTILES)), F.col("position"))
    metric = F.concat(F.lit("time-to-answer-ms-"), "group", name).alias("metric")
    return rows.select("day", metric, "label", rounded(F.col("exact")).alias("exact"))


def _shown() -> Column:
    """Round up the counts of clients and polls, as upstream does, but not the counts of proxies."""
    is_rounded = F.col("metric").startswith("client-") | F.col("metric").endswith("-count")
    up_to_8 = F.col("exact") + 7 - (F.col("exact") + 7) % 8
    return F.when(is_rounded, up_to_8).otherwise(F.col("exact")).alias("shown")
