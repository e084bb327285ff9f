"""The texts of the days with new events: rewritten from the table `logs`, so that texts and table agree."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby

import boto3
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from glue_jobs.shared.lake import Lake
from glue_jobs.shared.log_files import write_log_files
from glue_jobs.transforms.tables import LOGS

MAXIMUM_SIZE = 1 << 30  # a larger text is not written again
SIZE_AT_ONCE, TEXTS_AT_ONCE = 8 << 30, 10_000  # of the texts that are written together
LINE_BYTES = 50  # of an event without its body
TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
KEYS = ("exchange", "topic", "day")

Text = tuple[str, str, date, int]
"""The exchange, topic and day of a text, and about how many bytes it has."""


def text_sizes(lake: Lake, rows: DataFrame) -> Sequence[Text]:
    """Return the texts of the days of new rows, sorted."""
    days = [tuple(row) for row in rows.select("exchange", "topic", _day()).distinct().collect()]
    size = F.sum(LINE_BYTES + F.coalesce(F.octet_length("body"), F.lit(0))).alias("size")
    return sorted(tuple(row) for row in _exported(lake, days).groupBy(*KEYS).agg(size).collect())


def text_rounds(texts: Sequence[Text]) -> Iterator[Sequence[Text]]:
    """Yield the texts to write in one round: smaller texts first, and all texts of a topic in one round."""
    topics = [[*found] for _, found in groupby(texts, key=lambda text: text[:2])]
    sizes = sorted((sum(text[3] for text in found if text[3] <= MAXIMUM_SIZE), found) for found in topics)
    some, total = list[Text](), 0
    for size, found in sizes:
        if some and (total + size > SIZE_AT_ONCE or len(some) + len(found) > TEXTS_AT_ONCE):
            yield some
            some, total = [], 0
        some += found
        total += size
    yield some


def write_texts(lake: Lake, texts: Sequence[Text], path: str, *, region: str) -> Mapping[tuple[str, str], str]:
    """Rewrite texts that are not too large, and return the errors of those that cannot be written, by topic.

    Of several runs, the last to add events to a day reads all of them, and its text is the longest.
    """
    for text in texts:
        if text[3] > MAXIMUM_SIZE:
            print(f"export_logs: the text of topic {text[1]!r} of {text[0]} on {text[2]} is too large")
    days = [text[:3] for text in texts if text[3] <= MAXIMUM_SIZE]
    if not days:
        return {}
    ordered = _exported(lake, days).repartition(*KEYS).sortWithinPartitions(*KEYS, "sequence")
    failed = ordered.rdd.mapPartitions(lambda part: _write_files(part, path, region=region)).collect()
    return {(exchange, topic): error for exchange, topic, error in failed}


def _exported(lake: Lake, days: Sequence[tuple[str, str, date]]) -> DataFrame:
    """Return the rows of the table on days of topics."""
    # Formatted by Spark, because collected times are in the machine's time zone.
    at = F.date_format("occurred_at", TIME_FORMAT).alias("at")
    first, last = min(day for *_, day in days), max(day for *_, day in days)
    within = (F.col("occurred_at") >= F.lit(first)) & (F.col("occurred_at") < F.lit(last + timedelta(days=1)))
    of_exchanges = F.col("exchange").isin(*{exchange for exchange, *_ in days})
    wanted = lake.spark.createDataFrame([*days], "exchange string, topic string, day date")
    rows = lake.spark.table(lake.name(LOGS.name)).where(within & of_exchanges).select("*", _day(), at)
    return rows.join(F.broadcast(wanted), on=[*KEYS], how="left_semi")


def _day() -> Column:
    return F.to_date("occurred_at").alias("day")


def _write_files(part: Iterable[Row], path: str, *, region: str) -> Iterator[tuple[str, str, str]]:
    return write_log_files(part, path, s3=boto3.client("s3", region_name=region))
