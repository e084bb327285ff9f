"""Commands of the control queue: how they are read, and what is answered to those that only ask."""

import json
from datetime import timedelta

import pytest

from signalbox.control.envelope import Envelope, InvalidCommand, InvalidEnvelope
from signalbox.errors import EffectFailed, RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.control.admission import SessionRejected
from signalbox.splitting.control.command_handlers import NoSplit, RegistryTooLarge, TooManyMessages
from signalbox.splitting.control.commands import COMMANDS, Reconcile, reconcile_body
from signalbox.splitting.control.optimistic_update import RecordBusy
from signalbox.splitting.control.session_start import ConfigTooLarge
from signalbox.splitting.model.control_ports import NoRegistry
from signalbox.splitting.model.ports import UnreadableSplit
from tests.unit.splitting.consumers.registries import new, new_queue, old, old_queue, property_list
from tests.unit.splitting.control.control_stage import APP, DISCOVERED, MEMES, OTHER_APP, ControlStage, config

REPLIES = "signalbox-split-reply-"


def envelope(**fields: object) -> Envelope:
    return Envelope.parse(json.dumps({"id": "1", **fields}), reply_prefix=REPLIES)


def problems(**fields: object) -> list[str]:
    with pytest.raises(InvalidCommand) as refusal:
        envelope(**fields).command(COMMANDS)
    return str(refusal.value).splitlines()


def test_an_envelope_says_who_wants_a_reply():
    found = envelope(command="status", reply_queue_url=f"https://sqs/1/{REPLIES}ann")

    assert (found.request_id, found.reply_queue) == ("1", f"{REPLIES}ann")
    assert envelope(command="status").reply_queue is None


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("{", "command: not JSON"),
        ("[]", "expected an object"),
        ("{}", "id: is missing or empty"),
        ('{"id": "1", "reply_queue_url": "https://sqs/1/memes"}', "expected a queue whose name begins with"),
        ('{"id": "1", "reply_queue_url": "https://sqs/1/signalbox-split-reply-!"}', "has characters other than"),
        ('{"id": "1", "reply_queue_url": 1}', "reply_queue_url: expected a text"),
    ],
    ids=["no-json", "no-object", "no-id", "another-queue", "no-queue", "no-text"],
)
def test_a_message_that_nobody_can_be_told_about_is_no_envelope(body, problem):
    with pytest.raises(InvalidEnvelope, match=problem):
        Envelope.parse(body, reply_prefix=REPLIES)


def test_all_problems_of_a_command_are_told_at_once():
    found = problems(command="start", target="pod/x", session="a b", owner="ö" * 200, extra=1)

    assert [problem.partition(":")[0] for problem in found] == ["extra", "owner", "target", "session"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"command": "dance"}, "command: expected one of apply, registries, discover, start"),
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
def test_what_is_wrong_with_a_command_is_told(fields, problem):
    assert problem in "\n".join(problems(**fields))


def test_a_round_is_asked_for_in_the_same_words():
    command = Reconcile(APP, "holder")

    assert Envelope.parse(reconcile_body(command), reply_prefix=REPLIES).command(COMMANDS) == command


def test_a_file_of_registries_is_kept_by_target_with_its_lists_of_properties():
    stage = ControlStage()
    lists = property_list(sns="true")
    theirs = new(new_queue({"env": "Q"}, queueConfig="options"), name=OTHER_APP.name)
    ours = [old({"one": old_queue()}), old({"two": old_queue()})]

    told = stage.ask("apply", documents=[ours[0], None, theirs, lists, ours[1]])

    assert told == {"targets": ["lambda/meme-app", "lambda/other-app"]}
    listed = {one["target"]: one["documents"] for one in stage.ask("registries")}
    assert listed == {"lambda/meme-app": [*ours, lists], "lambda/other-app": [theirs, lists]}


def test_a_registry_that_is_too_large_is_refused():
    stage = ControlStage()

    with pytest.raises(RegistryTooLarge, match="registry of lambda/meme-app has"):
        stage.ask("apply", documents=[old({f"queue-{n}": old_queue() for n in range(2000)})])


def test_a_target_is_discovered():
    assert ControlStage().ask("discover", target="lambda/x") == {"documents": [{**DISCOVERED, "target": "lambda/x"}]}


def test_nothing_starts_without_a_registry():
    with pytest.raises(NoRegistry, match="apply a registry, or discover one, first"):
        ControlStage().start(target=OTHER_APP)


def test_a_target_that_is_not_there_is_refused_before_anything_is_written():
    stage = ControlStage()
    stage.targets.found.clear()

    with pytest.raises(RejectedError, match="there is no target lambda/meme-app"):
        stage.start()
    assert stage.split() is None


def test_what_is_wrong_with_filters_is_told_before_anything_is_written():
    stage = ControlStage()

    with pytest.raises(RejectedError, match="not a regular expression"):
        stage.start(color="(")
    with pytest.raises(SessionRejected, match="has no queues orders"):
        stage.start(config={"feature": {"split_queues": {"orders": {"queue_type": "SQS"}}}})
    assert stage.split() is None


