"""Queries of past messages for questions about bindings, grants and splits, with Athena.

The SQL is common to Athena and to the emulator's engine, DuckDB. It reads `events_raw`, which has each event about a
minute after it occurred, and drops the copies of retries itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from signalbox.aws.history.athena import Athena, quoted
from signalbox.history.what_if.past_messages import MAXIMUM_ROWS, PIECE_BYTES, PastMessages, past_messages
from signalbox.history.what_if.past_splits import MAXIMUM_SPLIT_ROWS, PastSplits, past_splits
from signalbox.history.what_if.window import PastWindow

# As in `signalbox.exchange.matching.regexes.framed`.
FRAMED = "'>' || CASE WHEN topic = '' THEN '' ELSE topic || '.' END || '<'"
SUMS = "count(*) AS messages, sum(bytes) AS bytes, sum(pieces) AS pieces, max(bytes) AS largest"
NEW = "sum(new) AS new_messages, sum(new * bytes) AS new_bytes, sum(new * pieces) AS new_pieces"
TIMES = "min(moment) AS first_at, max(moment) AS last_at"
COLUMNS = (
    "section, bucket, topic, publisher, messages, bytes, pieces, largest, new_messages, new_bytes, new_pieces, "
    "first_at, last_at, number"
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The messages of an exchange whose framed topics have a match of `regex`.

    Those that `queue` got, or whose topics match one of `present`, are not new. With `by_publisher`, the topics are
    counted for each publisher. `is_realm` also counts the sessions that joined.
    """

    exchange: str
    regex: str
    queue: str | None = None
    present: Sequence[str] = ()
    by_publisher: bool = False
    is_realm: bool = False


@dataclass(frozen=True, slots=True)
class AthenaPastMessages:
    """The past messages of exchanges and split queues, from the lake's table of raw events."""

    athena: Athena
    table: str

    def matching(self, selection: Selection, window: PastWindow) -> PastMessages:
        """Return the messages of a selection. Raises `QueryFailed`, `QueryTooSlow` and `QueryImpossible`."""
        return past_messages(self.athena.rows(messages_query(selection, window, table=self.table)), window)

    def splits(self, window: PastWindow) -> PastSplits:
        """Return the messages of all split queues. Raises like `matching`."""
        return past_splits(self.athena.rows(splits_query(window, table=self.table)), window)


def messages_query(selection: Selection, window: PastWindow, *, table: str) -> str:
    """Return the query that `past_messages` reads."""
    topic = "(topic, publisher)" if selection.by_publisher else "(topic)"
    # A message is one row, however many copies it had; its size is that of its smallest copy.
    return (
        f"WITH found AS (SELECT message_id, topic, coalesce(size_bytes, 0) AS bytes, {_label('publisher')}, "  # noqa: S608 - all texts are quoted
        f"CAST(occurred_at AS varchar) AS moment, CASE WHEN {_is_present(selection)} THEN 0 ELSE 1 END AS new "
        f"FROM {_events(table, window, capability='exchange')} "
        f"WHERE kind IN ('routed', 'unrouted', 'logged', 'dead_letter') AND source = {quoted(selection.exchange)} "
        f"AND {_matches(selection.regex)}), "
        "messages AS (SELECT message_id, max(topic) AS topic, max(publisher) AS publisher, min(bytes) AS bytes, "
        "min(moment) AS moment, min(new) AS new FROM found GROUP BY message_id), "
        f"sized AS (SELECT *, substr(moment, 1, {window.bucket.characters}) AS bucket, "
        f"CAST(greatest(1, ceil(bytes / {PIECE_BYTES}.0)) AS bigint) AS pieces FROM messages), "
        "counted AS (SELECT CASE WHEN grouping(bucket) = 0 THEN 'bucket' WHEN grouping(topic) = 0 THEN 'topic' "
        "WHEN grouping(publisher) = 0 THEN 'publisher' ELSE 'total' END AS section, bucket, topic, publisher, "
        f"{SUMS}, {NEW}, {TIMES} FROM sized GROUP BY GROUPING SETS ((), (bucket), {topic}, (publisher))), "
        "ranked AS (SELECT *, count(*) OVER (PARTITION BY section) AS number, row_number() OVER "
        "(PARTITION BY section ORDER BY messages DESC, topic, publisher) AS place FROM counted) "
        f"SELECT {COLUMNS}, place FROM ranked WHERE place <= {MAXIMUM_ROWS}"
        f"{_joined(selection, window, table) if selection.is_realm else ''} ORDER BY section, place"
    )


