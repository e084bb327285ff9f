"""An exported log as the source of a replay: the same messages in the same order in every run."""

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
from signalbox.exchange.model.topics import RESERVED_WORD, RoutingKey
from signalbox.history.replay_run import SourceMessage
from signalbox.history.replay_state import InvalidReplay, ReplayProgress
from signalbox.messages import Attribute, MessageId
from signalbox.sarracenia.rights.names import ExchangeName

MAX_LISTED_TOPICS = 20


@dataclass(frozen=True, slots=True)
class LogSelection:
    """A selection of a log's messages: an exchange, a topic pattern, and times from `start` to before `end`.

    `for_all_sessions` excludes messages to selected sessions, which an exchange would deliver to all, and those with
    topics of sessions, which an exchange refuses.
    """

    exchange: ExchangeName
    topics: Pattern
    start: datetime | None = None
    end: datetime | None = None
    for_all_sessions: bool = False


@dataclass(frozen=True, slots=True)
class ReplayVolume:
    """The number and size of the messages to replay, by topic, and of the excluded messages by reason."""

    messages: int
    size_bytes: int
    topics: dict[str, int]
    left_out: dict[str, int]


def newest_snapshot(lake: Lake) -> str:
    """Return the id of the current snapshot of the table `logs`; empty while the table has no rows."""
    if not lake.spark.catalog.tableExists(lake.name(LOGS.name)):
        return ""
    newest = lake.spark.table(f"{lake.name(LOGS.name)}.refs").where("name = 'main'").first()
    return str(newest.snapshot_id) if newest is not None else ""


def replay_volume(lake: Lake, snapshot: str, selection: LogSelection) -> ReplayVolume:
    """Count the messages to replay."""
    if not snapshot:
        return ReplayVolume(0, 0, {}, {})
    found = _selected_rows(lake, snapshot, selection).withColumn("left_out", _exclusion_reason(selection)).persist()
    left_out = found.where("left_out IS NOT NULL").groupBy("left_out").count().collect()
    sent = found.where("left_out IS NULL")
    total = sent.agg(F.count("*").alias("messages"), F.sum(F.octet_length("body")).alias("size_bytes")).first()
    topics = sent.groupBy("topic").count().orderBy(F.desc("count"), "topic").limit(MAX_LISTED_TOPICS).collect()
    found.unpersist()
    return ReplayVolume(
        total.messages,  # type: ignore[union-attr]  # an aggregate has one row
        total.size_bytes or 0,  # type: ignore[union-attr]  # the same
        {row["topic"]: row["count"] for row in topics},
        {row["left_out"]: row["count"] for row in left_out},
    )


@dataclass(slots=True)
class LogSource:
    """`ReplaySource` of one snapshot of the table `logs`."""

    lake: Lake
    snapshot: str
    selection: LogSelection
    position: int
    _rows: Iterator[Row] | None = field(default=None, init=False)

    @property
    def is_repeatable(self) -> bool:
        """True: a snapshot never changes."""
        return True

    def take(self, count: int, progress: ReplayProgress) -> Sequence[SourceMessage[OriginalMessage]]:  # noqa: ARG002 - used by queues
        """Return the next messages in order of publication."""
        if self._rows is None:
            self._rows = islice(self._ordered(), self.position, None)
        return [
            SourceMessage(original.origin, original)
            for row in islice(self._rows, count)
            for original in (_original(row),)
        ]

    def discard(self, origins: Collection[str]) -> None:
        """Do nothing: a replay does not change the log."""

    def _ordered(self) -> Iterator[Row]:
        if not self.snapshot:
            return iter(())
        found = _selected_rows(self.lake, self.snapshot, self.selection).where(
            _exclusion_reason(self.selection).isNull()
        )
        ordered = found.orderBy("occurred_at", "topic", "sequence")
        chosen = ordered.select("*", F.unix_millis("occurred_at").alias("at_ms"))
        return chosen.toLocalIterator(prefetchPartitions=True)


def _selected_rows(lake: Lake, snapshot: str, selection: LogSelection) -> DataFrame:
    name = lake.name(LOGS.name)
    if lake.spark.table(f"{name}.snapshots").where(F.col("snapshot_id") == F.lit(int(snapshot))).isEmpty():
        raise InvalidReplay(f"snapshot {snapshot} of the logs has expired: start a new replay")
    rows = lake.spark.read.option("snapshot-id", snapshot).table(name).where(F.col("exchange") == selection.exchange)
    if selection.start is not None:
        rows = rows.where(F.col("occurred_at") >= F.lit(selection.start))
    if selection.end is not None:
        rows = rows.where(F.col("occurred_at") < F.lit(selection.end))
    if str(selection.topics) == "#":
        return rows
    # The router's matcher is applied to the topics, which are far fewer than the messages.
    matcher: BindingTrie[bool] = BindingTrie()
    matcher.add(selection.topics, True)  # noqa: FBT003 - the value of a match
    named = (row.topic for row in rows.select("topic").distinct().toLocalIterator())
    topics = [(topic,) for topic in named if matcher.matching(RoutingKey(topic))]
    return rows.join(F.broadcast(lake.spark.createDataFrame(topics, "topic string")), on="topic", how="left_semi")


def _exclusion_reason(selection: LogSelection) -> Column:
    reason = F.when(F.col("body").isNull(), F.lit("too large for the log"))
    if selection.for_all_sessions:
        reason = reason.when(F.col("audience").isNotNull(), F.lit("for some sessions only"))
        # An exchange accepts these from sessions only.
        is_reserved = F.substring_index("topic", ".", 1) == F.lit(RESERVED_WORD)
        reason = reason.when(is_reserved, F.lit("of sessions' own events"))
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
