"""The life of a split by commands: what is started is made, what is stopped is undone, and everybody hears why."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from signalbox.errors import EffectFailed, EffectRefused, RejectedError
from signalbox.queues import QueueName
from signalbox.sending import Batch
from signalbox.splitting.control.admission import SessionRejected, SplitEnding
from signalbox.splitting.control.problems import note_trouble
from signalbox.splitting.control.reconcile import is_at_rest
from signalbox.splitting.control.reconcile_loop import RoundDesk
from signalbox.splitting.model.ports import UnreadableSplit
from signalbox.splitting.model.split import Phase, Stage
from signalbox.splitting.model.world import ForwardingState, TargetState
from tests.unit.splitting.control.control_stage import APP, MEMES, ORDERS, OTHER_APP, ControlStage, config, message


def test_a_started_session_is_told_its_queues_and_environment_before_anything_is_made():
    stage = ControlStage()

    told = stage.start()

    assert (told["session"], told["target"], told["owner"], told["phase"]) == (
        "ann",
        "lambda/meme-app",
        "ann@laptop",
        "starting",
    )
    (queue,) = told["queues"]
    assert queue["original"] == MEMES
    assert queue["url"] == f"https://sqs/1/{queue['temporary']}"
    assert told["environment"] == {"MEMES_QUEUE": queue["temporary"]}
    assert stage.queues.queues == {}


def test_a_session_becomes_ready_when_all_is_made_and_switched():
    stage = ControlStage()
    stage.start()

    stage.pass_time(6, alive=["ann"])

    assert stage.beat()["phase"] == "ready"
    assert stage.targets.switches == [("switch", APP)]
    assert stage.forwarders.states[MEMES].state is ForwardingState.ON
    assert stage.told() == [("session", "started"), ("session", "ready")]
    assert stage.control_queue.asked == []


def test_a_stopped_session_takes_the_split_with_it_and_all_is_as_before():
    stage = ControlStage().ready("ann")

    assert stage.stop()["phase"] == "ending"
    stage.pass_time(120)

    assert stage.split() is None
    assert stage.queues.queues == {}
    assert stage.forwarders.states == {}
    assert stage.targets.states[APP] is TargetState.ORIGINAL
    assert stage.memory.locks.held == {}
    assert stage.memory.notes.notes == {}
    assert stage.told()[-1] == ("session", "ended")
    assert stage.beat() == {"session": "ann", "phase": "gone"}
    assert stage.stop() == {"session": "ann", "phase": "gone"}


def test_a_session_without_signs_of_life_ends():
    stage = ControlStage().ready("ann")

    stage.pass_time(61)
    assert RoundDesk(stage.ports).wake_all() == 1
    stage.pass_time(1)

    split = stage.split()
    assert split is not None
    assert split.sessions[0].phase is Phase.ENDING
    assert (split.sessions[0].reason or "").startswith("no sign of life since")


def test_the_same_start_a_second_time_changes_nothing():
    stage = ControlStage()

    first = stage.start()
    stage.pass_time(3)
    again = stage.start()

    assert again["queues"] == first["queues"]
    assert again["started_at"] == first["started_at"]
    assert stage.told() == [("session", "started")]


def test_another_session_of_the_same_name_is_refused():
    stage = ControlStage()
    stage.start()

    with pytest.raises(SessionRejected, match="'ann' is there already"):
        stage.start(color="blue")
    with pytest.raises(SessionRejected, match="'ann' is there already"):
        stage.start(owner="bob@laptop")


def test_two_who_start_at_the_same_moment_share_one_split():
    stage = ControlStage()
    splits = stage.memory.splits
    find = splits.find

    def late(target):  # the first look of the second one is from before the first one wrote
        splits.find = find
        found = find(target)
        stage.start("bob", color="blue")
        return found

    splits.find = late
    stage.start("ann")

    split = stage.split()
    assert split is not None
    assert [session.session_id for session in split.sessions] == ["bob", "ann"]
    stage.pass_time(6, alive=["ann", "bob"])
    assert {stage.beat(name)["phase"] for name in ("ann", "bob")} == {"ready"}
    assert stage.targets.switches == [("switch", APP)]


def test_a_registry_that_is_changed_meanwhile_counts_from_the_next_split_on():
    stage = ControlStage().ready("ann")

    stage.knows(APP, QueueName("other"))
    told = stage.start("bob", color="blue")

    assert [queue["original"] for queue in told["queues"]] == [MEMES]
    for name in ("ann", "bob"):
        stage.stop(name)
    stage.pass_time(150)
    assert [queue["original"] for queue in stage.start("bob")["queues"]] == ["other"]


def test_a_queue_can_be_split_for_one_target_only():
    stage = ControlStage()
    stage.knows(OTHER_APP, MEMES)
    stage.start()

    with pytest.raises(RejectedError, match="queue 'memes' is split for lambda/meme-app already"):
        stage.start("bob", target=OTHER_APP)
    assert stage.split(OTHER_APP) is None


def test_a_session_cannot_join_while_its_split_is_undone_and_starts_anew_afterwards():
    stage = ControlStage().ready("ann")
    stage.stop()

    with pytest.raises(SplitEnding, match="'ann' is ending"):
        stage.start(color="ann")
    stage.pass_time(150)

    assert stage.start(color="ann")["phase"] == "starting"


def test_a_start_that_is_refused_is_rolled_back_and_says_why():
    stage = ControlStage()
    told = stage.start()
    (name,) = (queue["temporary"] for queue in told["queues"])
    stage.queues.refused[name] = f"AccessDenied: queue {name!r}"

    stage.pass_time(5, alive=["ann"])
    heard = stage.beat()

    assert (heard["phase"], heard["reason"]) == ("ending", f"AccessDenied: queue {name!r}")
    stage.pass_time(60)
    assert stage.split() is None
    assert stage.queues.queues == {}
    assert stage.targets.switches == []


def test_a_target_that_refuses_ends_all_sessions():
    stage = ControlStage()
    stage.targets.refused[APP] = "ResourceNotFoundException: meme-app"
    stage.start("ann")
    stage.start("bob", color="blue")

    stage.pass_time(6, alive=["ann", "bob"])

    assert {stage.beat(name)["reason"] for name in ("ann", "bob")} == {"ResourceNotFoundException: meme-app"}


def test_what_fails_for_now_is_tried_again_and_told():
    stage = ControlStage()
    stage.targets.failing[APP] = "Throttling: meme-app"
    stage.start()
    stage.pass_time(6, alive=["ann"])

    told = stage.beat()
    stage.targets.failing.clear()
    stage.pass_time(12, alive=["ann"])

    assert (told["phase"], told["notes"]) == ("starting", ["Throttling: meme-app"])
    assert stage.beat()["phase"] == "ready"


def test_notes_on_a_queue_are_told():
    stage = ControlStage()
    stage.queues.notes = ["no dead-letter queue", "no policy"]
    stage.start()

    stage.pass_time(3, alive=["ann"])

    assert stage.beat()["notes"] == ["no dead-letter queue", "no policy"]


def test_a_target_that_cannot_be_looked_at_ends_what_is_starting(monkeypatch):
    stage = ControlStage()
    stage.start()

    monkeypatch.setattr(stage.targets, "observe", refusing("AccessDenied: meme-app"))
    stage.pass_time(1)

    assert stage.beat()["reason"] == "AccessDenied: meme-app"


def test_a_target_that_cannot_be_looked_at_later_ends_nothing(monkeypatch):
    stage = ControlStage().ready("ann")

    monkeypatch.setattr(stage.targets, "observe", refusing("AccessDenied: meme-app"))
    stage.ask("reconcile", target=str(APP), holder="schedule")

    assert stage.beat()["phase"] == "ready"
    assert stage.beat()["notes"] == ["AccessDenied: meme-app"]


def test_of_many_troubles_the_newest_are_told_each_once_and_the_oldest_first():
    """They share one item of the table with what is needed to undo the split."""
    stage = ControlStage().ready("ann")
    texts = [f"{number:02}: {'x' * 2000}" for number in range(25)]

    for text in [*texts, texts[-1], texts[-2]]:
        stage.time.moment += timedelta(seconds=1)
        note_trouble(stage.ports, APP, text)

    assert stage.beat()["notes"] == [text[:1000] for text in texts[-20:]]


def test_of_a_session_that_is_gone_nothing_stays_noted():
    stage = ControlStage().ready("ann", "bob")

    stage.stop("bob")
    stage.pass_time(60, alive=["ann"])

    names = stage.memory.notes.of(APP)
    assert [name for name in names if name.startswith("environment:")] == [f"environment:{stage.session_queue()}"]


def refusing(text):
    def observe(_split, _registry):
        raise EffectRefused(text)

    return observe


def test_a_round_stops_when_the_record_changes_under_it():
    """A session that starts while a round works is looked at before anything else is done."""
    stage = ControlStage()
    stage.start()
    create = stage.queues.create
    made = []

    def joined_meanwhile(name, queue, *, target, session):
        made.append(name)
        if len(made) == 1:
            stage.start("bob", color="blue")
        return create(name, queue, target=target, session=session)

    stage.queues.create = joined_meanwhile
    stage.pass_time(1)

    split = stage.split()
    assert split is not None
    assert len(made) == len(set(made)) == 3
    assert len(split.sessions) == 2


def test_signs_of_life_do_not_stop_a_round():
    stage = ControlStage()
    stage.start()
    create = stage.queues.create
    made = []

    def alive_meanwhile(name, queue, *, target, session):
        made.append(name)
        stage.time.moment = stage.time.moment.replace(microsecond=len(made))
        stage.beat()
        return create(name, queue, target=target, session=session)

    stage.queues.create = alive_meanwhile
    stage.pass_time(1)

    assert len(made) == 2


def test_there_is_one_chain_of_rounds_for_each_target():
    stage = ControlStage()

    for name in ("ann", "bob", "cleo"):
        stage.start(name, color=name)

    assert len(stage.control_queue.asked) == 1
    stage.pass_time(2)
    assert len(stage.control_queue.asked) == 1


def test_a_message_that_comes_twice_makes_no_second_chain():
    stage = ControlStage()
    stage.start()
    ((_, command),) = stage.control_queue.asked

    stage.pass_time(1)
    stage.obey(command)

    assert len(stage.control_queue.asked) == 1


def test_a_chain_that_broke_is_begun_anew():
    stage = ControlStage()
    stage.start()
    stage.control_queue.asked.clear()

    stage.time.moment = stage.time.moment.replace(second=20)
    stage.beat()
    stage.stop()

    assert len(stage.control_queue.asked) == 1


def test_a_split_that_cannot_be_read_is_let_alone_and_the_others_are_woken():
    stage = ControlStage()
    stage.start()
    stage.memory.locks.held.clear()
    stage.memory.splits.unreadable = [UnreadableSplit("lambda/aaa", "version 2")]

    assert RoundDesk(stage.ports).wake_all() == 1


def test_what_starts_while_the_last_round_ends_is_not_forgotten():
    stage = ControlStage()
    stage.start()
    leave = stage.memory.locks.leave
    joined = []

    def join_first(target, *, holder):
        if not joined and is_at_rest(stage.split()):
            joined.append(stage.start("bob", color="blue"))
        leave(target, holder=holder)

    stage.memory.locks.leave = join_first
    stage.pass_time(20, alive=["ann", "bob"])

    assert joined
    assert stage.beat("bob")["phase"] == "ready"


def test_a_round_for_a_split_that_is_gone_does_nothing():
    stage = ControlStage()

    assert stage.ask("reconcile", target=str(APP), holder="x") is None
    assert stage.control_queue.asked == []


def test_what_a_session_left_goes_to_who_wants_it_next():
    stage = ControlStage().ready("ann", "bob")
    stage.start("cleo", color="bob", config=config("bob", queue_mode="mirror"))
    stage.pass_time(6, alive=["ann", "bob", "cleo"])
    bobs, cleos = stage.session_queue("bob"), stage.session_queue("cleo")
    stage.queues.queues[stage.session_queue("ann")].waiting += [message("for bob", "bob"), message("for nobody", "x")]

    stage.stop("ann")
    stage.pass_time(40, alive=["bob", "cleo"])

    split = stage.split()
    assert split is not None
    deployed = split.queues[0].deployed
    assert stage.sender.bodies(bobs) == ["for bob"]
    assert stage.sender.bodies(cleos) == []
    assert stage.sender.bodies(deployed) == ["for nobody"]
    returned = [event for event in stage.events if event.kind == "returned"]
    assert [(event.outcome, event.labels["session"], event.destination) for event in returned] == [
        ("session", "ann", bobs),
        ("deployed", "ann", deployed),
    ]


def test_a_message_that_every_queue_rejects_is_dead_lettered():
    stage = ControlStage().ready("ann", "bob")
    stage.sender.refused_bodies["bad"] = "InvalidMessageContents"
    stage.queues.queues[stage.session_queue("ann")].waiting += [message("bad"), message("good")]

    stage.stop("ann")
    stage.pass_time(40, alive=["bob"])

    ((dead_letter, original, reason),) = stage.dead_letters.messages
    assert (dead_letter.body, original, reason) == ("bad", MEMES, "InvalidMessageContents")
    assert [event.reason for event in stage.events if event.kind == "dead_letter"] == ["InvalidMessageContents"]
    assert "ann" not in [session.session_id for session in stage.split().sessions]


@pytest.mark.parametrize("trouble", ["queue", "call", "burial"])
def test_what_cannot_be_returned_now_stays_and_is_tried_again(trouble, monkeypatch):
    stage = ControlStage().ready("ann", "bob")
    deployed = stage.split().queues[0].deployed
    anns = stage.session_queue("ann")
    stage.queues.queues[anns].waiting.append(message("late"))
    with monkeypatch.context() as broken:
        if trouble == "queue":
            broken.setattr(stage.sender, "failing", {deployed})
        elif trouble == "call":
            broken.setattr(stage.sender, "send", failing)
        else:
            broken.setattr(stage.sender, "refusing", {deployed: "AccessDenied"})
            broken.setattr(stage.dead_letters, "dead_letter", failing)
        stage.stop("ann")
        stage.pass_time(30, alive=["bob"])
        assert [one.body for one in stage.queues.queues[anns].in_flight.values()] == ["late"]

    stage.queues.come_back(anns)
    stage.pass_time(40, alive=["bob"])

    assert stage.sender.bodies(deployed) == ["late"]
    assert anns not in stage.queues.queues


def failing(*_args: object, **_fields: object) -> list[Batch]:
    raise EffectFailed("ServiceUnavailable")


def test_a_filter_that_is_too_slow_ends_its_session_and_not_the_return():
    stage = ControlStage().ready("ann", "bob")
    stage.start("slow", color="slow")
    stage.pass_time(6, alive=["ann", "bob", "slow"])
    stage.queues.queues[stage.session_queue("ann")].waiting.append(message("x", "red"))

    stage.stop("ann")
    stage.pass_time(15, alive=["bob", "slow"])

    heard = stage.beat("slow")
    assert heard["phase"] == "ending"
    assert heard["reason"].startswith("filter too slow")
    assert stage.sender.bodies(stage.split().queues[0].deployed) == ["x"]


def test_messages_that_there_was_no_time_to_decide_on_come_again(monkeypatch):
    stage = ControlStage().ready("ann", "bob")
    anns, pattern = stage.session_queue("ann"), stage.ports.compiler.pattern
    stage.queues.queues[anns].waiting += [message(f"{n}", "x") for n in range(6)]

    def taking_time(text, *, case_sensitive):
        def matches(_text):
            stage.time.moment += timedelta(seconds=3)
            return False

        return SimpleNamespace(matches=matches, span=pattern(text, case_sensitive=case_sensitive).span)

    monkeypatch.setattr(stage.ports.compiler, "pattern", taking_time)
    stage.stop("ann")
    stage.pass_time(20, alive=["bob"])

    assert [len(batch.deliveries) for batch in stage.sender.calls] == [2]
    assert [one.body for one in stage.queues.queues[anns].in_flight.values()] == ["2", "3", "4", "5"]


def test_what_the_deployed_consumer_left_goes_back_to_the_original():
    stage = ControlStage().ready("ann")
    deployed = stage.split().queues[0].deployed
    stage.stop()
    stage.pass_time(25)
    stage.queues.not_taken = {"second"}

    stage.targets.states[APP] = TargetState.ORIGINAL  # somebody deployed it anew, so it does not drain any more
    stage.queues.queues[deployed].waiting += [message("first"), message("second")]
    stage.pass_time(40)
    assert stage.queues.returned[MEMES][0].body == "first"

    stage.queues.not_taken = set()
    stage.queues.come_back(deployed)
    stage.pass_time(60)

    assert [one.body for one in stage.queues.returned[MEMES]] == ["first", "second"]
    assert [event.outcome for event in stage.events if event.kind == "returned"] == ["original", "original"]
    assert stage.split() is None


def test_more_than_one_batch_is_returned_in_one_round():
    stage = ControlStage().ready("ann", "bob")
    stage.queues.queues[stage.session_queue("ann")].waiting += [message(f"{n}") for n in range(25)]

    stage.stop("ann")
    stage.pass_time(25, alive=["bob"])

    assert len(stage.sender.bodies(stage.split().queues[0].deployed)) == 25


def test_a_round_returns_for_no_longer_than_its_record_is_good_for():
    stage = ControlStage().ready("ann", "bob")
    stage.queues.queues[stage.session_queue("ann")].waiting += [message(f"{n}") for n in range(60)]
    send = stage.sender.send
    rounds = []

    def slowly(batch):
        stage.time.moment = stage.time.moment.replace(microsecond=0) + 3 * (stage.ports.patience.settle / 10)
        rounds.append(len(batch.deliveries))
        return send(batch)

    stage.sender.send = slowly
    stage.stop("ann")
    stage.pass_time(60, alive=["bob"])

    assert sum(rounds) == 60


@pytest.mark.parametrize(("killed", "starts"), [(False, 2), (True, 3)], ids=["none", "one"])
def test_forwarding_of_a_queue_goes_on_until_no_call_is_unfinished_since_it_was_started(killed, starts):
    stage = ControlStage(ORDERS).ready("ann", "bob")
    stage.pass_time(10, alive=["ann", "bob"])
    stage.stop("ann")
    if killed:
        stage.memory.ledger.begin(ORDERS, "killed", now=stage.time.now())

    stage.pass_time(200, alive=["bob"])

    split = stage.split()
    assert split is not None
    assert [session.session_id for session in split.sessions] == ["bob"]
    assert stage.forwarders.states[ORDERS].state is ForwardingState.ON
    assert sum(name.startswith("forwarding-started") for name in stage.memory.notes.of(APP)) == starts


def test_a_split_ends_in_every_stage_by_itself():
    stage = ControlStage(MEMES, ORDERS)
    stage.targets.is_slow = stage.forwarders.is_slow = True
    stage.start("ann")
    seen = set()

    for second in range(400):
        stage.pass_time(1, alive=["ann"] if second < 40 else [])
        stage.targets.settle()
        stage.forwarders.settle()
        if second == 40:
            stage.stop("ann")
        split = stage.split()
        seen.add(split.stage if split else None)

    assert seen == {*Stage, None}
    assert stage.split() is None