def test_only_filters_are_kept_of_what_somebody_wrote():
    stage = ControlStage()
    stage.start()

    split = stage.split()
    assert split is not None
    assert json.loads(split.sessions[0].config) == {
        "feature": {"split_queues": {"*": {"queue_type": "SQS", "message_filter": {"color": "red"}}}}
    }


def test_filters_have_a_size_that_can_be_kept():
    stage = ControlStage()

    with pytest.raises(ConfigTooLarge, match="at most 32768"):
        stage.start(color="x" * 33_000)
    for number in range(6):
        stage.start(f"s{number}", color="x" * 32_000)
    with pytest.raises(ConfigTooLarge, match="together"):
        stage.start("s6", color="x" * 32_000)


def test_a_record_that_changes_each_time_is_busy():
    stage = ControlStage()
    stage.start()
    stage.memory.splits.save = lambda *_, **__: None

    with pytest.raises(RecordBusy):
        stage.stop()
    with pytest.raises(RecordBusy):
        stage.start("bob")


def test_a_record_that_is_forgotten_under_a_round_is_looked_at_again():
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


def test_status_tells_splits_with_counts_and_troubles():
    stage = ControlStage().ready("ann")
    split = stage.split()
    assert split is not None

    (told,) = stage.ask("status")["splits"]

    assert told["target_reads"] == "temporary"
    assert told["queues"] == [
        {
            "queue_id": "memes",
            "original": MEMES,
            "deployed": split.queues[0].deployed,
            "forwarding": "on",
            "waiting": 0,
            "in_flight": 0,
        }
    ]
    (queue,) = told["sessions"][0]["queues"]
    assert (queue["temporary"], queue["waiting"], queue["in_flight"]) == (stage.session_queue(), 0, 0)
    assert stage.ask("status", target="lambda/meme-app")["splits"] == [told]
    assert stage.ask("status", target="lambda/other")["splits"] == []


def test_status_is_told_also_when_the_target_cannot_be_looked_at_and_queues_are_not_there():
    stage = ControlStage()
    stage.start()

    def failing(_split, _registry):
        raise EffectFailed("Throttling")

    stage.targets.observe = failing
    (told,) = stage.ask("status")["splits"]

    assert told["target_reads"] == "unknown"
    assert (told["queues"][0]["waiting"], told["queues"][0]["forwarding"]) == (None, "absent")


def test_status_tells_also_that_a_split_cannot_be_read():
    stage = ControlStage().ready("ann")
    stage.memory.splits.unreadable = [UnreadableSplit("lambda/other-app", "version 2")]

    told = stage.ask("status")

    assert [split["target"] for split in told["splits"]] == ["lambda/meme-app"]
    assert told["unreadable"] == [{"target": "lambda/other-app", "reason": "version 2"}]


def test_explain_asks_the_live_sessions():
    stage = ControlStage().ready("ann", "bob")
    stage.stop("ann")
    red = {"Body": "x", "MessageAttributes": {"color": {"DataType": "String", "StringValue": "bob and ann"}}}

    told = stage.ask("explain", target="lambda/meme-app", queue_id="memes", messages=[red])

    (decision,) = told["decisions"]
    assert decision["owner"] == "bob"
    assert [verdict["session"] for verdict in decision["verdicts"]] == ["bob"]


def test_explain_needs_a_split_and_one_of_its_queues_and_not_too_many_messages():
    stage = ControlStage()
    asked = {"target": "lambda/meme-app", "queue_id": "orders", "messages": [{"Body": "x"}]}

    with pytest.raises(NoSplit, match="is not split"):
        stage.ask("explain", **asked)
    stage.start(config=config("red"))
    with pytest.raises(NoSplit, match="has no queue 'orders'; it has memes"):
        stage.ask("explain", **asked)
    with pytest.raises(TooManyMessages, match="101 messages"):
        stage.ask("explain", **{**asked, "messages": [{"Body": "x"}] * 101})


def test_two_queues_of_one_target_are_told_apart():
    stage = ControlStage(MEMES, QueueName("cats"))

    told = stage.start()

    assert [queue["queue_id"] for queue in told["queues"]] == ["memes", "cats"]
    assert set(told["environment"]) == {"MEMES_QUEUE", "CATS_QUEUE"}


def test_an_audit_tells_what_happened_to_a_message_in_the_last_days():
    stage = ControlStage()
    at = [(stage.time.now() - timedelta(days=days)).isoformat() for days in (20, 8, 7, 0)]
    routed = [{"occurred_at": moment, "kind": "routed"} for moment in at]
    stage.audits.events = {"1": routed}

    assert stage.ask("audit", message_id="1") == {"events": routed[2:]}
    assert stage.ask("audit", message_id="1", days=1) == {"events": routed[3:]}
    assert stage.ask("audit", message_id="1", days=8) == {"events": routed[1:]}
    assert stage.ask("audit", message_id="2") == {"events": []}
