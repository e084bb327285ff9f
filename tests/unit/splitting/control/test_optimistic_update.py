"""Records that others change at the same time: what was decided by an old one is not written down."""

from dataclasses import replace

import pytest

from signalbox.splitting.control.observation import observed
from signalbox.splitting.control.optimistic_update import RecordChanged, changed, check, written_down
from signalbox.splitting.model.actions import ForgetSession, ForgetSplit, MoveSession, MoveSplit
from signalbox.splitting.model.split import Phase, Stage, alive, ended
from signalbox.splitting.model.world import ForwardingState
from tests.fakes.splitting import MemorySplits
from tests.unit.splitting.control.control_stage import APP, ORDERS, ControlStage
from tests.unit.splitting.control.worlds import ANN, NOW, session, split


def stored(*sessions, stage=Stage.SPLIT):
    splits = MemorySplits()
    found = splits.create(split(stage, *sessions), documents=[])
    assert found is not None
    return splits, found


def test_an_action_is_written_down():
    splits, seen = stored(session(phase=Phase.MATCHING))

    saved = written_down(splits, seen, MoveSession(ANN, Phase.READY), now=NOW)

    assert saved == splits.find(seen.split.target)
    assert saved.split.sessions[0].phase is Phase.READY


def test_an_action_is_written_down_when_only_signs_of_life_came_between():
    splits, seen = stored(session(phase=Phase.MATCHING))
    splits.save(alive(seen.split, ANN, now=NOW.replace(hour=13)), replacing=seen)

    saved = written_down(splits, seen, MoveSession(ANN, Phase.READY), now=NOW)

    assert (saved.split.sessions[0].phase, saved.split.sessions[0].heartbeat_at.hour) == (Phase.READY, 13)


@pytest.mark.parametrize("action", [ForgetSession(ANN), MoveSplit(Stage.DRAINING)])
def test_an_action_is_not_written_down_when_something_else_changed(action):
    splits, seen = stored(session())
    splits.save(ended(seen.split, ANN, reason="", now=NOW), replacing=seen)

    with pytest.raises(RecordChanged):
        written_down(splits, seen, action, now=NOW)


def test_an_action_is_not_written_down_when_the_split_is_gone():
    splits, seen = stored(session())
    splits.forget(seen)

    with pytest.raises(RecordChanged):
        written_down(splits, seen, ForgetSession(ANN), now=NOW)
    with pytest.raises(RecordChanged):
        check(None, seen)
    assert changed(splits, seen.split.target, lambda found: found) is None


def test_a_split_is_forgotten_only_as_it_was_seen():
    splits, seen = stored(stage=Stage.CLEANING)
    newer = splits.save(replace(seen.split, since=NOW), replacing=seen)

    with pytest.raises(RecordChanged):
        written_down(splits, seen, ForgetSplit(), now=NOW)
    assert written_down(splits, newer, ForgetSplit(), now=NOW) is None
    assert splits.every() == []


def test_nothing_is_unfinished_where_forwarding_never_started():
    stage = ControlStage(ORDERS).ready("ann")
    stage.pass_time(10, alive=["ann"])
    stage.stop("ann")
    stage.memory.notes.notes.clear()
    stage.memory.ledger.begin(ORDERS, "somebody's", now=stage.time.now())
    seen = stage.memory.splits.find(APP)
    assert seen is not None

    world = observed(stage.ports, seen.split, stage.ports.registry_of(seen), now=stage.time.now())

    assert world.forwarder(ORDERS).state is ForwardingState.ON
    assert world.forwarder(ORDERS).unfinished == 0
