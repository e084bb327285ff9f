"""The rows of the index of events: an event for each id that it names."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from glue_jobs.transforms.events import SCHEMA

# Those of signalbox/history/ids.py; a test compares the two.
LINK_LABELS = ("client", "copy", "file", "proxy", "publication", "publications")
TIME_FORMAT = "yyyy-MM-dd HH:mm:ss.SSS"


def index_rows(events: DataFrame, *, buckets: int) -> DataFrame:
    """Return `bucket`, `id` and `event` (the document of `HistoryEvent.to_json`) for each id of each event."""
    # A generator's other columns are computed for each of its rows: the document is made before.
    documents = events.select(_ids().alias("ids"), _document().alias("event"))
    rows = documents.select(F.explode("ids").alias("id"), "event")
    return rows.select((F.crc32("id") % F.lit(buckets)).cast("int").alias("bucket"), "id", "event")


def _ids() -> Column:
    linked = F.split(F.concat_ws(",", *(F.col("labels")[name] for name in LINK_LABELS)), ",")
    # An event id that contains the message id is found by it (search_keys in signalbox/history/ids.py): most are.
    is_found = F.coalesce(F.array_contains(F.split("event_id", ":"), F.col("message_id")), F.lit(False))  # noqa: FBT003
    own = F.when(~is_found, F.col("event_id"))
    nothing = F.array(F.lit(""), F.lit(None).cast("string"))
    return F.array_except(F.concat(F.array("message_id", own), linked), nothing)  # and each once


def _document() -> Column:
    time = F.date_format("occurred_at", TIME_FORMAT).alias("occurred_at")
    return F.to_json(F.struct(*(time if name == "occurred_at" else F.col(name) for name in SCHEMA.names)))
