"""The life of a split by commands: resources are created and undone, and every client receives the reason."""

from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace

import pytest

from signalbox.errors import EffectFailed, EffectRefused, RejectedError
from signalbox.queues import QueueName
from signalbox.sending import Batch
from signalbox.splitting.control.commands import Reconcile
from signalbox.splitting.control.presentation import UnknownSession
from signalbox.splitting.control.problems import problems
from signalbox.splitting.control.reconcile import is_at_rest
from signalbox.splitting.control.reconcile_loop import MAXIMUM_RUNS
from signalbox.splitting.model.observed_state import ForwardingState, QueueUse, TargetState
from signalbox.splitting.model.split import Stage
from signalbox.splitting.ports import UnreadableSplit
from tests.unit.splitting.control.control_stage import APP, MEMES, ORDERS, OTHER_APP, TIMINGS, ControlStage, message


def test_the_last_stop_undoes_the_split():
    stage = ControlStage().ready("ann")

    assert stage.stop()["phase"] == "ending"
    stage.pass_time(120)

    assert stage.split() is None
    assert stage.queues.queues == {}
    assert stage.forwarders.states == {}
    assert stage.targets.states[APP] is TargetState.ORIGINAL
    assert stage.memory.locks.held == {}
    assert stage.memory.annotations.annotations == {}
    assert stage.outcomes()[-1] == ("session", "ended")
    for command in (stage.heartbeat, stage.stop):
        with pytest.raises(UnknownSession, match="has no session 'ann': it has ended, or the name is wrong"):
            command()


def test_a_changed_registry_applies_to_the_next_split():
    stage = ControlStage().ready("ann")

    stage.knows(APP, QueueName("other"))
    status = stage.start("bob", color="blue")

    assert [queue["original"] for queue in status["queues"]] == [MEMES]
    for name in ("ann", "bob"):
        stage.stop(name)
    stage.pass_time(150)
    assert [queue["original"] for queue in stage.start("bob")["queues"]] == ["other"]


def test_a_queue_can_be_split_for_one_target_only():
    stage = ControlStage()
    stage.knows(OTHER_APP, MEMES)
    stage.start()

    with pytest.raises(RejectedError, match="queue 'memes' is already split for lambda/meme-app"):
        stage.start("bob", target=OTHER_APP)
    assert stage.split(OTHER_APP) is None


def test_a_refused_start_is_undone_with_the_reason():
    stage = ControlStage()
    status = stage.start()
    (name,) = (queue["temporary"] for queue in status["queues"])
    stage.queues.refused[name] = f"AccessDenied: queue {name!r}"

    stage.pass_time(5, alive=["ann"])
    status = stage.heartbeat()

    assert (status["phase"], status["reason"]) == ("ending", f"AccessDenied: queue {name!r}")
    stage.pass_time(60)
    assert stage.split() is None
    assert stage.queues.queues == {}
    assert stage.targets.switches == []


def test_a_refused_switch_ends_all_sessions():
    stage = ControlStage()
    stage.targets.refused[APP] = "ResourceNotFoundException: meme-app"
    stage.start("ann")
    stage.start("bob", color="blue")

    stage.pass_time(6, alive=["ann", "bob"])

    assert {stage.heartbeat(name)["reason"] for name in ("ann", "bob")} == {"ResourceNotFoundException: meme-app"}


def test_a_temporary_failure_is_retried_and_reported():
    stage = ControlStage()
    stage.targets.failing[APP] = "Throttling: meme-app"
    stage.start()
    stage.pass_time(6, alive=["ann"])

    status = stage.heartbeat()
    stage.targets.failing.clear()
    stage.pass_time(12, alive=["ann"])

    assert (status["phase"], status["notes"]) == ("starting", ["Throttling: meme-app"])
    assert stage.heartbeat()["phase"] == "ready"


def test_notes_on_a_queue_are_reported():
    stage = ControlStage()
    stage.queues.notes = ["no dead-letter queue", "no policy"]
    stage.start()

    stage.pass_time(3, alive=["ann"])

    assert stage.heartbeat()["notes"] == ["no dead-letter queue", "no policy"]


def test_a_target_that_cannot_be_observed_ends_a_start(monkeypatch):
    stage = ControlStage()
    stage.start()

    monkeypatch.setattr(stage.targets, "observe", refusing("AccessDenied: meme-app"))
    stage.pass_time(1)

    assert stage.heartbeat()["reason"] == "AccessDenied: meme-app"


