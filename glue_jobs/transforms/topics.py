"""Publications by topic: count, size, publishers, copies, and unrouted messages."""

from datetime import date
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from glue_jobs.transforms.events import within_days
from glue_jobs.transforms.sections import in_sections, ranked, section

# The summed columns, in order.
NUMBERS = ("publications", "copies", "retried", "dead", "dropped", "alternate", "logged", "bytes_in", "bytes_out")
KEYS = ("day", "hour", "exchange", "topic", "publisher")


def topic_facts(events: DataFrame, first: date, *, last: date) -> DataFrame:
    """Return the outcomes of messages with a topic in the days from `first` to `last`."""
    is_of_a_message = F.col("kind").isin("routed", "unrouted", "logged", "dead_letter") & F.col("topic").isNotNull()
    return (
        events.where(is_of_a_message)
        .transform(within_days, first, last=last)
        .select(
            "day",
            F.date_trunc("hour", "occurred_at").alias("hour"),
            F.col("source").alias("exchange"),
            "topic",
            F.col("labels").getItem("publisher").alias("publisher"),
            "message_id",
            "kind",
            "outcome",
            F.coalesce("size_bytes", F.lit(0)).alias("size_bytes"),
        )
    )


def topic_hourly(facts: DataFrame) -> DataFrame:
    """Return one row for each hour, exchange, topic and publisher.

    A publication counts in each hour that has an event of it, so twice if a copy was retried in a later hour. Its size
    is that of its smallest copy, since copies for some kinds of queues have additional attributes.
    """
    is_delivered = (F.col("kind") == "routed") & (F.col("outcome") == "delivered")
    publications = facts.groupBy(*KEYS, "message_id").agg(
        _number_of(is_delivered).alias("copies"),
        _number_of((F.col("kind") == "routed") & (F.col("outcome") == "retried")).alias("retried"),
        _number_of(F.col("kind") == "dead_letter").alias("dead"),
        _number_of(_is_unrouted("dropped")).alias("dropped"),
        _number_of(_is_unrouted("alternate")).alias("alternate"),
        _number_of(F.col("kind") == "logged").alias("logged"),
        F.min("size_bytes").alias("bytes_in"),
        F.sum(F.when(is_delivered, F.col("size_bytes")).otherwise(0)).alias("bytes_out"),
    )
    # Rows without a message_id would be one group, but events of a message always have one.
    hourly = publications.withColumn("publications", F.lit(1)).groupBy(*KEYS).agg(*map(_sum, NUMBERS))
    return hourly.select(*KEYS, *NUMBERS)


def _is_unrouted(outcome: str) -> Column:
    return (F.col("kind") == "unrouted") & (F.col("outcome") == outcome)


def _number_of(condition: Column) -> Column:
    return F.count(F.when(condition, 1))


def _sum(name: str) -> Column:
    return F.sum(name).cast("long").alias(name)


def topic_summary(hourly: DataFrame) -> DataFrame:
    """Summarize each day: the total, each hour, each exchange, and the top topics, publishers and unrouted topics.

    `section` is `total`, `hour`, `exchange`, `topic`, `publisher` or `unrouted`. `rank` counts from 1 within a section,
    by publications, or by unrouted messages in `unrouted`. `of` is the size of the whole section.
    """
    unrouted = F.col("dropped") + F.col("alternate")
    group = partial(section, hourly, among=KEYS[1:])
    sections = [
        group("total"),
        group("hour", keys=("hour",)),
        group("exchange", keys=("exchange",)),
        group("topic", keys=("exchange", "topic")),
        F.when(F.col("publisher").isNotNull(), group("publisher", keys=("publisher",))),
        F.when(unrouted > 0, group("unrouted", keys=("exchange", "topic"))),
    ]
    summed = in_sections(hourly, sections).groupBy("day", "section", *KEYS[1:]).agg(*map(_sum, NUMBERS))
    amount = F.when(F.col("section") == "unrouted", unrouted).when(F.col("section") != "hour", F.col("publications"))
    summary = ranked(summed, amount, KEYS[1:], whole=("total", "hour", "exchange"))
    return summary.select("day", "section", "rank", "of", *KEYS[1:], *NUMBERS)
