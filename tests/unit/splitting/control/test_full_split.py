"""Full splits: a session without room is refused at its start, and no later step is refused for its size."""

from dataclasses import dataclass, replace

import pytest

from signalbox.splitting.model.records import MAXIMUM_BYTES, documents_text, longest, record_text
from signalbox.splitting.model.split import Phase, Replay, Split, Stage, ended
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import SplitTooLarge, StoredSplit
from tests.fakes.splitting import MemoryAnnotations, MemorySplits
from tests.unit.splitting.control.control_stage import APP, ORDERS, ControlStage
from tests.unit.splitting.control.observed_states import ANN, MEMES, NOW, session, split

ITEM_BYTES = 409_600  # DynamoDB


@dataclass
class LimitedSplits(MemorySplits):
    """Records of at most the size of an item of DynamoDB."""

    def save(self, split: Split, *, replacing: StoredSplit) -> StoredSplit | None:
        if len(record_text(split)) + len(documents_text(replacing.documents)) > ITEM_BYTES - 1_000:
            raise SplitTooLarge("item size has exceeded the maximum allowed size")
        return super().save(split, replacing=replacing)


@dataclass
class LimitedAnnotations(MemoryAnnotations):
    """Annotations of at most the size of an item of DynamoDB."""

    def put(self, target: Target, name: str, text: str) -> None:
        super().put(target, name, text)
        size = sum(len(f"note:{name}{text}".encode()) for name, text in self.of(target).items())
        assert size < ITEM_BYTES - 1_000, "item size to update has exceeded the maximum allowed size"


class LimitedStage(ControlStage):
    """A control plane with items of a limited size."""

    def __init__(self, *originals) -> None:
        super().__init__(*originals)
        self.memory.splits = LimitedSplits(beside=self.memory.splits.beside)
        self.store = replace(self.store, splits=self.memory.splits, annotations=LimitedAnnotations())

    def fill(self, color: str, **fields: object) -> str:
        """Start sessions until one is refused; return the reason."""
        for number in range(1_000):
            try:
                self.start(f"s{number}", color=color, **fields)
            except SplitTooLarge as error:
                return str(error)
        raise AssertionError("1,000 sessions are not refused")


@pytest.mark.parametrize(
    ("color", "variable", "reason"),
    [
        pytest.param("\\" * 16_250, "memes", f"at most {MAXIMUM_BYTES}", id="escapes"),
        pytest.param("é" * 5_000, "memes", f"at most {MAXIMUM_BYTES}", id="letters"),
        pytest.param("red", "x" * 4_000, "bytes of variables", id="variables"),
    ],
)
def test_a_split_that_takes_no_further_session_can_be_ended(color, variable, reason):
    stage = LimitedStage(MEMES, ORDERS)
    stage.targets.variables[APP] = {"MEMES_QUEUE": MEMES, "OTHER": variable}

    refused = stage.fill(color, owner="o" * 100)
    stage.pass_time(15, alive=["s0"])
    stage.stop("s0")
    for _ in range(4):  # the schedule
        stage.pass_time(40)
        stage.loop.wake_all(stage.task_time())

    assert reason in refused
    assert stage.split() is None


def test_a_split_with_200_temporary_queues_takes_no_further_session():
    assert "202 temporary queues; at most 200" in LimitedStage(MEMES, ORDERS).fill("red")


@pytest.mark.parametrize("letter", ["x", "\U0001f600"])
def test_notes_on_200_queues_and_20_problems_leave_room_for_all_steps(letter):
    """A note names the tags that a queue has no room for: 50 of 128 characters."""
    stage = LimitedStage(MEMES)
    stage.targets.variables[APP] = {"MEMES_QUEUE": MEMES, "OTHER": "x" * 650}
    stage.queues.notes = [f"no dead-letter queue {letter * 100}", f"left out: {letter * 6_600}"]
    for number in range(30):
        stage.problems.record(APP, f"{number} {letter * 1_000}")
    refused = stage.fill("red")

    stage.pass_time(15)

    split = stage.split()
    assert split is not None
    assert {one.phase for one in split.sessions} == {Phase.READY}
    assert "201 temporary queues; at most 200" in refused


def test_an_existing_session_of_a_full_split_is_started_again():
    stage = LimitedStage()
    stage.fill("x" * 30_000)

    assert stage.start("s0", color="x" * 30_000)["phase"] == "starting"


@pytest.mark.parametrize("letter", ["x", "\\", "é", "\x01", "\U0001f600", "\ud800"])
def test_later_steps_need_no_more_than_the_room_of_a_session(letter):
    queues = {name: f"kept/{name}/2026-11-21/10/1763720000000" for name in (MEMES, ORDERS)}
    replay = Replay(NOW, NOW, queues)
    start = session(ANN, Phase.STARTING, MEMES, ORDERS, replay=replay)
    late = NOW.replace(microsecond=123456)
    done = replace(
        replay,
        positions={name: f"{key}-{'f' * 16}.json" for name, key in queues.items()},
        sent=10**12,
        skipped=10**12,
        finished_at=late,
    )
    before = split(Stage.STARTING, start, originals=(MEMES, ORDERS))
    used = replace(start, replay=done, effective_at=late, heartbeat_at=late, phase=Phase.READY)

    after = ended(replace(before, sessions=(used,)), ANN, reason=letter * 40_000, now=late)

    assert after.sessions[0].reason
    assert len(record_text(after)) <= longest(before, [])
