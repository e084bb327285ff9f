"""Exported logs: complete up to a number, each event once after repeated runs, and readable as text."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import IO, Any

import pytest
from botocore.exceptions import ClientError
from pyspark.sql import Row

from glue_jobs.export_logs import ROW_SCHEMA, last_topics, merge_rows, merge_topics, positions
from glue_jobs.shared.lake import Lake
from glue_jobs.shared.log_files import log_line, write_log_files
from glue_jobs.shared.log_reader import ROTATION, LogTables, log_row, read_topics
from glue_jobs.transforms.tables import LOG_TOPICS, LOGS
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.sequences import Head
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.export import ExportedEvent
from signalbox.live.wamp.messages import Payload, PublicationId
from signalbox.sarracenia.rights.names import ExchangeName
from tests.glue.frames import frame

pytestmark = pytest.mark.spark

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def exported(topic: str, sequence: int, *, missing: int = 0, at: datetime = NOON) -> tuple[object, ...]:
    event = LoggedEvent(PublicationId(sequence), RoutingKey(topic), at, Payload(("line",)), sequence)
    return log_row("xlog.fifo", ExportedEvent(event, missing))


def kept(lake: Lake, *rows: tuple[object, ...]) -> tuple[list[Row], list[Row]]:
    for table in (LOGS, LOG_TOPICS):
        lake.ensure(table.name)
    found = frame(lake.spark, list(rows), ROW_SCHEMA)
    merge_rows(lake, found)
    merge_topics(lake, found)
    return contents(lake)


def contents(lake: Lake) -> tuple[list[Row], list[Row]]:
    logs = lake.spark.table(lake.name("logs")).orderBy("topic", "sequence")
    topics = lake.spark.table(lake.name("log_topics")).orderBy("topic")
    columns = ("topic", "complete_to", "events", "missing")
    return logs.select("topic", "sequence", "body").collect(), topics.select(*columns).collect()


def test_a_repeated_run_keeps_each_event_once(lake):
    rows = [exported("a", 1), exported("a", 2), exported("b", 1)]

    first, again = kept(lake, *rows), kept(lake, *rows)

    assert first == again
    assert first == (
        [("a", 1, '"line"'), ("a", 2, '"line"'), ("b", 1, '"line"')],
        [("a", 2, 2, 0), ("b", 1, 1, 0)],
    )


def test_the_next_run_continues_after_the_last_number_and_counts_missing_events(lake):
    kept(lake, exported("a", 1))

    _, topics = kept(lake, exported("a", 4, missing=2), exported("a", 5))

    assert topics == [("a", 5, 3, 2)]


def test_a_run_killed_after_adding_events_is_completed_by_the_next(lake):
    kept(lake, exported("a", 1))
    lake.spark.sql(f"TRUNCATE TABLE {lake.name('log_topics')}")

    logs, topics = kept(lake, exported("a", 1), exported("a", 2))

    assert ([found.sequence for found in logs], topics) == ([1, 2], [("a", 2, 2, 0)])


def test_a_realm_that_was_declared_again_is_exported_from_its_first_event(lake):
    """Its numbers begin anew, and older events of other topics are exported by the same run."""
    kept(lake, exported("a", 1), exported("a", 2))
    before, between, after = (NOON + timedelta(hours=hours) for hours in (-1, 1, 2))

    assert positions(lake, [("xlog.fifo", "a", before)]) == [("xlog.fifo", "a", 2)]
    assert positions(lake, [("xlog.fifo", "a", between)]) == [("xlog.fifo", "a", 0)]
    logs, topics = kept(lake, exported("a", 1, at=after), exported("b", 1, at=before))

    assert [(row.topic, row.sequence) for row in logs] == [("a", 1), ("a", 1), ("a", 2), ("b", 1)]
    assert topics == [("a", 1, 3, 0), ("b", 1, 1, 0)]
    assert positions(lake, [("xlog.fifo", "a", between)]) == [("xlog.fifo", "a", 1)]


def test_a_run_reads_only_topics_with_later_numbers_and_all_exchanges_by_rotation():
    """Also while one of them has more topics than a run can read: the next run begins after the last one."""
    asked: list[str] = []
    names = {
        ExchangeName(name): [RoutingKey(f"{n:04}") for n in range(count)] for name, count in (("xa", 2500), ("xb", 1))
    }

    def every_topic(name: ExchangeName, after: RoutingKey | None) -> Iterator[RoutingKey]:
        return iter(
            [
                *(one for one in names[name] if one > (after or "")),
                *(one for one in names[name] if after and one <= after),
            ]
        )

    def events_after(_: ExchangeName, topic: RoutingKey, after: int) -> Iterator[LoggedEvent]:
        asked.append(topic)
        return iter([LoggedEvent(PublicationId(1), topic, NOON, Payload(("line",)), after + 1)])

    class Tables(LogTables):
        def log(self) -> Any:
            return SimpleNamespace(every_topic=every_topic, events_after=events_after)

        def heads(self) -> Any:
            return SimpleNamespace(read=lambda _, keys: {one: Head(sequence=int(one) % 2) for one in keys})

        def _exchanges(self, exchange: str | None) -> Any:
            return [SimpleNamespace(name=name, created_at=NOON) for name in names]

    topics = list(Tables("", "", "").topics(None, "#", {"xa": "2000"}))
    rows = list(read_topics(Tables("", "", ""), [(*one[:2], 0) for one in topics], now=NOON))

    assert topics[0] == ("xa", "2001", NOON)
    assert topics.index(("xb", "0000", NOON)) == ROTATION
    assert len(topics) == len(set(topics)) == 2501
    assert len(rows) == len(asked) == 1250


def test_a_run_begins_after_the_topic_that_was_exported_last(lake):
    kept(lake, exported("b", 1))
    kept(lake, exported("a", 1))

    assert last_topics(lake) == {"xlog.fifo": "a"}


@pytest.fixture
def summer_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The time zone of Berlin on this machine."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("summer_time")
@pytest.mark.parametrize("day", ["2026-10-25", "2026-03-29"], ids=["repeated-hour", "missing-hour"])
def test_a_repeated_run_keeps_each_event_once_while_the_clock_of_the_machine_changes(lake, day):
    first, last = (datetime.fromisoformat(f"{day} {hour}+00:00") for hour in ("00:10", "01:50"))
    rows = [exported("a", 1, at=first), exported("a", 2, at=last)]

    assert kept(lake, *rows) == kept(lake, *rows)
    assert len(contents(lake)[0]) == 2


def test_runs_at_once_keep_each_event_once_and_count_it_once(lake):
    for table in (LOGS, LOG_TOPICS):
        lake.ensure(table.name)
    read = [[exported("a", number) for number in range(1, last + 1)] for last in (2, 3, 2, 3)]
    frames = [frame(lake.spark, rows, ROW_SCHEMA) for rows in read]

    for merge in (merge_rows, merge_topics):
        with ThreadPoolExecutor(len(frames)) as threads:
            list(threads.map(lambda rows, merge=merge: merge(lake, rows), frames))

    logs, topics = contents(lake)
    assert [row.sequence for row in logs] == [1, 2, 3]
    assert topics in ([("a", 2, 2, 0)], [("a", 3, 3, 0)])
    assert kept(lake, *read[1][topics[0].complete_to :] or read[1])[1] == [("a", 3, 3, 0)]


def test_logs_are_exported_beside_columns_that_only_a_later_version_knows(lake):
    for table in (LOGS, LOG_TOPICS):
        lake.ensure(table.name)
        lake.spark.sql(f"ALTER TABLE {lake.name(table.name)} ADD COLUMN later bigint")

    assert kept(lake, exported("a", 1)) == ([("a", 1, '"line"')], [("a", 1, 1, 0)])


def as_row(**values: object) -> Row:
    return Row(**{"at": "2026-11-20T12:00:00.000Z", "sequence": 7, "omitted_bytes": None, "body": '"x"'} | values)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('"a line"', "a line"),
        ('{"a": 1}', '{"a": 1}'),
        ("no JSON", "no JSON"),
        pytest.param("[" * 2000, "[" * 2000, id="deep"),
        ('"two\\nlines"', '"two\\nlines"'),
        ("a\tb", '"a\\tb"'),
    ],
)
def test_each_event_has_one_line_of_text(body, text):
    assert log_line(as_row(body=body)) == f"2026-11-20T12:00:00.000Z\t7\t{text}"


def test_an_event_too_large_for_the_log_has_a_note_as_its_text():
    assert log_line(as_row(body=None, omitted_bytes=5)).endswith("(5 bytes, too large for the log)")


class Texts:
    """S3 with conditional writes; `meanwhile` is called once, between the look at a text and its upload."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.stored: dict[str, bytes] = {}
        self.meta, self.handlers = SimpleNamespace(events=self), list[tuple[str, Any]]()
        self.meanwhile, self.uploads = iter([meanwhile]), 0

    def register(self, name: str, handler: Any) -> None:
        self.handlers.append((name, handler))

    def head_object(self, **of: str) -> dict[str, Any]:
        text = self.stored.get(f"{of['Bucket']}/{of['Key']}")
        if text is None:
            raise ClientError({"Error": {"Code": "404"}}, "HeadObject")
        return {"ContentLength": len(text), "ETag": str(hash(text))}

    def upload_fileobj(self, file: IO[bytes], bucket: str, key: str) -> None:
        headers: dict[str, str] = {}
        self.uploads += 1
        for handler in (one for name, one in self.handlers if name == "before-call.s3.PutObject"):
            handler(params={"headers": headers}, model=None)
        next(self.meanwhile, lambda: None)()
        old = self.stored.get(f"{bucket}/{key}")
        is_same = headers == ({"If-None-Match": "*"} if old is None else {"If-Match": str(hash(old))})
        if not is_same:
            raise ClientError({"Error": {"Code": "PreconditionFailed"}}, "PutObject")
        with file:
            self.stored[f"{bucket}/{key}"] = file.read()


