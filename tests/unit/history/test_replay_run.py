"""A replay that is killed at any step and resumed: no message is sent twice, and none is lost."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.history.replay_run import ReplayRun, ReplayStopped, SourceMessage
from signalbox.history.replay_state import RateLimit, ReplayId, ReplayProgress, ReplayState, SendResult

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
MESSAGES = [str(number) for number in range(25)]
PLANNED = ReplayProgress(ReplayId("again"), {}, "snapshot 7", messages=len(MESSAGES), size_bytes=250, planned_at=NOON)


class Killed(Exception):
    """Raised to kill the run."""


@dataclass
class World:
    """A fake source, queue and record; each effect is a step, and the first run is killed at one of them."""

    is_repeatable: bool
    last_step: int = 10_000
    steps: int = 0
    waiting: list[str] = field(default_factory=lambda: list(MESSAGES))
    sent: list[str] = field(default_factory=list)
    record: ReplayProgress = PLANNED
    now: datetime = NOON
    seconds: float = 0.0
    slept: list[float] = field(default_factory=list)
    at: int = 0
    taken: set[str] = field(default_factory=set)
    trouble: SendResult | None = None

    def step(self) -> None:
        self.steps += 1
        if self.steps > self.last_step:
            raise Killed

    def take(self, count: int, progress: ReplayProgress) -> Sequence[SourceMessage[str]]:
        self.step()
        if self.is_repeatable:
            found = self.waiting[self.at : self.at + count]
            self.at += count
        else:
            self.discard([one for one in self.waiting if one in progress.kept])
            found = [one for one in self.waiting if one not in {*progress.retained, *self.taken}][:count]
            self.taken |= set(found)
        return [SourceMessage(one, one) for one in found]

    def discard(self, origins: Collection[str]) -> None:
        if not self.is_repeatable:
            self.step()
            self.waiting = [one for one in self.waiting if one not in origins]

    def save(self, progress: ReplayProgress) -> None:
        self.step()
        self.record = progress

    def send(self, ready: Sequence[SourceMessage[str]]) -> SendResult:
        for one in ready:
            self.step()
            self.sent.append(one.origin)
        return self.trouble or SendResult(taken={one.origin: "new" for one in ready})

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    def run(
        self, *, rate: int = 10, is_fifo: bool = False, reports: list[ReplayProgress] | None = None
    ) -> ReplayProgress:
        self.at, self.taken = self.record.position, set()
        run = ReplayRun(
            source=self,
            send=self.send,
            records=self,
            limit=RateLimit(rate, self.seconds),
            is_fifo=is_fifo,
            now=lambda: self.now,
            monotonic=lambda: self.seconds,
            sleep=self.sleep,
            report_progress=(reports if reports is not None else []).append,
        )
        return run.execute(self.record)


@pytest.mark.parametrize("is_repeatable", [True, False], ids=["a log", "dead letters"])
def test_every_message_is_sent_once_in_order_and_at_the_rate(is_repeatable):
    world, reports = World(is_repeatable), list[ReplayProgress]()

    finished = world.run(reports=reports)

    assert world.sent == MESSAGES
    assert (finished.state, finished.sent, finished.doubtful) == (ReplayState.DONE, 25, ())
    assert world.record == finished
    assert world.slept == [0.0, 1.0, 1.0]
    assert [progress.sent for progress in reports] == [10, 20, 25, 25]
    assert is_repeatable or world.waiting == []


@pytest.mark.parametrize("is_repeatable", [True, False], ids=["a log", "dead letters"])
def test_a_run_killed_at_any_step_sends_no_message_twice_and_loses_none(is_repeatable):
    for last_step in range(45):
        world = World(is_repeatable, last_step)
        with_kill = False
        try:
            world.run()
        except Killed:
            with_kill = True
        world.last_step = 10_000

        finished = world.run()

        assert with_kill or last_step > 30
        assert len(world.sent) == len(set(world.sent)), last_step
        assert set(world.sent) | set(finished.doubtful) == set(MESSAGES), last_step
        assert len(finished.doubtful) <= 10
        assert is_repeatable or set(world.waiting) == set(finished.doubtful), last_step


def test_a_claim_that_a_fifo_queue_still_deduplicates_is_sent_again():
    world = World(is_repeatable=True, last_step=8)
    with pytest.raises(Killed):
        world.run(is_fifo=True)
    world.last_step, world.now = 10_000, NOON + timedelta(seconds=30)

    finished = world.run(is_fifo=True)

    assert (finished.sent, finished.doubtful) == (25, ())
    assert list(dict.fromkeys(world.sent)) == MESSAGES


def test_a_claim_that_a_fifo_queue_no_longer_deduplicates_is_doubtful():
    world = World(is_repeatable=True, last_step=8)
    with pytest.raises(Killed):
        world.run(is_fifo=True)
    world.last_step, world.now = 10_000, NOON + timedelta(minutes=5)

    finished = world.run(is_fifo=True)

    assert (finished.sent, len(finished.doubtful)) == (15, 10)


def test_a_run_ends_when_sqs_accepts_nothing_and_its_record_lists_the_refused_messages():
    world = World(is_repeatable=True, trouble=SendResult(refused={"0": "no"}, doubtful=["1"], is_stopped=True))

    with pytest.raises(ReplayStopped, match="did not take 2 messages"):
        world.run(rate=2)

    assert (world.record.claim, world.record.refused, world.record.doubtful) == (None, {"0": "no"}, ("1",))
