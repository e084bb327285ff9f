"""The deletion of kept messages: on time by the current setting, page by page, and all of a removed one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from signalbox.errors import EffectFailed
from signalbox.kept.objects import StoredVersion, kept_batch
from signalbox.kept.settings import InvalidKeepTime, KeepSetting, keep_time
from signalbox.kept.sweeper import REMOVED_FOR, KeptSweeper, SweepResult
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.task_time import TaskTime
from tests.fakes.clock import START, MemoryTime
from tests.fakes.kept import MemoryKeepSettings, MemoryKeptMessages

HOUR, MINUTE, PAGE = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
MEMES, OTHERS = QueueName("memes"), QueueName("memes-2")
LATER = START + timedelta(days=1)


class Clock(MemoryTime):
    def sleep(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@dataclass
class SlowMessages(MemoryKeptMessages):
    clock: MemoryTime = field(default_factory=MemoryTime)

    def versions(self, queue: QueueName) -> Iterator[Sequence[StoredVersion]]:
        for page in super().versions(queue):
            self.clock.moment += PAGE
            yield page


class World:
    def __init__(self, *settings: KeepSetting) -> None:
        self.clock, self.settings = Clock(), MemoryKeepSettings()
        self.kept = SlowMessages(clock=self.clock)
        for one in settings:
            self.settings.put(one)
        self.sweeper = KeptSweeper(self.settings, self.kept, self.clock)

    def keep(self, queue: QueueName, *ages: timedelta) -> None:
        for age in ages:
            message = Message.parse({"MessageId": str(age), "Body": ""})
            self.kept.put(kept_batch(queue, [message], at=self.clock.now() - age))

    def sweep(self, until: datetime) -> SweepResult:
        return self.sweeper.sweep(TaskTime(self.clock.now, until))

    def left(self, queue: QueueName) -> int:
        return sum(key.startswith(f"kept/{queue}/") for key in self.kept.texts)


def setting(queue: QueueName, keep_for: timedelta | None) -> KeepSetting:
    return KeepSetting(queue, keep_for, START)


def test_what_is_older_than_the_set_time_is_deleted():
    world = World(setting(MEMES, 2 * HOUR), setting(OTHERS, 5 * HOUR))
    for queue in (MEMES, OTHERS):
        world.keep(queue, 4 * HOUR, 3 * HOUR, 2 * HOUR, 2 * HOUR - MINUTE, MINUTE)

    assert world.sweep(LATER) == SweepResult(deleted=3, is_complete=True)

    assert (world.left(MEMES), world.left(OTHERS)) == (2, 5)
    assert world.sweep(LATER) == SweepResult(deleted=0, is_complete=True)


def test_a_shorter_setting_counts_for_what_was_kept_before():
    world = World(setting(MEMES, HOUR))
    world.keep(MEMES, 2 * HOUR, MINUTE)
    world.settings.put(setting(MEMES, MINUTE / 2))

    world.sweep(LATER)

    assert world.left(MEMES) == 0


def test_nothing_is_listed_when_nothing_is_kept():
    world = World()
    world.keep(MEMES, HOUR)

    assert world.sweep(LATER) == SweepResult(deleted=0, is_complete=True)

    assert world.left(MEMES) == 1  # the bucket's lifecycle rule deletes it


def test_a_removed_setting_is_forgotten_when_nothing_can_be_left():
    world = World(setting(MEMES, None))
    world.keep(MEMES, HOUR, MINUTE)

    assert world.sweep(LATER).deleted == 2
    world.sweep(LATER)
    assert world.settings.find(MEMES) is not None  # a function that has not read the removal may still keep messages

    world.clock.moment += REMOVED_FOR + MINUTE
    world.sweep(LATER)
    assert world.settings.find(MEMES) is None


def test_a_sweep_that_has_no_time_left_is_continued_by_the_next():
    world = World(setting(MEMES, None))
    world.keep(MEMES, 4 * HOUR, 3 * HOUR, 2 * HOUR)

    assert world.sweep(START + PAGE) == SweepResult(deleted=2, is_complete=False)
    assert world.sweep(LATER) == SweepResult(deleted=1, is_complete=True)


def test_a_busy_queue_has_the_time_that_others_leave_and_delays_none_of_them():
    others = [QueueName(f"q-{number}") for number in range(30)]
    world = World(setting(MEMES, HOUR), *(setting(queue, HOUR) for queue in others))
    world.keep(MEMES, *(3 * HOUR - number * MINUTE / 100 for number in range(200)))
    for queue in others:
        world.keep(queue, 2 * HOUR)

    # Each page of two objects takes a second: the next run has the others first, whatever this one had no time for.
    assert world.sweep(START + 45 * PAGE) == SweepResult(deleted=60, is_complete=False)

    assert world.clock.now() <= START + 46 * PAGE
    assert [world.left(queue) for queue in others] == [0] * 30
    assert world.left(MEMES) == 170


def test_no_queue_is_swept_after_the_end_and_runs_begin_at_other_ones():
    names = [QueueName(f"q-{number}") for number in range(30)]
    world = World(*(setting(queue, HOUR) for queue in names))
    for queue in names:
        world.keep(queue, *(4 * HOUR - number * MINUTE for number in range(4)))

    lefts = []
    for run in range(12):
        world.clock.moment = start = START + run * MINUTE
        world.sweep(start + 5 * PAGE)
        assert world.clock.now() <= start + 6 * PAGE
        lefts.append([world.left(queue) for queue in names])

    assert lefts[0].count(2) == 5
    assert sum(lefts[-1]) == 0


def test_a_queue_that_cannot_be_swept_does_not_keep_the_messages_of_others():
    world = World(setting(MEMES, HOUR), setting(OTHERS, HOUR))
    for queue in (MEMES, OTHERS):
        world.keep(queue, 2 * HOUR)
    world.kept.unlisted.add(MEMES)

    with pytest.raises(EffectFailed, match="'memes'"):
        world.sweep(LATER)

    assert (world.left(MEMES), world.left(OTHERS)) == (1, 0)


@pytest.mark.parametrize("name", ["0-notes.txt", "2026-11-20/notes/of/ann", "zzz"])
def test_an_object_that_others_put_there_does_not_stop_the_deletion(name):
    world = World(setting(MEMES, HOUR))
    world.kept.texts[f"kept/{MEMES}/{name}"] = "notes"
    world.keep(MEMES, 3 * HOUR, 2 * HOUR, MINUTE)

    assert world.sweep(LATER) == SweepResult(deleted=2, is_complete=True)

    assert world.left(MEMES) == 2


@pytest.mark.parametrize(("seconds", "is_valid"), [(299, False), (300, True), (1_209_600, True), (1_209_601, False)])
def test_messages_are_kept_for_five_minutes_to_fourteen_days(seconds, is_valid):
    if is_valid:
        assert keep_time(seconds) == timedelta(seconds=seconds)
        return
    with pytest.raises(InvalidKeepTime, match="5 minutes to 14 days"):
        keep_time(seconds)


def test_readers_are_those_that_the_setting_names():
    found = KeepSetting(MEMES, HOUR, START, {"AIDAANN": "ann"})

    assert found.may_read("AIDAANN")
    assert not found.may_read("AIDABOB")
    assert not KeepSetting(MEMES, None, START, {"AIDAANN": "ann"}).may_read("AIDAANN")
