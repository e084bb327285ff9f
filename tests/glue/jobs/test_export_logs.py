"""Exported logs: complete up to a number, each event once after repeated runs, and readable as text."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import pytest
from botocore.exceptions import ClientError
from pyspark.sql import Row

from glue_jobs import export_logs
from glue_jobs.export_logs import (
    ROW_SCHEMA,
    ExportRun,
    FailedTopicsError,
    merge_rows,
    merge_topics,
    moved,
    positions,
    read_places,
)
from glue_jobs.shared import log_texts
from glue_jobs.shared.lake import Lake
from glue_jobs.shared.log_files import log_line, write_log_files
from glue_jobs.shared.log_reader import ROTATION, ListedTopic, LogTables, log_row, read_topics
from glue_jobs.shared.log_texts import Text, _exported, text_rounds, text_sizes, write_texts
from glue_jobs.transforms.tables import LOG_TOPICS, LOGS
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.sequences import Head
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.export import ExportedEvent
from signalbox.live.wamp.messages import Payload, PublicationId
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


@dataclass(frozen=True)
class Tables(LogTables):
    """Tables of exchanges, each with its owner's name as its first letter, and the lengths of their topics' events.

    A topic whose name begins with `damaged` cannot be read.
    """

    exchanges: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict)

    def log(self) -> Any:
        return SimpleNamespace(every_topic=self.every_topic, events_after=self.events_after)

    def heads(self) -> Any:
        return SimpleNamespace(
            read=lambda name, keys: {one: Head(sequence=len(self.exchanges[name][one])) for one in keys}
        )

    def _exchanges(self, exchange: str | None) -> Any:
        return [SimpleNamespace(name=name, created_at=NOON, created_by=name[0]) for name in self.exchanges]

    def every_topic(self, name: str, after: str | None) -> Iterator[str]:
        names = sorted(self.exchanges[name])
        return iter([*(one for one in names if one > (after or "")), *(one for one in names if after and one <= after)])

    def events_after(self, name: str, topic: str, after: int) -> Iterator[LoggedEvent]:
        for number, length in enumerate(self.exchanges[name][topic], 1):
            if number > after:
                if topic.startswith("damaged"):
                    raise ValueError("damaged")
                yield LoggedEvent(PublicationId(number), RoutingKey(topic), NOON, Payload(("x" * length,)), number)


def tables(size: int = 1 << 30, **exchanges: Mapping[str, Sequence[int]]) -> Tables:
    return Tables("live", "exchanges", "eu-central-1", size, exchanges)


def read(found: Tables, until: float = inf) -> list[tuple[object, ...]]:
    """Return the topic, the number and `unread` of each row."""
    places = [(exchange, topic, 0) for exchange, topics in found.exchanges.items() for topic in topics]
    return [(row[1], row[2], row[-1]) for row in read_topics(found, places, now=NOON, until=until)]


def test_a_run_lists_the_topics_of_all_owners_by_rotation_after_the_places():
    """Also while one owner has many topics in many exchanges; those that have waited longest are first."""
    many: dict[str, list[int]] = {f"{number:04}": [] for number in range(2500)}
    found = tables(alog=many, aother=many, blog={"one": []}, clog={"one": []})

    topics = list(found.topics(None, "#", {"blog": "one", "aother": "2400", "alog": "2000"}))

    assert topics[:3] == [("clog", "one", NOON), ("blog", "one", NOON), ("aother", "2401", NOON)]
    assert len({one[0] for one in topics[: ROTATION + 2]}) == 3
    assert topics[ROTATION + 2] == ("alog", "2001", NOON)
    assert len(topics) == len(set(topics)) == 5002


def test_a_run_reads_only_topics_with_later_numbers_the_fewest_first():
    assert read(tables(x={"idle": [], "many": [1, 1], "one": [1]})) == [
        ("one", 1, None),
        ("many", 1, None),
        ("many", 2, None),
    ]


def test_a_task_ends_by_size_and_by_time_and_names_the_other_topics():
    found = tables(150_000, x={"large": [100_000] * 3, "small": [1]})

    assert read(found) == [
        ("small", 1, None),
        ("large", 1, None),
        ("large", 2, None),
        ("large", None, ""),
    ]
    assert read(found, until=time.time()) == [("large", None, ""), ("small", None, "")]


def test_a_topic_that_cannot_be_read_does_not_end_the_read_of_others():
    found = tables(x={"damaged": [1], "other": [1]})

    assert read(found) == [("damaged", None, "ValueError('damaged')"), ("other", 1, None)]


@pytest.fixture
def run(lake: Lake, tmp_path: Path) -> Callable[[Tables], ExportRun]:
    """A function that returns a run over tables; its lake's tables are there."""
    for table in (LOGS, LOG_TOPICS):
        lake.ensure(table.name)
    return lambda found: ExportRun(lake, found, f"{tmp_path}")