def test_a_target_that_cannot_be_observed_ends_no_running_session(monkeypatch):
    stage = ControlStage().ready("ann")

    monkeypatch.setattr(stage.targets, "observe", refusing("AccessDenied: meme-app"))
    stage.ask("reconcile", target=str(APP), holder="schedule")

    assert stage.heartbeat()["phase"] == "ready"
    assert stage.heartbeat()["notes"] == ["AccessDenied: meme-app"]


def test_the_newest_problems_are_reported_once_oldest_first():
    """They share one item of the table with the data that undoes the split."""
    stage = ControlStage().ready("ann")
    texts = [f"{number:02}: {'x' * 2000}" for number in range(25)]

    for text in [*texts, texts[-1], texts[-2]]:
        stage.time.moment += timedelta(seconds=1)
        stage.problems.record(APP, text)

    assert stage.heartbeat()["notes"] == [text[:1000] for text in texts[-20:]]


def test_the_annotations_of_an_ended_session_are_deleted():
    stage = ControlStage().ready("ann", "bob")

    stage.stop("bob")
    stage.pass_time(60, alive=["ann"])

    names = stage.memory.annotations.of(APP)
    assert [name for name in names if name.startswith("environment:")] == [f"environment:{stage.session_queue()}"]


def refusing(text):
    def observe(_split, _registry):
        raise EffectRefused(text)

    return observe


def test_a_reconcile_stops_when_its_record_changes():
    """A session that starts during a reconcile is considered before anything else is done."""
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


def test_heartbeats_do_not_stop_a_reconcile():
    stage = ControlStage()
    stage.start()
    create = stage.queues.create
    made = []

    def alive_meanwhile(name, queue, *, target, session):
        made.append(name)
        stage.time.moment = stage.time.moment.replace(microsecond=len(made))
        stage.heartbeat()
        return create(name, queue, target=target, session=session)

    stage.queues.create = alive_meanwhile
    stage.pass_time(1)

    assert len(made) == 2


def test_each_target_has_one_chain_of_reconciles():
    stage = ControlStage()

    for name in ("ann", "bob", "cleo"):
        stage.start(name, color=name)

    assert len(stage.control_queue.asked) == 1
    stage.pass_time(2)
    assert len(stage.control_queue.asked) == 1


def test_a_redelivered_message_starts_no_second_chain():
    stage = ControlStage()
    stage.start()
    ((_, command),) = stage.control_queue.asked

    stage.pass_time(1)
    stage.execute(command)

    assert len(stage.control_queue.asked) == 1


def test_a_broken_chain_is_started_again():
    stage = ControlStage()
    stage.start()
    stage.control_queue.asked.clear()

    stage.time.moment = stage.time.moment.replace(second=20)
    stage.heartbeat()
    stage.stop()

    assert len(stage.control_queue.asked) == 1


def test_an_unreadable_split_is_skipped_and_the_others_are_reconciled():
    stage = ControlStage()
    stage.start()
    stage.memory.locks.held.clear()
    stage.memory.splits.unreadable = [UnreadableSplit("lambda/aaa", "version 2")]

    assert stage.loop.wake_all(stage.task_time()) == 1


def test_a_session_that_starts_as_the_chain_ends_is_reconciled():
    stage = ControlStage()
    stage.start()
    leave = stage.memory.locks.release
    joined = []

    def join_first(target, *, holder):
        if not joined and is_at_rest(stage.split()):
            joined.append(stage.start("bob", color="blue"))
        leave(target, holder=holder)

    stage.memory.locks.release = join_first
    stage.pass_time(20, alive=["ann"])

    assert joined
    assert stage.heartbeat("bob")["phase"] == "ready"


def test_a_reconcile_without_a_split_does_nothing():
    stage = ControlStage()

    assert stage.ask("reconcile", target=str(APP), holder="x") is None
    assert stage.control_queue.asked == []


@pytest.mark.parametrize("s3_event", [True, False])
def test_unconsumed_s3_events_are_matched_by_the_function_that_reads_the_metadata(s3_event):
    stage = ControlStage()
    stage.targets.found[APP] = [replace(one, s3_event=s3_event) for one in stage.targets.found[APP]]
    by_metadata = {"queue_type": "SQS", "jq_filter": '.S3Metadata.client == "a"'}
    stage.start("ann", color="ann")
    stage.start("bob", config={"feature": {"split_queues": {"*": by_metadata}}})
    stage.pass_time(15, alive=["ann", "bob"])
    deployed = stage.split().queues[0].deployed
    stage.queues.queues[stage.session_queue("ann")].waiting += [message("unread", "ann")]

    stage.stop("ann")
    stage.pass_time(40, alive=["bob"])

    (returned,) = [event for event in stage.events if event.kind == "returned"]
    assert (returned.destination, returned.labels["session"]) == (MEMES if s3_event else deployed, "ann")
    assert [one.body for one in stage.queues.returned.get(MEMES, [])] == (["unread"] if s3_event else [])


