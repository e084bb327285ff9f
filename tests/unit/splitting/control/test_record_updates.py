"""Optimistic updates: an action that was decided by an outdated record is not saved."""

from dataclasses import replace

import pytest

from signalbox.splitting.control.record_updates import RecordChanged, changed, check_unchanged, save_action
from signalbox.splitting.model.actions import ForgetSession, ForgetSplit, MoveSession, MoveSplit
from signalbox.splitting.model.split import Phase, Stage, ended
from tests.fakes.splitting import MemorySplits
from tests.unit.splitting.control.observed_states import ANN, NOW, session, split


def stored(*sessions, stage=Stage.SPLIT):
    splits = MemorySplits()
    found = splits.create(split(stage, *sessions), documents=[])
    assert found is not None
    return splits, found


def test_an_action_is_saved():
    splits, seen = stored(session(phase=Phase.MATCHING))

    saved = save_action(splits, seen, MoveSession(ANN, Phase.READY), now=NOW)

    assert saved == splits.find(seen.split.target)
    assert saved.split.sessions[0].phase is Phase.READY


@pytest.mark.parametrize("action", [ForgetSession(ANN), MoveSplit(Stage.DRAINING)])
def test_an_action_is_not_saved_after_another_change(action):
    splits, seen = stored(session())
    splits.save(ended(seen.split, ANN, reason="", now=NOW), replacing=seen)

    with pytest.raises(RecordChanged):
        save_action(splits, seen, action, now=NOW)


def test_an_action_is_not_saved_without_its_split():
    splits, seen = stored(session())
    splits.forget(seen)

    with pytest.raises(RecordChanged):
        save_action(splits, seen, ForgetSession(ANN), now=NOW)
    with pytest.raises(RecordChanged):
        check_unchanged(None, seen)
    assert changed(splits, seen.split.target, lambda found: found) is None


def test_a_changed_split_is_not_deleted():
    splits, seen = stored(stage=Stage.CLEANING)
    newer = splits.save(replace(seen.split, since=NOW), replacing=seen)

    with pytest.raises(RecordChanged):
        save_action(splits, seen, ForgetSplit(), now=NOW)
    assert save_action(splits, newer, ForgetSplit(), now=NOW) is None
    assert splits.every() == []
