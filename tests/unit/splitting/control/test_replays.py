"""Replays: a session gets kept messages first, marked and by its own filter; the deployed consumer gets none."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from signalbox.control.delivery import ONCE, CommandDelivery
from signalbox.kept.objects import kept_batch
from signalbox.kept.settings import KeepSetting, ReplayRefused
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.splitting.control import replays
from signalbox.splitting.control.keeping import NothingIsKept
from signalbox.splitting.control.ports import KeptStore
from signalbox.splitting.forwarding.deliveries import MARK, marked
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.split import Phase, Stage
from tests.fakes.kept import MemoryKeepSettings, MemoryKeptMessages
from tests.unit.splitting.control.control_stage import APP, MEMES, ORDERS, ControlStage, message
from tests.unit.splitting.forwarding.languages import SLOW

ANN, HOUR = "AIDAANN", timedelta(hours=1)
PRINCIPALS = {"ann": ANN, "bob": "AIDABOB"}


class KeptStage(ControlStage):
    """A control plane with kept messages; a session is sent by the user of its name."""

    def __init__(self, *originals: QueueName) -> None:
        super().__init__(*originals)
        self.settings, self.kept = MemoryKeepSettings(), MemoryKeptMessages()
        self.kept_store = KeptStore(self.settings, self.kept, self.kept)

    def set(self, queue: QueueName = MEMES, keep_for: timedelta | None = 4 * HOUR) -> None:
        self.settings.put(KeepSetting(queue, keep_for, self.time.now(), {ANN: "ann"}))

    def keep(self, *messages: Message, queue: QueueName = MEMES, ago: timedelta = HOUR) -> str:
        batch = kept_batch(queue, messages, at=self.time.now() - ago)
        self.kept.put(batch)
        return batch.stored_as.key

    def execute(self, command: Any, delivery: CommandDelivery = ONCE) -> Any:
        principal = PRINCIPALS.get(getattr(command, "session_id", ""), "")
        return self.service.answer(command, principal=principal, delivery=delivery)

    def bodies(self, session: str = "ann", original: QueueName = MEMES) -> list[str]:
        return self.sender.bodies(self.session_queue(session, original))

    def notes(self, session: str = "ann") -> Sequence[str]:
        return [note for note in self.heartbeat(session)["notes"] if "kept since" in note]


@pytest.fixture
def stage() -> KeptStage:
    found = KeptStage()
    found.set()
    return found


def test_a_session_gets_the_kept_messages_that_its_filter_matches_oldest_first_and_marked(stage):
    stage.keep(message("3", "red"), message("4", "blue"), ago=HOUR)
    stage.keep(message("1", "red"), message("2", "red"), ago=HOUR * 1.5)
    stage.keep(message("0", "red"), ago=3 * HOUR)  # before the two hours

    stage.start(since_seconds=7200)
    stage.pass_time(15, alive=["ann"])

    assert stage.bodies() == ["1", "2", "3"]
    marks = [one.attributes[MARK].text for one in stage.sender.sent[stage.session_queue()]]
    assert marks[0] == f"2026-11-21T10:30:00.000+00:00 {stage.session_queue()}"
    assert stage.heartbeat()["phase"] == "ready"
    assert stage.heartbeat()["replay"]["sent"] == 3
    assert stage.notes() == ["3 messages kept since 2026-11-21T10:00:00+00:00 replayed"]
    replayed = [event for event in stage.events if event.outcome == "replayed"]
    assert [event.labels["copy"] for event in replayed] == [
        f"{one.message_id} in {one.destination}" for one in replayed
    ]
    assert [(event.message_id, event.labels["owner"]) for event in replayed] == [
        (body, "ann@laptop") for body in ("1", "2", "3")
    ]


def test_an_object_that_others_put_there_does_not_stop_a_replay(stage):
    stage.keep(message("1", "red"), ago=HOUR)
    stage.kept.texts[f"kept/{MEMES}/zzz/notes.txt"] = "notes"

    stage.start(since_seconds=7200)
    stage.pass_time(15, alive=["ann"])

    assert (stage.bodies(), stage.heartbeat()["phase"]) == (["1"], "ready")


def test_a_session_that_has_ended_meanwhile_gets_nothing_more(stage):
    stage.keep(message("1", "red"))
    stage.ready("red")
    stored = stage.store.splits.find(APP)

    assert stage.replayer.step(stored, "ann") is False
    assert stage.replayer.step(stored, "red") is False  # without a replay
    assert stage.sender.sent == {}


def test_a_session_without_since_gets_no_kept_messages(stage):
    stage.keep(message("1", "red"))

    stage.ready("red")

    assert stage.bodies("red") == []
    assert "replay" not in stage.heartbeat("red")


def test_the_consumer_is_switched_only_when_the_replay_is_finished(stage):
    key = stage.keep(message("1", "red"))
    stage.kept.unreadable.add(key)
    stage.start(since_seconds=7200)
    stage.pass_time(200, alive=["ann"])  # longer than the time in which a target must switch

    split = stage.split()
    assert split is not None
    assert (split.stage, stage.targets.observe(split, None)) == (Stage.STARTING, TargetState.ORIGINAL)
    assert [one.phase for one in split.sessions] == [Phase.STARTING]
    assert any("kept/" in note for note in stage.heartbeat()["notes"])  # what failed

    stage.kept.unreadable.clear()
    stage.pass_time(90, alive=["ann"])
    assert (stage.heartbeat()["phase"], stage.bodies()) == ("ready", ["1"])


def test_a_session_that_joins_does_not_delay_the_others(stage):
    stage.kept.unreadable.add(stage.keep(message("1", "red")))
    stage.start(since_seconds=7200)
    stage.start("bob", color="blue")

    stage.pass_time(15, alive=["ann", "bob"])

    assert (stage.heartbeat("bob")["phase"], stage.heartbeat("ann")["phase"]) == ("ready", "starting")


def test_a_replay_that_takes_long_is_continued_where_it_was(stage, monkeypatch):
    monkeypatch.setattr(replays, "REPLAYING_FOR", timedelta(0))
    for number in range(5):
        stage.keep(message(str(number), "red"), ago=HOUR - timedelta(minutes=number))

    stage.start(since_seconds=7200)
    stage.pass_time(15, alive=["ann"])

    assert stage.bodies() == list("01234")
    assert stage.heartbeat()["phase"] == "ready"


def test_a_killed_step_is_repeated_from_the_saved_position(stage):
    """The messages of the last step may be sent twice, as SQS itself may deliver them."""
    first = stage.keep(message("1", "red"), ago=2 * HOUR)
    second = stage.keep(message("2", "red"), ago=HOUR)
    stage.kept.unreadable.add(second)
    stage.start(since_seconds=4 * 3600)
    stage.pass_time(5, alive=["ann"])

    assert stage.bodies() == ["1"]
    (session,) = stage.split().sessions
    assert session.replay.positions == {MEMES: first}

    stage.kept.unreadable.clear()
    stage.pass_time(15, alive=["ann"])
    assert stage.bodies() == ["1", "2"]


def test_what_is_kept_after_the_start_is_not_replayed(stage):
    stage.keep(message("1", "red"))
    stage.start(since_seconds=7200)
    stage.keep(message("2", "red"), ago=-HOUR)
    stage.pass_time(15, alive=["ann"])

    assert stage.bodies() == ["1"]
    assert stage.heartbeat()["replay"]["sent"] == 1


def test_a_queue_that_accepts_no_message_is_tried_again(stage):
    stage.keep(message("1", "red"))
    stage.start(since_seconds=7200)
    stage.sender.failing.add(stage.session_queue())
    stage.pass_time(5, alive=["ann"])
    assert stage.heartbeat()["phase"] == "starting"

    stage.sender.failing.clear()
    stage.pass_time(15, alive=["ann"])

    assert (stage.heartbeat()["phase"], stage.bodies()) == ("ready", ["1"])


def test_messages_that_cannot_be_marked_sent_or_read_are_counted(stage):
    attributes = {f"a{number}": {"DataType": "String", "StringValue": "x"} for number in range(9)}
    full = message("full", "red").document
    full = Message.parse({**full, "MessageAttributes": {**full["MessageAttributes"], **attributes}})
    stage.keep(full, message("refused", "red"), message("sent", "red"), ago=HOUR)
    stage.kept.texts[stage.keep(ago=HOUR / 2)] = "of a newer version"
    stage.sender.refused_bodies["refused"] = "InvalidMessageContents"

    stage.start(since_seconds=7200)
    stage.pass_time(15, alive=["ann"])

    assert stage.bodies() == ["sent"]
    (note,) = stage.notes()
    assert note == (
        "1 message kept since 2026-11-21T10:00:00+00:00 replayed; 3 skipped, which cannot be marked or read"
    )


def test_an_object_that_expires_meanwhile_is_no_problem(stage):
    key = stage.keep(message("1", "red"))
    stage.start(since_seconds=7200)
    stage.kept.read = lambda found: None if found == key else ""  # deleted between the list and the read

    stage.pass_time(15, alive=["ann"])

    assert (stage.heartbeat()["phase"], stage.bodies()) == ("ready", [])


def test_a_slow_filter_ends_its_session(stage):
    stage.keep(message("1", "red"))

    stage.start(color=SLOW, since_seconds=7200)
    stage.pass_time(5, alive=["ann"])

    assert stage.heartbeat()["phase"] in ("ending", "gone")
    assert stage.sender.sent == {}


def test_fifo_messages_are_replayed_in_order_with_ids_of_their_own():
    stage = KeptStage(ORDERS)
    stage.set(ORDERS)
    stage.keep(*(message(str(number), "red", group="g") for number in range(3)), queue=ORDERS)

    stage.start(since_seconds=7200)
    stage.pass_time(30, alive=["ann"])

    sent = stage.sender.sent[stage.session_queue(original=ORDERS)]
    assert [(one.body, one.group_id) for one in sent] == [("0", "g"), ("1", "g"), ("2", "g")]
    assert len({one.deduplication_id for one in sent} - {"0", "1", "2"}) == 3
    assert all(len(call.deliveries) == 1 for call in stage.sender.calls)


def test_unread_copies_are_dropped_and_not_returned(stage):
    stage.keep(message("old", "red"))
    stage.start(since_seconds=7200)
    stage.pass_time(15, alive=["ann"])
    queue = stage.session_queue()
    copy = marked(message("old", "red"), queue, at=stage.time.now())
    stage.queues.queues[queue].waiting += [copy, message("new", "red")]
    stage.store.uses.extend(queue, until=stage.time.now())
    deployed = stage.split().queues[0].deployed
    stage.stop()
    stage.pass_time(60)

    assert stage.sender.bodies(deployed) == ["new"]
    assert MEMES not in stage.queues.returned
    assert [event.message_id for event in stage.events if event.outcome == "dropped"] == ["old"]


def test_a_user_who_is_no_reader_is_refused(stage):
    stage.keep(message("1", "red"))

    with pytest.raises(ReplayRefused, match=r"you may not read the kept messages of 'memes'.*you are AIDABOB"):
        stage.start("bob", since_seconds=7200)
    with pytest.raises(ReplayRefused, match="you are unknown"):
        stage.start("who", since_seconds=7200)
    assert stage.split() is None


@pytest.mark.parametrize("keep_for", [None, timedelta(0)])
def test_without_kept_messages_a_replay_is_refused(stage, keep_for):
    stage.settings.settings.clear()
    if keep_for is None:
        stage.set(keep_for=None)

    with pytest.raises(ReplayRefused, match=r"no messages are kept of 'memes': `signalbox keep set"):
        stage.start(since_seconds=7200)


def test_a_stage_without_a_store_refuses_replays_and_settings():
    stage = ControlStage()

    with pytest.raises(ReplayRefused, match="no messages are kept"):
        stage.start(since_seconds=7200)
    with pytest.raises(NothingIsKept):
        stage.ask("keep", queue="memes")
    stage.ready("red")


def test_a_filter_with_metadata_is_refused(stage):
    found = stage.targets.found[APP]
    stage.targets.found[APP] = [replace(one, s3_event=True) for one in found]
    entry = {"queue_type": "SQS", "jq_filter": '.S3Metadata.client == "a"'}

    with pytest.raises(ReplayRefused, match="S3Metadata"):
        stage.start(since_seconds=7200, config={"feature": {"split_queues": {"*": entry}}})


def test_the_same_session_started_again_is_the_same(stage):
    stage.keep(message("1", "red"))
    stage.start(since_seconds=7200)
    stage.settings.settings.clear()

    assert stage.start(since_seconds=7200)["session"] == "ann"


@pytest.mark.parametrize("seconds", [0, 14 * 86400 + 1, "x"])
def test_an_invalid_time_is_refused(stage, seconds):
    with pytest.raises(Exception, match="since_seconds"):
        stage.start(since_seconds=seconds)


def test_a_setting_counts_for_a_running_split_and_for_the_next(stage):
    stage.settings.settings.clear()
    stage.ready("red")
    assert [one.is_kept for one in stage.split().queues] == [False]

    stage.set()
    done = stage.ask("keep", queue="memes")

    assert done == {"queue": "memes", "kept_seconds": 14400, "target": str(APP), "deleted": 0, "complete": True}
    assert [one.is_kept for one in stage.split().queues] == [True]
    stage.set(keep_for=None)
    stage.ask("keep", queue="memes")
    assert [one.is_kept for one in stage.split().queues] == [False]


def test_a_new_split_is_kept_from_its_first_message(stage):
    stage.ready("red")

    assert [one.is_kept for one in stage.split().queues] == [True]


def test_removing_a_setting_deletes_what_is_kept(stage):
    stage.keep(message("1", "red"))
    stage.set(keep_for=None)

    done = stage.ask("keep", queue="memes")

    assert (done["kept_seconds"], done["target"], done["deleted"], done["complete"]) == (None, None, 1, True)
    assert stage.kept.texts == {}


def test_what_the_router_keeps_is_not_kept_twice(stage):
    stage.settings.put(replace(stage.settings.settings[MEMES], declared="q_memes"))

    stage.ready("red")

    assert [one.is_kept for one in stage.split().queues] == [False]


def test_a_queue_without_a_setting_is_not_kept(stage):
    assert stage.ask("keep", queue="other")["kept_seconds"] is None


def test_a_step_of_a_session_without_a_replay_does_nothing(stage):
    stage.ready("red")
    stored = stage.memory.splits.find(APP)

    assert not stage.replayer.step(stored, "red")
    assert not stage.replayer.step(stored, "nobody")