def test_a_run_exports_what_a_part_leaves_and_all_topics_beside_those_that_fail(lake, run, monkeypatch):
    """And it stores its places, also those of exchanges without news."""
    written: list[tuple[str, ...]] = []

    def write_texts(_: Lake, texts: Sequence[Text], *__: object, **___: object) -> Mapping[tuple[str, str], str]:
        written.extend(text[:2] for text in texts)
        return {text[:2]: "no room" for text in texts if text[1] == "unwritten"}

    monkeypatch.setattr(export_logs, "write_texts", write_texts)
    found = tables(1, a={"damaged": [1], "long": [1, 1], "unwritten": [1]}, b={"idle": [], "later": []})

    with pytest.raises(FailedTopicsError, match=r"2 topics, such as .*damaged.*unwritten"):
        run(found).export(None, "#")

    logs, topics = contents(lake)
    assert [row[:2] for row in logs] == [("long", 1), ("long", 2), ("unwritten", 1)]
    assert topics == [("long", 2, 2, 0)]
    assert written == [("a", "long"), ("a", "unwritten"), ("a", "long")]
    assert read_places(lake, run(found).path) == {"a": "long", "b": "later"}


def test_a_part_that_fails_is_exported_by_halves(lake, run, monkeypatch):
    exported_parts: list[list[str]] = []

    def export_at_once(_: ExportRun, part: Sequence[ListedTopic]) -> Sequence[ListedTopic]:
        if any(topic == "c" for _, topic, _ in part):
            raise ValueError("no such time")
        exported_parts.append([topic for _, topic, _ in part])
        return []

    monkeypatch.setattr(ExportRun, "_export_at_once", export_at_once)

    with pytest.raises(FailedTopicsError, match=r"1 topics, such as .*'c'.*no such time"):
        run(tables(x={"a": [1], "b": [1], "c": [1], "d": [1]})).export(None, "#")

    assert exported_parts == [["a", "b"], ["d"]]
    assert read_places(lake, run(tables()).path) == {"x": "d"}


def test_texts_are_written_in_rounds_of_whole_topics_the_smallest_first(monkeypatch):
    monkeypatch.setattr(log_texts, "SIZE_AT_ONCE", 10)
    first, second = date(2026, 11, 20), date(2026, 11, 21)
    texts = [("x", "a", first, 9), ("x", "b", first, 2), ("x", "b", second, 2), ("x", "c", first, 2 << 30)]
    texts += [("x", "d", first, 11), ("x", "e", first, 5)]

    rounds = [[(topic, day) for _, topic, day, _ in some] for some in text_rounds(texts)]

    assert rounds == [[("c", first), ("b", first), ("b", second), ("e", first)], [("a", first)], [("d", first)]]


def test_the_text_of_a_day_has_all_its_events_and_a_too_large_one_is_not_written(lake, monkeypatch):
    kept(lake, exported("a", 1), exported("b", 1), exported("b", 2), exported("c", 1))
    new = frame(lake.spark, [exported("a", 1), exported("b", 2)], ROW_SCHEMA)

    texts = text_sizes(lake, new)
    read_rows: list[Row] = _exported(lake, [text[:3] for text in texts]).collect()

    assert texts == [("xlog.fifo", "a", NOON.date(), 56), ("xlog.fifo", "b", NOON.date(), 112)]
    assert sorted((row.topic, row.sequence) for row in read_rows) == [("a", 1), ("b", 1), ("b", 2)]
    monkeypatch.setattr(log_texts, "MAXIMUM_SIZE", 1)
    assert write_texts(lake, texts, "s3://bucket/logs", region="eu-central-1") == {}


def test_places_have_the_exchanges_that_waited_longest_first():
    places = moved({"xa": "1", "xb": "2"}, [("xa", "3", NOON), ("xa", "4", NOON), ("xc", "1", NOON)])

    assert [*places.items()] == [("xb", "2"), ("xa", "4"), ("xc", "1")]


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
    found = [as_row(exchange="x.fifo", topic=topic, day=day) for topic, day in rows]
    assert [*write_log_files(found, "s3://bucket/logs", s3=s3)] == []  # type: ignore[arg-type]


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


def test_a_text_that_cannot_be_written_does_not_end_the_writing_of_others():
    s3 = Texts()
    rows = [as_row(exchange="x.fifo", topic=topic, day="2026-11-20") for topic in ("\ud800", "b")]

    failed = [*write_log_files(rows, "s3://bucket/logs", s3=s3)]  # type: ignore[arg-type]

    assert [one[:2] for one in failed] == [("x.fifo", "\ud800")]
    assert [*s3.stored] == ["bucket/logs/x.fifo/topic=b/2026-11-20.txt"]
