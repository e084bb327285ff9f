"""Commands of the control queue: parsing, and the results of commands that change nothing."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.control.delivery import CommandDelivery, Overtaken
from signalbox.control.envelope import Envelope, InvalidCommand, InvalidEnvelope
from signalbox.errors import EffectFailed, RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.control.admission import SessionRejected
from signalbox.splitting.control.command_handlers import FILTER_TIME, NoSplit, TooManyMessages
from signalbox.splitting.control.commands import COMMANDS, Reconcile, reconcile_body
from signalbox.splitting.control.ports import NoRegistry
from signalbox.splitting.control.presentation import UnknownSession
from signalbox.splitting.control.record_updates import RecordBusy
from signalbox.splitting.control.registries import RegistryTooLarge
from signalbox.splitting.control.session_start import ConfigTooLarge
from signalbox.splitting.ports import UnreadableSplit
from tests.unit.splitting.consumers.registries import new, new_queue, old, old_queue, property_list
from tests.unit.splitting.control.control_stage import APP, DISCOVERED, MEMES, OTHER_APP, ControlStage, config


def envelope(**fields: object) -> Envelope:
    return Envelope.parse(json.dumps({"id": "1", **fields}))


def problems(**fields: object) -> list[str]:
    with pytest.raises(InvalidCommand) as refusal:
        envelope(**fields).command(COMMANDS)
    return str(refusal.value).splitlines()


def test_an_envelope_says_whether_a_reply_is_wanted():
    found = envelope(command="status", reply=True)

    assert (found.request_id, found.wants_reply) == ("1", True)
    assert envelope(command="status").wants_reply is False


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{", "command: not JSON"),
        ("[]", "expected an object"),
        ("{}", "id: is missing or empty"),
        (f'{{"id": "{"1" * 201}", "reply": true}}', "id: has 201 characters; at most 200 are allowed"),
        ('{"id": "1", "reply": "https://sqs/1/memes"}', "reply: expected true or false"),
    ],
    ids=["no-json", "no-object", "no-id", "long-id", "no-flag"],
)
def test_a_message_without_an_id_is_not_an_envelope(body, problem):
    with pytest.raises(InvalidEnvelope, match=problem):
        Envelope.parse(body)


def test_all_problems_of_a_command_are_reported_together():
    found = problems(command="start", target="pod/x", session="a b", owner="ö" * 200, since_seconds=10**30, extra=1)

    assert [problem.partition(":")[0] for problem in found] == ["extra", "owner", "target", "session", "since_seconds"]


def steal(color: str, **fields: object) -> dict[str, object]:
    return {"queue_type": "SQS", "message_filter": {"color": color}, **fields}


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"command": "dance"}, "command: expected one of apply, remove, registries, discover, start"),
        ({"command": "strat"}, "not 'strat'; did you mean 'start'?"),
        ({"command": "apply", "documents": "x"}, "documents: expected a list of documents"),
        ({"command": "stop", "target": "lambda/x"}, "session: is missing or empty"),
        ({"command": "stop", "session": "x"}, "target: is missing or empty"),
        ({"command": "stop", "target": "lambda/x", "session": "x" * 65}, "session: has 65 characters"),
        ({"command": "start", "target": "lambda/x", "session": "x"}, "owner: is missing or empty"),
        ({"command": "reconcile", "target": "lambda/x"}, "holder: is missing or empty"),
        ({"command": "audit"}, "message_id: is missing or empty"),
        ({"command": "audit", "message_id": "x" * 101}, "message_id: has 101 characters; at most 100"),
        ({"command": "audit", "message_id": "x", "days": 0}, "days: expected 1 to 3653, not 0"),
        ({"command": "audit", "message_id": "x", "days": 3654}, "days: expected 1 to 3653, not 3654"),
        ({"command": "audit", "message_id": "x", "days": "7"}, "days: expected a whole number"),
    ],
)
def test_a_problem_of_a_command_is_reported(fields, problem):
    assert problem in "\n".join(problems(**fields))


def test_a_reconcile_message_parses_to_its_command():
    command = Reconcile(APP, "holder")

    assert Envelope.parse(reconcile_body(command)).command(COMMANDS) == command


def test_registries_are_stored_by_target_with_their_property_lists():
    stage = ControlStage()
    lists = property_list(sns="true")
    theirs = new(new_queue({"env": "Q"}, queueConfig="options"), name=OTHER_APP.name)
    ours = [old({"one": old_queue()}), old({"two": old_queue()})]

    result = stage.ask("apply", documents=[ours[0], None, theirs, lists, ours[1]])

    assert result == {"targets": ["lambda/meme-app", "lambda/other-app"]}
    listed = {one["target"]: one["documents"] for one in stage.ask("registries")}
    assert listed == {"lambda/meme-app": [ours[0], lists, ours[1]], "lambda/other-app": [theirs, lists]}


def test_a_registry_that_is_too_large_is_refused():
    stage = ControlStage()

    with pytest.raises(RegistryTooLarge, match="registry of lambda/meme-app has"):
        stage.ask("apply", documents=[old({f"queue-{n}": old_queue() for n in range(2000)})])


def test_a_registry_is_removed_and_a_running_split_keeps_it():
    stage = ControlStage().ready("ann")

    assert stage.ask("remove", target=str(APP)) == {"target": "lambda/meme-app"}

    assert stage.ask("registries") == []
    assert stage.start("ann", color="ann")["phase"] == "ready"


def test_a_repeated_command_ends_no_later_session_and_removes_no_later_registry():
    stage = ControlStage()
    repeated = CommandDelivery(stage.time.now() - timedelta(seconds=1), is_repeated=True)
    stage.start("ann")

    with pytest.raises(Overtaken, match="changed session 'ann'"):
        stage.ask("stop", target=str(APP), session="ann", delivery=repeated)
    with pytest.raises(Overtaken, match="changed the registry of lambda/meme-app"):
        stage.ask("remove", target=str(APP), delivery=repeated)

    assert len(stage.ask("registries")) == 1
    first = replace(repeated, is_repeated=False)
    assert stage.ask("stop", target=str(APP), session="ann", delivery=first)["phase"] == "ending"


def test_a_missing_registry_is_not_removed_and_the_others_are_named():
    stage = ControlStage()

    with pytest.raises(NoRegistry, match="lambda/other-app has no registry; targets with a registry: lambda/meme-app"):
        stage.ask("remove", target=str(OTHER_APP))
    stage.ask("remove", target=str(APP))
    with pytest.raises(NoRegistry, match="targets with a registry: none"):
        stage.ask("remove", target=str(APP))


def test_a_session_without_a_queue_on_sqs_is_refused_before_anything_is_stored():
    stage = ControlStage()
    queues = {"orders": {"queue_type": "Kafka"}, "bills": {"queue_type": "RMQ"}}

    with pytest.raises(RejectedError, match=r"no queue is on SQS.*: orders \(Kafka\), bills \(RMQ\)"):
        stage.start(config={"feature": {"split_queues": queues}})
    assert stage.split() is None


NOTE = "memes: session 'ann' of ann@laptop has the same filter and receives the messages first"


@pytest.mark.parametrize(
    ("first", "second", "notes"),
    [
        ({"*": steal("red")}, {"*": steal("red")}, [NOTE]),
        ({"*": steal("red")}, [{"queue_id": "memes", **steal("red")}], []),
        ([{"queue_id": "memes", **steal("red")}], [{"queue_id": "memes", **steal("red")}], [NOTE]),
        ({"*": steal("red")}, {"*": steal("blue")}, []),
        ({"*": steal("red"), "memes": steal("blue")}, {"*": steal("red")}, []),
        ({"*": steal("red", queue_mode="mirror")}, {"*": steal("red", queue_mode="mirror")}, []),
    ],
    ids=["same", "other form", "list", "other filter", "entry of the queue", "copies"],
)
def test_a_session_whose_messages_an_earlier_one_receives_has_a_note(first, second, notes):
    stage = ControlStage()
    earlier = stage.start("ann", config={"feature": {"split_queues": first}})
    stage.pass_time(15, alive=["ann"])

    later = stage.start("bob", config={"feature": {"split_queues": second}})

    assert (earlier["notes"], later["notes"]) == ([], notes)
    assert stage.heartbeat("ann")["notes"] == []


def test_an_ending_session_has_no_precedence():
    stage = ControlStage()
    stage.start("ann", color="red")
    stage.start("bob", color="red")
    stage.pass_time(15, alive=["ann", "bob"])

    ending = stage.stop("ann")

    assert (ending["phase"], ending["notes"]) == ("ending", [])
    assert stage.heartbeat("bob")["notes"] == []


def test_a_target_is_discovered():
    assert ControlStage().ask("discover", target="lambda/x") == {"documents": [{**DISCOVERED, "target": "lambda/x"}]}


def test_nothing_starts_without_a_registry():
    with pytest.raises(NoRegistry, match="apply or discover one first"):
        ControlStage().start(target=OTHER_APP)


def test_an_unknown_target_is_refused_before_anything_is_stored():
    stage = ControlStage()
    stage.targets.found.clear()

    with pytest.raises(RejectedError, match="there is no target lambda/meme-app"):
        stage.start()
    assert stage.split() is None


def test_invalid_filters_are_refused_before_anything_is_stored():
    stage = ControlStage()

    with pytest.raises(RejectedError, match="not a regular expression"):
        stage.start(color="(")
    with pytest.raises(SessionRejected, match="has no queues orders"):
        stage.start(config={"feature": {"split_queues": {"orders": {"queue_type": "SQS"}}}})
    assert stage.split() is None


def test_only_the_filters_of_a_config_are_stored():
    stage = ControlStage()
    stage.start()

    split = stage.split()
    assert split is not None
    assert json.loads(split.sessions[0].config) == {
        "feature": {"split_queues": {"*": {"queue_type": "SQS", "message_filter": {"color": "red"}}}}
    }


def test_filters_that_are_too_large_are_refused():
    stage = ControlStage()

    with pytest.raises(ConfigTooLarge, match="at most 32768"):
        stage.start(color="x" * 33_000)


def test_a_record_that_changes_at_every_attempt_is_busy():
    stage = ControlStage()
    stage.start()
    stage.memory.splits.save = lambda *_, **__: None

    with pytest.raises(RecordBusy):
        stage.stop()
    with pytest.raises(RecordBusy):
        stage.start("bob")


def test_a_record_deleted_during_a_reconcile_is_read_again():
    stage = ControlStage().ready("ann")
    stage.stop()
    splits, find = stage.memory.splits, stage.memory.splits.find
    looks = []

    def gone_later(target):
        looks.append(target)
        return find(target) if len(looks) == 1 else None

    splits.find = gone_later
    stage.pass_time(1)

    assert stage.control_queue.asked == []


def test_status_has_the_splits_with_counts_and_problems():
    stage = ControlStage().ready("ann")
    split = stage.split()
    assert split is not None

    (result,) = stage.ask("status", target="lambda/meme-app")["splits"]

    assert result["target_reads"] == "temporary"
    assert result["queues"] == [
        {
            "queue_id": "memes",
            "original": MEMES,
            "deployed": split.queues[0].deployed,
            "forwarding": "on",
            "waiting": 0,
            "in_flight": 0,
        }
    ]
    (queue,) = result["sessions"][0]["queues"]
    assert (queue["temporary"], queue["waiting"], queue["in_flight"]) == (stage.session_queue(), 0, 0)
    assert stage.ask("status", target="lambda/other")["splits"] == []


def test_heartbeats_and_repeated_starts_write_no_record_and_keep_a_session_alive():
    stage = ControlStage().ready("ann", "bob")
    before = stage.memory.splits.find(APP)

    for number in range(14):
        stage.time.moment += timedelta(seconds=10)
        reply = stage.heartbeat("ann") if number % 2 else stage.start("ann", color="ann")
        assert reply["heartbeat_at"] == stage.time.now().isoformat()

    assert stage.memory.splits.find(APP) == before
    stage.loop.wake_all(stage.task_time())
    stage.pass_time(1)
    (status,) = stage.ask("status", target="lambda/meme-app")["splits"]
    assert [one["phase"] for one in status["sessions"]] == ["ready", "ending"]
    assert status["sessions"][0]["heartbeat_at"] == reply["heartbeat_at"]
    assert stage.stop("ann")["heartbeat_at"] == reply["heartbeat_at"]
    with pytest.raises(UnknownSession, match="has no session 'eve'"):
        stage.heartbeat("eve")
    assert {name for _, name in stage.memory.heartbeats.heartbeats} == {"ann", "bob"}


def test_status_of_many_sessions_has_each_problem_once_and_no_variables():
    stage = ControlStage()
    stage.targets.variables[APP] |= {"OTHER": f"{MEMES}{'x' * 1_000}"}
    for number in range(100):
        stage.start(f"s{number}")
    for number in range(20):
        stage.problems.record(APP, f"{number} {'x' * 1_000}")

    result = stage.ask("status", target="lambda/meme-app")

    assert len(json.dumps(result)) < 100_000
    assert len(result["splits"][0]["notes"]) == 20
    assert len(stage.heartbeat("s0")["environment"]["OTHER"]) > 1_000
    assert len(stage.heartbeat("s0")["notes"]) >= 20


def test_status_works_without_the_target_and_the_queues():
    stage = ControlStage()
    stage.start()

    def failing(_split, _registry):
        raise EffectFailed("Throttling")

    stage.targets.observe = failing
    (result,) = stage.ask("status", target="lambda/meme-app")["splits"]

    assert result["target_reads"] == "unknown"
    assert (result["queues"][0]["waiting"], result["queues"][0]["forwarding"]) == (None, "absent")


def test_status_of_all_splits_has_those_that_are_unreadable_and_asks_for_no_queue():
    """From some 2,500 temporary queues on, it took longer than the function may run, at each receive."""
    stage = ControlStage().ready("ann")
    stage.memory.splits.unreadable = [UnreadableSplit("lambda/other-app", "version 2")]
    stage.queues.observe = lambda *_, **__: pytest.fail("queues were read")

    split, unreadable = stage.ask("status")

    assert (split["target"], [one["session"] for one in split["sessions"]]) == ("lambda/meme-app", ["ann"])
    assert unreadable == {"target": "lambda/other-app", "unreadable": "version 2"}


def test_explain_evaluates_the_live_sessions():
    stage = ControlStage().ready("ann", "bob")
    stage.stop("ann")
    red = {"Body": "x", "MessageAttributes": {"color": {"DataType": "String", "StringValue": "bob and ann"}}}

    result = stage.ask("explain", target="lambda/meme-app", queue_id="memes", messages=[red])

    (decision,) = result["decisions"]
    assert decision["owner"] == "bob"
    assert [verdict["session"] for verdict in decision["verdicts"]] == ["bob"]


def test_explain_limits_the_time_of_each_session():
    stage = ControlStage().ready("bob")
    stage.start("slow", color="slow")
    stage.pass_time(6, alive=["bob", "slow"])
    bobs = {"Body": "x", "MessageAttributes": {"color": {"DataType": "String", "StringValue": "bob"}}}

    result = stage.ask("explain", target="lambda/meme-app", queue_id="memes", messages=[bobs] * 100)

    outcomes = {tuple(verdict["outcome"] for verdict in one["verdicts"]) for one in result["decisions"]}
    assert outcomes == {("match", "stopped")}
    assert stage.languages.slow_seconds == pytest.approx(FILTER_TIME.total_seconds() / 5)


def test_explain_refuses_unknown_splits_and_queues_and_too_many_messages():
    stage = ControlStage()
    asked = {"target": "lambda/meme-app", "queue_id": "orders", "messages": [{"Body": "x"}]}

    with pytest.raises(NoSplit, match="is not split"):
        stage.ask("explain", **asked)
    stage.start(config=config("red"))
    with pytest.raises(NoSplit, match="has no queue 'orders'; it has memes"):
        stage.ask("explain", **asked)
    with pytest.raises(TooManyMessages, match="101 messages"):
        stage.ask("explain", **{**asked, "messages": [{"Body": "x"}] * 101})


def test_explain_uses_the_claims_on_the_named_queue():
    stage = ControlStage(MEMES, QueueName("cats"))

    result = stage.start()

    assert [queue["queue_id"] for queue in result["queues"]] == ["memes", "cats"]
    assert set(result["environment"]) == {"MEMES_QUEUE", "CATS_QUEUE"}


def test_an_audit_has_the_events_of_a_message_in_the_last_days():
    stage = ControlStage()
    at = [(stage.time.now() - timedelta(days=days)).isoformat() for days in (20, 8, 7, 0)]
    routed = [{"occurred_at": moment, "kind": "routed"} for moment in at]
    stage.audit_trail.by_message = {"1": routed}

    assert stage.ask("audit", message_id="1") == {"events": routed[2:]}
    assert stage.ask("audit", message_id="1", days=1) == {"events": routed[3:]}
    assert stage.ask("audit", message_id="1", days=8) == {"events": routed[1:]}
    assert stage.ask("audit", message_id="2") == {"events": []}


def test_a_registry_cannot_name_a_variable_that_a_shell_would_run():
    """`split start` prints the variables of a local command for a shell, and their names may be those of others."""
    stage = ControlStage()
    stage.targets.variables[APP] = {"QUEUE;reboot": MEMES}

    with pytest.raises(SessionRejected, match="'QUEUE;reboot'"):
        stage.start()
    assert stage.split() is None