def test_a_returned_message_that_no_queue_accepts_is_dead_lettered():
    stage = ControlStage().ready("ann", "bob")
    stage.sender.refused_bodies["bad"] = "InvalidMessageContents"
    stage.queues.queues[stage.session_queue("ann")].waiting += [message("bad"), message("good")]

    stage.stop("ann")
    stage.pass_time(40, alive=["bob"])

    ((dead_letter, original, reason),) = stage.dead_letters.messages
    assert (dead_letter.body, original, reason) == ("bad", MEMES, "InvalidMessageContents")
    assert [event.reason for event in stage.events if event.kind == "dead_letter"] == ["InvalidMessageContents"]
    assert "ann" not in [session.session_id for session in stage.split().sessions]


def test_unconsumed_messages_go_past_a_session_whose_queue_is_closed():
    stage = ControlStage().ready("ann", "bob")
    stage.start("cyd", color="ann")
    stage.pass_time(6, alive=["ann", "bob", "cyd"])
    deployed, cyds = stage.split().queues[0].deployed, stage.session_queue("cyd")
    stage.queues.queues[stage.session_queue("ann")].waiting += [message("1", "ann"), message("2", "bob")]
    stage.memory.uses.close(cyds, seen=QueueUse(), now=stage.time.now())

    stage.stop("ann")
    stage.pass_time(40, alive=["bob", "cyd"])

    assert (stage.sender.bodies(cyds), stage.sender.bodies(deployed)) == ([], ["1"])
    assert stage.sender.bodies(stage.session_queue("bob")) == ["2"]


def test_a_message_is_not_returned_into_a_closed_queue():
    stage = ControlStage().ready("ann", "bob")
    deployed, anns = stage.split().queues[0].deployed, stage.session_queue("ann")
    stage.queues.queues[anns].waiting.append(message("1"))
    stage.memory.uses.close(deployed, seen=QueueUse(), now=stage.time.now())

    stage.stop("ann")
    stage.pass_time(40, alive=["bob"])

    assert stage.sender.bodies(deployed) == []
    assert [one.body for one in stage.queues.queues[anns].in_flight.values()] == ["1"]


@pytest.mark.parametrize("trouble", ["queue", "call", "burial"])
def test_a_failed_return_is_retried(trouble, monkeypatch):
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


def test_a_filter_that_is_stopped_ends_its_session_and_not_the_return():
    stage = ControlStage().ready("ann", "bob")
    stage.start("slow", color="slow")
    stage.pass_time(6, alive=["ann", "bob", "slow"])
    stage.queues.queues[stage.session_queue("ann")].waiting.append(message("x", "red"))

    stage.stop("ann")
    stage.pass_time(10, alive=["bob", "slow"])

    status = stage.heartbeat("slow")
    assert status["phase"] == "ending"
    assert status["reason"].startswith("filter stopped")
    assert stage.sender.bodies(stage.split().queues[0].deployed) == ["x"]


def test_one_reconcile_returns_several_batches():
    stage = ControlStage().ready("ann", "bob")
    stage.queues.queues[stage.session_queue("ann")].waiting += [message(f"{n}") for n in range(25)]

    stage.stop("ann")
    stage.pass_time(25, alive=["bob"])

    assert len(stage.sender.bodies(stage.split().queues[0].deployed)) == 25


def test_a_reconcile_returns_messages_only_while_its_record_is_valid():
    stage = ControlStage().ready("ann", "bob")
    stage.queues.queues[stage.session_queue("ann")].waiting += [message(f"{n}") for n in range(60)]
    send = stage.sender.send
    rounds = []

    def slowly(batch):
        stage.time.moment = stage.time.moment.replace(microsecond=0) + 3 * (TIMINGS.settle / 10)
        rounds.append(len(batch.deliveries))
        return send(batch)

    stage.sender.send = slowly
    stage.stop("ann")
    stage.pass_time(60, alive=["bob"])

    assert sum(rounds) == 60


