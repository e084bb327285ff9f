"""The orphan-queue sweeper deletes queues that a crash left behind, and nothing else."""

from datetime import timedelta

import pytest

from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, QueueName, QueueUrl
from signalbox.splitting.control.orphan_queues import OrphanQueueSweeper
from signalbox.splitting.model.records import UnreadableRecord
from signalbox.splitting.ports import UnreadableSplit
from tests.fakes.found_queues import MemoryFoundQueue, MemoryFoundQueues
from tests.fakes.splitting import MemoryQueue
from tests.unit.splitting.control.control_stage import ControlStage, message

OURS = {STAGE_TAG: "signalbox", CAPABILITY_TAG: "splitting"}
STRAY = QueueName("mirrord-tmp-x")


class Sweep:
    def __init__(self) -> None:
        self.stage = ControlStage()
        self.found = MemoryFoundQueues()
        self.sweeper = OrphanQueueSweeper(
            self.stage.memory.splits, self.found, self.stage.queues, self.stage.time, stage="signalbox"
        )

    def add(self, name: str = STRAY, *, hours: int = 25, waiting: int = 0, **tags: str) -> None:
        at = self.stage.time.now() - timedelta(hours=hours)
        self.found.queues[QueueUrl(name)] = MemoryFoundQueue({**OURS, **tags}, at)
        self.stage.queues.queues[QueueName(name)] = MemoryQueue(at, waiting=[message("x")] * waiting)


def test_a_temporary_queue_that_no_split_knows_is_deleted_after_a_day():
    sweep = Sweep()
    sweep.add()

    assert list(sweep.sweeper.delete_orphans(sweep.stage.task_time(), prefix="mirrord-")) == [STRAY]
    assert sweep.found.deleted == [STRAY]


def test_new_used_and_foreign_queues_are_kept():
    sweep = Sweep()
    sweep.add("mirrord-young", hours=23)
    sweep.add("mirrord-full", waiting=1)
    sweep.add("mirrord-theirs", **{STAGE_TAG: "other"})
    sweep.add("mirrord-rendezvous", **{CAPABILITY_TAG: "rendezvous"})

    assert list(sweep.sweeper.delete_orphans(sweep.stage.task_time(), prefix="mirrord-")) == []
    assert sorted(sweep.found.asked_for_tags) == ["mirrord-rendezvous", "mirrord-theirs"]  # AWS allows few such calls


def test_queues_of_a_split_are_kept():
    sweep = Sweep()
    status = sweep.stage.start()
    split = sweep.stage.split()
    assert split is not None
    sweep.add(status["queues"][0]["temporary"])
    sweep.add(split.queues[0].deployed)

    assert list(sweep.sweeper.delete_orphans(sweep.stage.task_time(), prefix="mirrord-")) == []
    assert sweep.found.looked_at == []  # a known queue costs no call


def test_nothing_is_deleted_while_a_split_is_unreadable():
    """Its record may name any of them."""
    sweep = Sweep()
    sweep.add()
    sweep.stage.memory.splits.unreadable = [UnreadableSplit("lambda/meme-app", "version 2")]

    with pytest.raises(UnreadableRecord, match="lambda/meme-app"):
        list(sweep.sweeper.delete_orphans(sweep.stage.task_time(), prefix="mirrord-"))
    assert sweep.found.deleted == []
