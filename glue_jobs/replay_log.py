"""Exported logs as the source of a replay: the same messages in the same order, whenever they are asked for."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from glue_jobs.shared.lake import Lake
from glue_jobs.transforms.tables import LOGS
from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.messages.replayed_messages import UNKNOWN, OriginalMessage
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.topics import RoutingKey
from signalbox.history.replay_run import Ready
from signalbox.history.replay_state import InvalidReplay, Progress
from signalbox.messages import Attribute, MessageId
from signalbox.sarracenia.rights.names import ExchangeName

SHOWN_TOPICS = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages of a log: of an exchange, by a pattern, from a moment on and before another.

    `for_everybody` leaves out those that were for some sessions only: an exchange would bring them to all.
    """

    exchange: ExchangeName
    topics: Pattern
    start: datetime | None = None
    end: datetime | None = None
    for_everybody: bool = False


@dataclass(frozen=True, slots=True)
class Counted:
    """What there is to replay, and what is left out of it for which reason."""

    messages: int
    size_bytes: int
    topics: dict[str, int]
    left_out: dict[str, int]


def newest_snapshot(lake: Lake) -> str:
    """Return the version of the table of logs that a replay is of from now on; empty while nothing is in it."""
    if not lake.spark.catalog.tableExists(lake.name(LOGS.name)):
        return ""
    newest = lake.spark.table(f"{lake.name(LOGS.name)}.refs").where("name = 'main'").first()
    return str(newest.snapshot_id) if newest is not None else ""


def counted(lake: Lake, snapshot: str, wanted: Wanted) -> Counted:
    """Count what there is to replay."""
    if not snapshot:
        return Counted(0, 0, {}, {})
    found = _found(lake, snapshot, wanted).withColumn("left_out", _left_out(wanted)).persist()
    left_out = found.where("left_out IS NOT NULL").groupBy("left_out").count().collect()
    sent = found.where("left_out IS NULL")
    total = sent.agg(F.count("*").alias("messages"), F.sum(F.octet_length("body")).alias("size_bytes")).first()
    topics = sent.groupBy("topic").count().orderBy(F.desc("count"), "topic").limit(SHOWN_TOPICS).collect()
    found.unpersist()
    return Counted(
        total.messages,  # type: ignore[union-attr]  # there is always one
        total.size_bytes or 0,  # type: ignore[union-attr]  # the same
        {row["topic"]: row["count"] for row in topics},
        {row["left_out"]: row["count"] for row in left_out},
    )


@dataclass(slots=True)
class LogSource:
    """`Source` over one version of the table of logs."""

    lake: Lake
    snapshot: str
    wanted: Wanted
    position: int
    _rows: Iterator[Row] | None = field(default=None, init=False)

    @property
    def is_repeatable(self) -> bool:
        """Yes: a version of the table never changes."""
        return True

    def take(self, count: int, progress: Progress) -> Sequence[Ready[OriginalMessage]]:  # noqa: ARG002 - queues need it
        """Return the next messages, in the order of their publication."""
        if self._rows is None:
            self._rows = islice(self._ordered(), self.position, None)
        return [Ready(original.origin, original) for row in islice(self._rows, count) for original in (_original(row),)]

    def forget(self, origins: Collection[str]) -> None:
        """Do nothing: a log stays as it is."""

    def _ordered(self) -> Iterator[Row]:
        if not self.snapshot:
            return iter(())
        found = _found(self.lake, self.snapshot, self.wanted).where(_left_out(self.wanted).isNull())
        ordered = found.orderBy("occurred_at", "topic", "sequence")
        chosen = ordered.select("*", F.unix_millis("occurred_at").alias("at_ms"))
        return chosen.toLocalIterator(prefetchPartitions=True)


def _found(lake: Lake, snapshot: str, wanted: Wanted) -> DataFrame:
    name = lake.name(LOGS.name)
    if lake.spark.table(f"{name}.snapshots").where(F.col("snapshot_id") == F.lit(int(snapshot))).isEmpty():
        raise InvalidReplay(f"version {snapshot} of the logs is not there any more: begin a new replay")
    rows = lake.spark.read.option("snapshot-id", snapshot).table(name).where(F.col("exchange") == wanted.exchange)
    if wanted.start is not None:
        rows = rows.where(F.col("occurred_at") >= F.lit(wanted.start))
    if wanted.end is not None:
        rows = rows.where(F.col("occurred_at") < F.lit(wanted.end))
    if str(wanted.topics) == "#":
        return rows
    # Patterns are matched where routers match them: there are far fewer topics than messages.
    matcher: BindingTrie[bool] = BindingTrie()
    matcher.add(wanted.topics, True)  # noqa: FBT003 - something to find
    named = (row.topic for row in rows.select("topic").distinct().toLocalIterator())
    topics = [(topic,) for topic in named if matcher.matching(RoutingKey(topic))]
    return rows.join(F.broadcast(lake.spark.createDataFrame(topics, "topic string")), on="topic", how="left_semi")


def _left_out(wanted: Wanted) -> Column:
    reason = F.when(F.col("body").isNull(), F.lit("too large for the log"))
    if wanted.for_everybody:
        reason = reason.when(F.col("audience").isNotNull(), F.lit("for some sessions only"))
    return reason


def _original(row: Row) -> OriginalMessage:
    headers = {name: Attribute("String", text) for name, text in (row.headers or {}).items()}
    return OriginalMessage(
        f"{row.exchange} {row.topic} {row.sequence}",
        ExchangeName(row.exchange),
        MessageProperties(RoutingKey(row.topic), row.body, headers),
        MessageId(str(row.publication)),
        row.publisher or UNKNOWN,
        datetime.fromtimestamp(row.at_ms / 1000, UTC),
        row.sequence,
    )