@pytest.mark.parametrize(
    ("killed_after", "starts"),
    [pytest.param(None, 2, id="none"), pytest.param(1, 2, id="early"), pytest.param(45, 3, id="just before it stops")],
)
def test_forwarding_continues_until_what_killed_calls_left_is_sent_again(killed_after, starts):
    stage, begun = ControlStage(ORDERS), []
    start = stage.forwarders.start
    stage.forwarders.start = lambda original: [begun.append(original), start(original)]
    stage.ready("ann", "bob")
    stage.pass_time(10, alive=["ann", "bob"])
    stage.memory.uses.extend(stage.session_queue("ann", ORDERS), until=stage.time.now())
    stage.stop("ann")
    if killed_after is not None:
        stage.pass_time(killed_after, alive=["bob"])
        call = stage.memory.ledger.begin(ORDERS, ["killed"], now=stage.time.now())

        stage.pass_time(30, alive=["bob"])
        stage.memory.ledger.finish(call, ["killed"], redelivered=False)

    stage.pass_time(100, alive=["bob"])

    split = stage.split()
    assert split is not None
    assert [session.session_id for session in split.sessions] == ["bob"]
    assert stage.forwarders.states[ORDERS].state is ForwardingState.ON
    assert begun == [ORDERS] * starts
    assert not any(name.startswith("forwarding-stopped") for name in stage.memory.annotations.of(APP))


def test_an_abandoned_split_ends_in_every_stage():
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


def never_at_rest(stage: ControlStage) -> None:
    """Let a reconcile fail in every run, as when AWS does for a long time."""

    def failing(_queues: object) -> None:
        raise EffectFailed("ServiceUnavailable at ListEventSourceMappings")

    stage.forwarders = SimpleNamespace(observe=failing)


def test_a_chain_of_reconciles_counts_its_runs_in_the_holder():
    stage = ControlStage()
    never_at_rest(stage)
    stage.start()

    counts = []
    for _ in range(3):
        counts += [command.runs_before for _, command in stage.control_queue.asked]
        stage.pass_time(1)

    assert counts == [0, 1, 2]


@pytest.mark.parametrize("holder", [pytest.param("x#" + "9" * 5000, id="long"), "x#-1", "x#1e3", "x#²", "x#1\n", "x"])
def test_a_holder_of_a_user_counts_no_runs(holder):
    assert Reconcile(APP, holder).runs_before == 0


def test_a_chain_that_never_comes_to_rest_ends_itself_and_says_so():
    stage = ControlStage()
    never_at_rest(stage)
    stage.start()

    stage.pass_time(6 * MAXIMUM_RUNS)

    assert stage.control_queue.asked == []
    noted = problems(stage.memory.annotations.of(APP))
    assert f"its reconcile is not at rest after {MAXIMUM_RUNS} runs, which end here" in noted


def test_the_schedule_begins_another_chain_after_one_that_ended_itself():
    stage = ControlStage()
    never_at_rest(stage)
    stage.start()
    stage.pass_time(6 * MAXIMUM_RUNS)

    assert stage.loop.wake_all(stage.task_time()) == 1

    assert [command.runs_before for _, command in stage.control_queue.asked] == [0]


@pytest.mark.parametrize(
    ("holder", "runs"),
    [("k3f", 0), ("k3f#17", 17), ("k3f#", 0), ("k3f#x", 0), ("h0", 0)],
)
def test_a_holder_of_another_version_has_no_runs_before(holder, runs):
    assert Reconcile(APP, holder).runs_before == runs


@pytest.mark.parametrize("others", [("bob",), ()], ids=["another session goes on", "the last session"])
def test_a_fifo_queue_does_not_wait_for_what_a_consumer_holds_longer_than_its_visibility_timeout(others):
    """SQS lets it hold a message for twelve hours."""
    stage = ControlStage(ORDERS).ready("ann", *others)
    name = stage.session_queue("ann", ORDERS)
    stage.memory.uses.extend(name, until=stage.time.now())
    stage.queues.queues[name].in_flight["handle"] = message("held", color="ann", group="g")
    stage.stop("ann")

    stage.pass_time(60, alive=others)
    paused = stage.forwarders.states[ORDERS].state
    stage.pass_time(180, alive=others)

    assert (paused, stage.forwarders.states[ORDERS].state) == (ForwardingState.OFF, ForwardingState.ON)
    notes = problems(stage.memory.annotations.of(APP))
    assert notes == ["session 'ann': a consumer holds messages of 'orders.fifo', which will be behind newer ones"]

    deployed = stage.split().queues[0].deployed
    stage.queues.come_back(name)
    stage.pass_time(300, alive=others)

    assert stage.sender.bodies(deployed) == ["held"]
    split = stage.split()
    assert [one.session_id for one in split.sessions] == ["bob"] if others else split is None
