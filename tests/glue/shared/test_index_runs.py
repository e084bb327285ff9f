"""Runs of compaction at once, and killed ones: what readers of the index see between each two steps."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from greenlet import getcurrent, greenlet

from glue_jobs.shared import event_index
from glue_jobs.shared.arguments import TimeWindow
from glue_jobs.shared.event_index import EventIndex, whole_hours_of_days
from signalbox.history.index.days import IndexedDay

DAY, BEFORE = date(2026, 11, 20), date(2026, 11, 19)
START = datetime(2026, 11, 20, tzinfo=UTC)
WHOLE_DAY = TimeWindow(START, START + timedelta(days=1))
FIFTH, SIXTH = (TimeWindow(START + timedelta(hours=hour), START + timedelta(hours=hour + 1)) for hour in (5, 6))
RAW = {5: {(DAY, "a")}, 6: {(DAY, "b"), (BEFORE, "late")}}
ROUNDS = 14  # more than the accesses of a run to documents

Events = set[tuple[date, str]]


@dataclass(slots=True)
class Stage:
    """A table, and the files of an index; a run stops before each access to a document."""

    table: Events = field(default_factory=set)
    files: dict[str, str] = field(default_factory=dict)
    is_checked: bool = False

    def glob(self, pattern: str) -> list[str]:
        depth = pattern.count("/") + 1
        return sorted(
            path for path in {"/".join(p.split("/")[:depth]) for p in self.files} if fnmatchcase(path, pattern)
        )

    def write(self, path: str, *, text: str) -> None:
        assert path not in self.files, "an object is changed"
        self.files[path] = text
        self.is_checked = False

    def delete(self, path: str) -> None:
        for one in [one for one in self.files if one == path or one.startswith(f"{path}/")]:
            del self.files[one]
            self.is_checked = False

    def events(self, window: TimeWindow) -> Events:
        return {(day, name) for day, name in self.table if day in window.days}

    def indexed(self, day: date) -> IndexedDay:
        return IndexedDay.join(
            [IndexedDay.parse(json.loads(self.files[p])) for p in self.glob(f"index/days/{day}*.json")]
        )

    def found(self) -> Events:
        segments = [segment for day in (BEFORE, DAY) for segment in self.indexed(day).segments]
        return {(day, name) for one in segments for day, name in _names(self.files[str(one.key("x"))])}

    def check(self) -> None:
        if self.is_checked:
            return
        self.is_checked = True
        read = set[tuple[date, str]]().union(*(RAW.get(hour, set()) for hour in self.indexed(DAY).read_at))
        assert read <= self.found()


def _names(text: str) -> Iterator[tuple[date, str]]:
    for word in text.split():
        day, _, name = word.partition("/")
        yield date.fromisoformat(day), name


class FakeIndex(EventIndex):
    def _segment(self, events: Any, day: date, count: int) -> dict[str, Any]:
        folder = f"{day}/{event_index._new_name()}"
        rows = " ".join(f"{day}/{name}" for of_day, name in events if of_day == day)
        self.lake.spark.write(f"{self.path}/{folder}/bucket=0/part", text=rows)
        return {"folder": folder, "ending": "", "files": ["bucket=0/part"]}


@pytest.fixture(autouse=True)
def accesses(monkeypatch):
    def stopping(access: Callable[..., Any]) -> Callable[..., Any]:
        def run(stage: Stage, path: str, **options: str) -> Any:
            if "/days/" in path and getcurrent().parent:
                getcurrent().parent.switch()
            return access(stage, path, **options)

        return run

    monkeypatch.setattr(event_index, "glob_paths", stopping(Stage.glob))
    monkeypatch.setattr(event_index, "read_text", stopping(lambda stage, path: stage.files.get(path)))
    monkeypatch.setattr(event_index, "write_text", stopping(Stage.write))
    monkeypatch.setattr(event_index, "delete_path", stopping(Stage.delete))
    monkeypatch.setattr(event_index, "_counts", lambda events: Counter(day for day, _ in events))


def index_of(stage: Stage) -> FakeIndex:
    return FakeIndex(SimpleNamespace(spark=stage, events=stage.events), "index")


def hourly(stage: Stage, hours: TimeWindow = SIXTH) -> None:
    arrived = RAW[hours.start.hour]
    stage.table |= arrived
    index_of(stage).add(arrived, hours)
    index_of(stage).mark_read(hours, read_at=hours.end)


def daily(stage: Stage) -> None:
    stage.table |= RAW[5] | RAW[6]
    index_of(stage).replace_days(WHOLE_DAY)
    index_of(stage).add({one for one in RAW[6] if one[0] == BEFORE}, WHOLE_DAY)
    index_of(stage).mark_read(whole_hours_of_days(WHOLE_DAY), read_at=WHOLE_DAY.end)


def advance(stage: Stage, run: greenlet, steps: int) -> None:
    for _ in range(steps):
        if run.dead:
            return
        run.switch()
        stage.check()


def prepared() -> Stage:
    stage = Stage()
    hourly(stage, FIFTH)
    stage.check()
    return stage


@pytest.mark.release
@pytest.mark.parametrize(
    "runs", [(hourly, daily), (daily, hourly), (daily, daily), (hourly, hourly)], ids=["hd", "dh", "dd", "hh"]
)
def test_an_event_that_is_marked_as_read_is_never_missing(runs):
    for steps in product(range(ROUNDS), repeat=3):
        stage = prepared()
        first, second = (greenlet(partial(run, stage)) for run in runs)
        for run, count in zip((first, second, first), steps, strict=True):
            advance(stage, run, count)
        # The first run may be killed here: the second one ends without it.
        advance(stage, second, 100)
        assert second.dead
        advance(stage, first, 100)
        assert first.dead
        assert stage.found() == stage.table
        assert {5, 6} <= set(stage.indexed(DAY).read_at)


def test_the_next_run_after_kills_leaves_one_document_of_a_day():
    for run, steps in product((hourly, daily), range(ROUNDS)):
        stage = prepared()
        advance(stage, greenlet(partial(run, stage)), steps)
        daily(stage)

        assert len(stage.glob(f"index/days/{DAY}*.json")) == 1
        assert len(stage.indexed(DAY).segments) == 1
        stage.check()


def test_files_of_a_replaced_segment_and_of_a_killed_run_are_deleted_later(monkeypatch):
    stage = prepared()
    stage.write(f"index/{DAY}/20200101T000000-ab/bucket=0/part", text="")
    daily(stage)
    assert len(stage.glob(f"index/{DAY}/*")) == 2

    monkeypatch.setattr(event_index, "FILES_KEPT_FOR", timedelta(hours=-1))
    daily(stage)
    assert [f"index/{one.folder}" for one in stage.indexed(DAY).segments] == stage.glob(f"index/{DAY}/*")


def test_a_damaged_document_is_deleted_and_leaves_no_hour_marked_as_read():
    stage = prepared()
    for text in ("{", "[]", '{"version":9}'):
        stage.files[f"index/days/{DAY}.json"] = text
        hourly(stage)
        assert set(stage.indexed(DAY).read_at) == {6}
        assert len(stage.glob(f"index/days/{DAY}*.json")) == 1