def write(s3: Texts, *rows: tuple[str, str]) -> None:
    write_log_files([as_row(exchange="x.fifo", topic=topic, day=day) for topic, day in rows], "s3://bucket/logs", s3=s3)  # type: ignore[arg-type]


def test_a_topic_has_a_file_for_each_day_under_a_unique_key():
    s3 = Texts()

    write(s3, ("a/b", "2026-11-20"), ("a/b", "2026-11-21"), ("", "2026-11-21"))

    text = b"2026-11-20T12:00:00.000Z\t7\tx\n"
    assert s3.stored == {
        "bucket/logs/x.fifo/topic=a%2Fb/2026-11-20.txt": text,
        "bucket/logs/x.fifo/topic=a%2Fb/2026-11-21.txt": text,
        "bucket/logs/x.fifo/topic=/2026-11-21.txt": text,
    }


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("meanwhile", [0, 1, 3])
def test_a_text_never_replaces_that_of_a_later_snapshot(before, meanwhile):
    """A run that read two events writes while others with fewer or more have written; it may be killed at any time."""
    event = ("a", "2026-11-20")
    s3 = Texts(lambda: write(s3, *[event] * meanwhile))
    write(other := Texts(), *[event] * before)
    s3.stored |= other.stored

    write(s3, *[event] * 2)

    (text,) = s3.stored.values()
    assert text.count(b"\n") == max(2, before, meanwhile if before < 2 else 0)


def test_the_text_of_the_same_events_is_not_written_again():
    s3 = Texts()

    for _ in range(2):
        write(s3, ("a", "2026-11-20"))

    assert s3.uploads == 1