def splits_query(window: PastWindow, *, table: str) -> str:
    """Return the query that `past_splits` reads."""
    labels = ("target", "session", "owner", "verdict")
    return (
        "WITH facts AS (SELECT event_id, max(source) AS source, max(kind) AS kind, max(outcome) AS outcome, "  # noqa: S608 - all texts are quoted
        f"max(coalesce(size_bytes, 0)) AS bytes, min(CAST(occurred_at AS varchar)) AS moment, "
        f"{', '.join(f'max({name}) AS {name}' for name in labels)} "
        f"FROM (SELECT *, {', '.join(map(_label, labels))} FROM {_events(table, window, capability='splitting')}) "
        "AS labelled WHERE kind IN ('routed', 'returned', 'dead_letter') GROUP BY event_id), "
        f"stepped AS (SELECT *, substr(moment, 1, {window.bucket.characters}) AS bucket FROM facts), "
        f"counted AS (SELECT bucket, source, kind, outcome, {', '.join(labels)}, count(*) AS messages, "
        "sum(bytes) AS bytes, max(bytes) AS largest FROM stepped "
        f"GROUP BY bucket, source, kind, outcome, {', '.join(labels)}) "
        "SELECT *, count(*) OVER () AS number FROM counted "
        f"ORDER BY messages DESC, bucket, source LIMIT {MAXIMUM_SPLIT_ROWS}"
    )


def _joined(selection: Selection, window: PastWindow, table: str) -> str:
    """Return the part of the query that counts the sessions of each user who joined a realm."""
    absent = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for kind, name in _COLUMNS_OF_MESSAGES)
    return (
        " UNION ALL SELECT 'session' AS section, CAST(NULL AS varchar) AS bucket, CAST(NULL AS varchar) AS topic, "  # noqa: S608 - all texts are quoted
        f"publisher, count(DISTINCT event_id) AS messages, {absent}, 0 AS number, 1 AS place "
        f"FROM (SELECT event_id, kind, outcome, source, {_label('user', 'publisher')} "
        f"FROM {_events(table, window, capability='live')}) AS sessions "
        f"WHERE kind = 'session' AND outcome = 'started' AND source = {quoted(selection.exchange)} GROUP BY publisher"
    )


_COLUMNS_OF_MESSAGES = (
    *(("bigint", name) for name in ("bytes", "pieces", "largest", "new_messages", "new_bytes", "new_pieces")),
    ("varchar", "first_at"),
    ("varchar", "last_at"),
)


def _events(table: str, window: PastWindow, *, capability: str) -> str:
    """Return the events of a window with `labels` as a map and the frame of the topic."""
    # Partitions are by arrival, which is never before the event. Without files, the emulator reads maps as text.
    return (
        "(SELECT event_id, occurred_at, kind, outcome, message_id, topic, source, destination, size_bytes, "  # noqa: S608 - all texts are quoted
        f"CAST(labels AS map(varchar, varchar)) AS labels, {FRAMED} AS framed FROM {table} "
        f"WHERE dt >= {quoted(window.start.date().isoformat())} AND occurred_at >= {_timestamp(window.start)} "
        f"AND occurred_at < {_timestamp(window.end)} AND capability = {quoted(capability)}) AS events"
    )


def _is_present(selection: Selection) -> str:
    """Return the condition for a copy that the queue got, or for a topic that its present bindings match."""
    got = [] if selection.queue is None else [f"(outcome = 'delivered' AND destination = {quoted(selection.queue)})"]
    bound = [_matches("|".join(selection.present))] if selection.present else []
    return " OR ".join([*got, *bound]) or "1 = 0"


def _matches(regex: str) -> str:
    # Null without a match in Athena, empty in DuckDB.
    return f"regexp_extract(framed, {quoted(regex)}) <> ''"


def _label(name: str, column: str | None = None) -> str:
    # A missing key of a map is an error in Athena.
    return f"CASE WHEN contains(map_keys(labels), {quoted(name)}) THEN labels[{quoted(name)}] END AS {column or name}"


def _timestamp(moment: datetime) -> str:
    return f"TIMESTAMP {quoted(moment.replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds'))}"
