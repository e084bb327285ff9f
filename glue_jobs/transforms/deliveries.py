"""Deliveries of every capability: delivery times, retries, and dead letters by reason."""

from datetime import date
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from glue_jobs.transforms.events import rounded, within_days
from glue_jobs.transforms.sections import in_sections, ranked, section

PERCENTILES = (0.5, 0.95, 0.99)
TIMES = ("p50_ms", "p95_ms", "p99_ms", "max_ms")
COUNTS = ("delivered", "again", "retried", "dead", "bytes")
NUMBERS = (*COUNTS, *TIMES)
KEYS = ("day", "hour", "capability", "source", "destination", "reason")


def delivery_facts(events: DataFrame, first: date, *, last: date) -> DataFrame:
    """Roll up the deliveries, retries and dead letters of the days from `first` to `last`, with the `number` of each.

    Equal latencies are one row, so that percentiles sort few rows. `reason` is null except for dead letters.
    """
    was_delivered = (F.col("kind") == "routed") & (F.col("outcome") != "retried")
    # Batches to connections; a batch dropped because its client has gone is no dead letter.
    was_posted, is_stuck = ((F.col("kind") == "delivered") & (F.col("outcome") == end) for end in ("posted", "failed"))
    state = (
        F.when(was_delivered | (F.col("kind") == "answer") | was_posted, F.lit("delivered"))
        .when((F.col("kind") == "routed") | is_stuck, F.lit("retried"))
        .when(F.col("kind") == "dead_letter", F.lit("dead"))
    )
    own = events.withColumn("state", state).where(F.col("state").isNotNull()).transform(within_days, first, last=last)
    facts = own.select(
        "day",
        F.date_trunc("hour", "occurred_at").alias("hour"),
        "capability",
        "source",
        "destination",
        F.when(F.col("state") == "dead", F.col("reason")).alias("reason"),
        "state",
        F.coalesce(F.col("attempt") > 1, F.lit(col=False)).alias("is_again"),
        F.when(F.col("state") == "delivered", F.col("latency_ms")).alias("latency_ms"),
        "size_bytes",
    )
    rolled_up = facts.groupBy(*KEYS, "state", "is_again", "latency_ms").agg(
        F.count("*").alias("number"), F.coalesce(F.sum("size_bytes"), F.lit(0)).alias("bytes")
    )
    return rolled_up.select(*KEYS, "state", "is_again", "latency_ms", "number", "bytes")


def delivery_hourly(facts: DataFrame) -> DataFrame:
    """Return one row for each hour, capability, source, destination, and reason of dead letters."""
    return facts.groupBy(*KEYS).agg(*_numbers()).select(*KEYS, *NUMBERS)


def _numbers() -> list[Column]:
    is_delivered = F.col("state") == "delivered"
    # Exact, not approximate: two runs agree, and there are few distinct latencies.
    percentiles = F.percentile("latency_ms", list(PERCENTILES), F.col("number"))
    return [
        _number_where(is_delivered).alias("delivered"),
        _number_where(is_delivered & F.col("is_again")).alias("again"),
        _number_where(F.col("state") == "retried").alias("retried"),
        _number_where(F.col("state") == "dead").alias("dead"),
        _sum_of("bytes", is_delivered).alias("bytes"),
        *(rounded(percentiles[place]).alias(name) for place, name in enumerate(TIMES[:-1])),
        F.max("latency_ms").alias("max_ms"),
    ]


def _number_where(condition: Column) -> Column:
    return _sum_of("number", condition)


def _sum_of(name: str, condition: Column) -> Column:
    return F.sum(F.when(condition, F.col(name)).otherwise(0))


def delivery_summary(facts: DataFrame) -> DataFrame:
    """Summarize each day: by capability, by hour, the busiest paths, and the most frequent reasons of dead letters.

    `section` is `capability`, `hour`, `way` (a pair of source and destination) or `reason`. `rank` counts from 1 within
    a section; paths and reasons are ranked by their number of messages. `of` is the size of the whole section.
    """
    group = partial(section, facts, among=KEYS[1:])
    sections = [
        group("capability", keys=("capability",)),
        group("hour", keys=("hour",)),
        group("way", keys=("capability", "source", "destination")),
        F.when(F.col("state") == "dead", group("reason", keys=("capability", "reason"))),
    ]
    groups = in_sections(facts, sections).groupBy("day", "section", *KEYS[1:])
    summed = groups.agg(*_numbers(), F.sum("number").alias("weight"))
    amount = F.when(F.col("section").isin("way", "reason"), F.col("weight"))
    summary = ranked(summed, amount, KEYS[1:], whole=("capability", "hour"))
    return summary.select("day", "section", "rank", "of", *KEYS[1:], *NUMBERS)
