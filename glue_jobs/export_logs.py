"""Glue job `export_logs`: the events of live exchanges by topic, in the table `logs` and as ordered text.

Arguments (Glue 5.1 or later, with `--datalake-formats iceberg` and the catalog's settings; no bookmarks):

--database        the database of the tables: <stage>_lake
--log_path        the prefix of the text files: s3://<bucket>/logs
                  <log_path>/<exchange>/topic=<topic>/<day>.txt: a line for each event: time, number, message
--live_table      the DynamoDB table `Live`, which contains the events of live exchanges
--exchange_table  the DynamoDB table `Exchanges`
--region          the region of both
--exchange        one exchange; default: every live exchange
--topics          a binding pattern, such as `jobs.*.log`; default: every topic

A run exports the events since the last run, so the interval must be shorter than the retention of an exchange's events.
It stores parts of at most 50,000 topics, 1,000 of each owner of exchanges by rotation, and of 8 GB, read in 5 minutes.
What a part leaves, a later part exports. After 15 minutes no other part begins; the next run continues at the places
in <log_path>/places.json. A topic that cannot be read or written ends only its own export; the run then fails last.
`logs` contains each event once, also after killed runs. `log_topics` has for each topic the number up to which the
export is complete (`complete_to`), and how many of these numbers were removed before their export (`missing`).
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from glue_jobs.shared.arguments import parse_arguments
from glue_jobs.shared.files import read_text, write_text
from glue_jobs.shared.lake import Lake, spark_session, time_bounds
from glue_jobs.shared.log_reader import ListedTopic, LogTables, read_topics
from glue_jobs.shared.log_texts import text_rounds, text_sizes, write_texts
from glue_jobs.transforms.tables import LOG_TOPICS, LOGS

REQUIRED = ("database", "log_path", "live_table", "exchange_table", "region")
OPTIONAL = ("exchange", "topics")
PLACES = "places.json"
MAX_TASKS = 64
TOPICS_AT_ONCE = 50_000  # are read and stored together
SECONDS = 900  # after which no other part begins; the job has 30 minutes
READ_SECONDS, TEXT_SECONDS = 300, 1_200  # of a part, and of the run before its last texts
NAMED = 20  # of the topics that failed
ROW_SCHEMA = StructType([*LOGS.schema, StructField("missing", LongType()), StructField("unread", StringType())])


class FailedTopicsError(Exception):
    """Raised at the end of a run that has exported all topics except some."""


def main(argv: Sequence[str]) -> None:
    """Export new events, and print their number. Raises `FailedTopicsError`."""
    arguments = parse_arguments(argv, REQUIRED, optional=OPTIONAL)
    lake = Lake(spark_session("export_logs"), arguments["database"])
    tables = LogTables(arguments["live_table"], arguments["exchange_table"], arguments["region"])
    for table in (LOGS, LOG_TOPICS):
        lake.ensure(table.name)
    run = ExportRun(lake, tables, arguments["log_path"].rstrip("/"))
    run.export(arguments.get("exchange"), arguments.get("topics", "#"))


@dataclass(frozen=True, slots=True)
class ExportRun:
    """A run of the export; `failed` has the errors of topics."""

    lake: Lake
    tables: LogTables
    path: str
    began: float = field(default_factory=time.monotonic)
    failed: dict[tuple[str, str], str] = field(default_factory=dict)

    def export(self, exchange: str | None, pattern: str) -> None:
        """Export part by part, and store the places that each part has reached, also without news."""
        places = read_places(self.lake, self.path)
        topics, left = self.tables.topics(exchange, pattern, places), list[ListedTopic]()
        while part := next_part(topics, left):
            if self._is_after(SECONDS):
                print("export_logs: the next run continues with the other topics")
                break
            left += self._export(part)
            places = moved(places, part)
            write_text(self.lake.spark, f"{self.path}/{PLACES}", text=json.dumps(places))
        if self.failed:
            some = dict([*self.failed.items()][:NAMED])
            raise FailedTopicsError(f"the export failed for {len(self.failed)} topics, such as {some}")

    def _is_after(self, seconds: float) -> bool:
        return time.monotonic() - self.began >= seconds

    def _export(self, part: Sequence[ListedTopic]) -> Sequence[ListedTopic]:
        """Export topics, and return those that have more events. A part that fails is exported by halves."""
        try:
            return self._export_at_once(part)
        except Exception as error:  # noqa: BLE001 - of Spark, Iceberg or AWS
            reason = repr(error)
        if len(part) == 1 or self._is_after(SECONDS):
            self._note({one[:2]: reason for one in part})
            return []
        middle = len(part) // 2
        return [*self._export(part[:middle]), *self._export(part[middle:])]

    def _export_at_once(self, part: Sequence[ListedTopic]) -> Sequence[ListedTopic]:
        rows = _new_rows(self.lake, self.tables, part)
        unread = {(row.exchange, row.topic): row.unread for row in rows.where("unread IS NOT NULL").collect()}
        events = rows.where("unread IS NULL")
        count = events.count()
        print(f"export_logs: {count} events of {len(part)} topics")
        self._note({topic: error for topic, error in unread.items() if error})
        if count:
            merge_rows(self.lake, events)
            self._write(events)
        return [one for one in part if one[:2] in unread and one[:2] not in self.failed]

    def _write(self, events: DataFrame) -> None:
        """Write the texts, and then the numbers of their topics.

        A run that is killed before has its topics exported again, with their texts.
        """
        for texts in text_rounds(text_sizes(self.lake, events)):
            if self._is_after(TEXT_SECONDS):
                print("export_logs: a later run writes the other texts")
                return
            self._note(write_texts(self.lake, texts, self.path, region=self.tables.region))
            written = {text[:2] for text in texts} - self.failed.keys()
            if written:
                topics = self.lake.spark.createDataFrame([*written], "exchange string, topic string")
                merge_topics(self.lake, events.join(F.broadcast(topics), on=["exchange", "topic"], how="left_semi"))

    def _note(self, failed: Mapping[tuple[str, str], str]) -> None:
        for (exchange, topic), error in failed.items():
            print(f"export_logs: topic {topic!r} of {exchange} failed: {error}")
        self.failed.update(failed)


def next_part(topics: Iterator[ListedTopic], left: list[ListedTopic]) -> Sequence[ListedTopic]:
    """Return the topics of the next part; up to half of them are from `left`, and are removed from it."""
    again = left[: TOPICS_AT_ONCE // 2]
    del left[: len(again)]
    return [*again, *islice(topics, TOPICS_AT_ONCE - len(again))]


def read_places(lake: Lake, path: str) -> dict[str, str]:
    """Return the topic of each exchange after which a run begins, the exchanges that have waited longest first."""
    text = read_text(lake.spark, f"{path}/{PLACES}")
    return json.loads(text) if text else {}


def moved(places: Mapping[str, str], part: Sequence[ListedTopic]) -> dict[str, str]:
    """Return the places after a part, with its exchanges last."""
    reached = {exchange: topic for exchange, topic, _ in part}
    return {exchange: topic for exchange, topic in places.items() if exchange not in reached} | reached


def positions(lake: Lake, topics: Sequence[ListedTopic]) -> list[tuple[str, str, int]]:
    """Return the last exported number of each topic; `topics` have the time at which their exchange was declared.

    An exchange that was deleted and declared again has begun its numbers anew.
    """
    wanted = lake.spark.createDataFrame([topic[:2] for topic in topics], "exchange string, topic string")
    last_at = F.unix_millis("last_at").alias("last_at")  # collected times are in the machine's time zone
    known = lake.spark.table(lake.name(LOG_TOPICS.name)).join(F.broadcast(wanted), on=["exchange", "topic"])
    rows = known.select("exchange", "topic", "complete_to", last_at).collect()
    exported = {(row.exchange, row.topic): (row.complete_to, row.last_at) for row in rows}
    found = []
    for exchange, topic, declared_at in topics:
        number, at = exported.get((exchange, topic), (0, 0))
        found.append((exchange, topic, number if at >= declared_at.timestamp() * 1000 else 0))
    return found


def _new_rows(lake: Lake, tables: LogTables, topics: Sequence[ListedTopic]) -> DataFrame:
    """Read the events after the last exported number of each topic once: a second read might return more."""
    known, count = positions(lake, topics), min(len(topics), MAX_TASKS)
    # Large topics may be neighbours, so each task has topics from the whole part.
    tasks = lake.spark.sparkContext.parallelize([known[first::count] for first in range(count)], count)
    now, until = datetime.now(UTC), time.time() + READ_SECONDS
    found = tasks.flatMap(lambda part: read_topics(tables, part, now=now, until=until))
    return lake.spark.createDataFrame(found, ROW_SCHEMA).localCheckpoint()


def merge_rows(lake: Lake, rows: DataFrame) -> None:
    """Add the events that `logs` does not have."""
    keys = ("exchange", "topic", "sequence", "occurred_at")  # numbers begin anew in an exchange that was deleted
    same = " AND ".join(f"old.{name} = new.{name}" for name in keys)
    lake.merge(LOGS.name, rows, condition=f"{same} AND {time_bounds(rows)}")


def merge_topics(lake: Lake, rows: DataFrame) -> None:
    """Update `log_topics`, except topics that another run has exported further since this one began.

    A run that began with the first number of an exchange that was declared again has later events than the row.
    """
    lake.merge(
        LOG_TOPICS.name,
        rows.transform(topic_totals),
        condition="old.exchange = new.exchange AND old.topic = new.topic",
        update_if="old.complete_to = new.after OR (new.after = 0 AND old.last_at < new.first_at)",
        update={
            **{name: f"new.{name}" for name in ("complete_to", "last_at", "exported_at")},
            **{name: f"old.{name} + new.{name}" for name in ("events", "missing")},
        },
    )


def topic_totals(rows: DataFrame) -> DataFrame:
    """Return the rows of `log_topics` for new rows of `logs`, and `after`, the number that they continue."""
    return rows.groupBy("exchange", "topic").agg(
        F.min(F.col("sequence") - F.col("missing") - 1).alias("after"),
        F.max("sequence").alias("complete_to"),
        F.count("*").alias("events"),
        F.sum("missing").alias("missing"),
        F.min("occurred_at").alias("first_at"),
        F.max("occurred_at").alias("last_at"),
        F.current_timestamp().alias("exported_at"),
    )


if __name__ == "__main__":
    main(sys.argv)
