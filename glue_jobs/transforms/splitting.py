"""The daily splitting report: messages by queue and session, times, returns, dead letters and sessions."""

from datetime import date

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from glue_jobs.transforms.events import rounded, within_days

# The totals that each day has, even if 0.
TOTALS = (
    *(("routed-total", outcome) for outcome in ("session", "deployed", "copied")),
    *(("returned-total", outcome) for outcome in ("session", "deployed", "original")),
    ("dead_letter-total", "dead"),
    *(("session-total", outcome) for outcome in ("started", "ready", "ended")),
)
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def splitting_facts(events: DataFrame, first: date, *, last: date) -> DataFrame:
    """Return the splitting events of the days from `first` to `last`, with their labels as columns."""
    chosen = events.where(F.col("capability") == "splitting")
    return chosen.transform(within_days, first, last=last).select(
        *("day", "kind", "outcome", "reason", "latency_ms"),
        F.col("source").alias("queue"),
        F.col("labels").getItem("session").alias("session"),
    )


def splitting_report(facts: DataFrame, days: DataFrame) -> DataFrame:
    """Return the tidy report of each of `days`: one row for each metric, queue, session and label.

    `session` is the session that received or returned a message, and null for the deployed consumer. `label` is the
    outcome, or the reason of dead letters. Rows of a `-total` and of all queues have neither queue nor session.
    """
    counted = facts.transform(_totals).unionByName(days.transform(_zeros))
    totals = counted.groupBy("day", "metric", "queue", "session", "label").agg(F.sum("value").alias("value"))
    report = totals.unionByName(facts.transform(_details)).unionByName(facts.transform(_times))
    return report.select("day", "metric", "queue", "session", "label", "value")


def _totals(facts: DataFrame) -> DataFrame:
    lines = facts.select("day", F.concat("kind", F.lit("-total")).alias("metric"), F.col("outcome").alias("label"))
    counted = lines.groupBy("day", "metric", "label").agg(F.count("*").alias("value"))
    return counted.select("day", "metric", _none("queue"), _none("session"), "label", "value")


def _zeros(days: DataFrame) -> DataFrame:
    totals = [F.struct(F.lit(metric).alias("metric"), F.lit(label).alias("label")) for metric, label in TOTALS]
    zeros = days.select("day", F.explode(F.array(*totals)).alias("line"), F.lit(0).cast("long").alias("value"))
    return zeros.select("day", "line.metric", _none("queue"), _none("session"), "line.label", "value")


def _details(facts: DataFrame) -> DataFrame:
    is_of_a_message = F.col("kind") != "session"
    label = F.when(F.col("kind") == "dead_letter", F.col("reason")).otherwise(F.col("outcome")).alias("label")
    lines = facts.where(is_of_a_message).select("day", F.col("kind").alias("metric"), "queue", "session", label)
    counted = lines.groupBy("day", "metric", "queue", "session", "label").agg(F.count("*").alias("value"))
    return counted.select("day", "metric", "queue", "session", "label", "value")


def _times(facts: DataFrame) -> DataFrame:
    """Return the percentiles of the times to forward messages and to get sessions ready.

    Copies are sent with their message and do not count again.
    """
    is_routed = (F.col("kind") == "routed") & (F.col("outcome") != "copied")
    is_ready = (F.col("kind") == "session") & (F.col("outcome") == "ready")
    routed, ready = facts.where(is_routed), facts.where(is_ready)
    of_all = routed.select("day", _none("queue"), "latency_ms")
    to_route = routed.select("day", "queue", "latency_ms").unionByName(of_all)
    to_be_ready = ready.select("day", _none("queue"), "latency_ms")
    times = to_route.transform(_percentiles, metric="time-to-route-ms")
    return times.unionByName(to_be_ready.transform(_percentiles, metric="time-to-ready-ms"))


def _percentiles(latencies: DataFrame, *, metric: str) -> DataFrame:
    """Return exact percentiles, not approximate ones: two runs agree, and there are few distinct latencies."""
    percentiles = F.percentile("latency_ms", list(PERCENTILES.values())).alias("percentiles")
    rows_with_times = latencies.where(F.col("latency_ms").isNotNull()).groupBy("day", "queue").agg(percentiles)
    rows = rows_with_times.select("day", "queue", F.posexplode("percentiles").alias("position", "exact"))
    names = F.array(*map(F.lit, PERCENTILES))
    value = rounded(F.col("exact")).alias("value")
    label = F.get(names, F.col("position")).alias("label")
    return rows.select("day", F.lit(metric).alias("metric"), "queue", _none("session"), label, value)


def _none(name: str) -> Column:
    return F.lit(None).cast("string").alias(name)
