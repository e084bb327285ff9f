"""The function `control`, on AWS in this process."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lambdas.shared import instance
from lambdas.splitting import control, control_wiring, target_wiring, wiring
from lambdas.splitting.control import handler
from signalbox.aws.kept.settings import DynamoKeepSettings
from signalbox.errors import RejectedError
from signalbox.kept.objects import kept_batch
from signalbox.kept.settings import KeepSetting
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.splitting.control.reconcile_loop import ReconcileLoop
from tests.adapters.shared.stubs import function
from tests.fakes.athena import EVENTS, stub_events
from tests.fakes.aws import REGION, aws, split_table, sqs  # noqa: F401 - fixtures
from tests.handlers.billed_calls import recorded_calls
from tests.handlers.environment import BUCKET, OVERFLOW, STREAM, clear_caches, create_history_stream, new_instances
from tests.handlers.recorded_events import ACCOUNT, Event, batch, command_record

PREFIX = "mirrord-"
APP = "lambda/meme-app"
CONFIG = {"feature": {"split_queues": {"memes": {"queue_type": "SQS", "message_filter": {"color": "red"}}}}}
REGISTRY = {
    "apiVersion": "queues.mirrord.metalbear.co/v1",
    "kind": "MirrordSplitConfig",
    "metadata": {"name": "memes"},
    "spec": {
        "targetRef": {"apiVersion": "apps/v1", "kind": "Lambda", "name": "meme-app"},
        "queues": [{"id": "memes", "kind": "sqs", "appConfig": {"queue": [{"env": "QUEUE"}]}}],
    },
}


@dataclass
class ControlStage:
    sqs: Any
    table: Any
    s3: Any
    control_queue_url: str
    dead_letter_queue_url: str
    reply_queue_url: str

    def command(self, name: str, *, reply: bool = True, **fields: object) -> Event:
        """Return a command as Lambda passes it."""
        return record_of(json.dumps({"command": name, "id": f"id-{name}", "reply": reply, **fields}))

    def ask(self, name: str, **fields: object) -> dict[str, Any]:
        """Send a command and return the reply."""
        assert handler(batch(self.command(name, **fields)), None) == {"batchItemFailures": []}
        (reply,) = self.bodies(self.reply_queue_url)
        document = json.loads(reply)
        assert document["id"] == f"id-{name}"
        return dict(document)

    def bodies(self, url: str) -> list[str]:
        return [message["Body"] for message in self.messages(url)]

    def messages(self, url: str) -> list[dict[str, Any]]:
        received = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        for message in received.get("Messages", []):
            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return list(received.get("Messages", []))

    def temporary_queues(self) -> list[str]:
        urls = self.sqs.list_queues(QueueNamePrefix=PREFIX).get("QueueUrls", [])
        return sorted(url.rpartition("/")[2] for url in urls)


def record_of(body: str) -> Event:
    return command_record(body, sender="AIDABOB", queue="signalbox-split-control")


RECEIVE = {"Effect": "Allow", "Action": "sqs:ReceiveMessage", "Resource": f"arn:aws:sqs:{REGION}:{ACCOUNT}:memes"}
POLICY = {"Version": "2012-10-17", "Statement": [RECEIVE]}


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, sqs, split_table) -> Iterator[ControlStage]:  # noqa: F811 - fixtures
    s3 = create_history_stream()
    names = ("signalbox-split-control", "dead-splits", "signalbox-split-reply", "memes")
    control_url, dead_url, reply_url, memes_url = (sqs.create_queue(QueueName=name)["QueueUrl"] for name in names)
    function("meme-app", policy=POLICY, variables={"QUEUE": memes_url, "OTHER": "x"})
    settings = {
        "STAGE": "signalbox",
        "SPLIT_TABLE": "Splits",
        "HISTORY_STREAM": STREAM,
        "HISTORY_OVERFLOW_URL": OVERFLOW,
        "CONTROL_QUEUE_URL": control_url,
        "SPLIT_DEAD_LETTER_QUEUE_URL": dead_url,
        "SPLIT_FUNCTION_ARN": function("split"),
        "SPLIT_CONCURRENCY": "20",
        "TEMPORARY_QUEUE_PREFIX": PREFIX,
        "TEMPORARY_QUEUE_ARN_PREFIX": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{PREFIX}",
        "SPLIT_TIMEOUT_SECONDS": "20",
        "SPLITTABLE_BUCKETS": "demo-*",
        "KEPT_BUCKET": BUCKET,
        "SPLIT_EMPTY_SECONDS": "60",
        "SPLIT_PARAMETER_SECONDS": "60",
        "SPLIT_HEARTBEAT_SECONDS": "60",
        "HISTORY_DATABASE": "signalbox_lake",
        "HISTORY_TABLE": "events_raw",
        "QUERY_RESULTS": f"s3://{BUCKET}/audits/",
        "KUBERNETES_CLUSTERS": "{}",
    }
    with new_instances(monkeypatch, settings, wiring, control_wiring, target_wiring, control):
        yield ControlStage(sqs, split_table, s3, control_url, dead_url, reply_url)


def started(stage: ControlStage) -> dict[str, Any]:
    stage.ask("apply", documents=[REGISTRY])
    reply = stage.ask("start", target=APP, session="ann", owner="ann@laptop", config=CONFIG)
    assert reply["ok"], reply
    return dict(reply["result"])


def test_a_registry_is_applied_and_listed(stage):
    assert stage.ask("apply", documents=[REGISTRY])["result"] == {"targets": [APP]}

    (registry,) = stage.ask("registries")["result"]
    assert (registry["target"], registry["documents"]) == (APP, [REGISTRY])


def test_a_reconcile_creates_the_queues_and_requests_the_next_one(stage):
    reply = started(stage)
    (message,) = stage.bodies(stage.control_queue_url)

    assert handler(batch(record_of(message)), None) == {"batchItemFailures": []}

    assert len(stage.temporary_queues()) == 2
    assert reply["queues"][0]["temporary"] in stage.temporary_queues()


def test_what_sessions_wait_for_comes_again_soon_after_a_kill(stage):
    started(stage)
    hidden = []
    instance.sqs().meta.events.register(
        "provide-client-params.sqs.ChangeMessageVisibilityBatch", lambda params, **_: hidden.append(params)
    )
    (reconcile,) = stage.bodies(stage.control_queue_url)
    commands = [record_of(reconcile), *(stage.command(one, target=APP, session="ann") for one in ("heartbeat", "stop"))]

    for number, record in enumerate(commands):
        handler(batch(record | {"receiptHandle": f"h-{number}"}), None)

    entries = [entry for params in hidden for entry in params["Entries"]]
    assert {params["QueueUrl"] for params in hidden} == {stage.control_queue_url}
    assert [(one["ReceiptHandle"], one["VisibilityTimeout"]) for one in entries] == [("h-0", 20), ("h-2", 20)]


def test_an_audit_has_the_recipient_of_a_message(stage):
    stub_events(EVENTS, database="signalbox_lake")

    reply = stage.ask("audit", message_id="1", days=2)

    assert [(event["outcome"], event["destination"]) for event in reply["result"]["events"]] == [
        ("session", "mirrord-1"),
        ("deployed", "mirrord-0"),
    ]


def test_an_audit_that_athena_does_not_answer_starts_one_query(stage):
    audit = {"message_id": "1", "days": 2}
    with recorded_calls() as calls:
        assert stage.ask("audit", **audit)["code"] == "unavailable"
        # Without a reply, a message that failed would come again.
        assert handler(batch(stage.command("audit", reply=False, **audit)), None) == {"batchItemFailures": []}

    assert calls.count("athena.StartQueryExecution") == 1
    (dead,) = stage.messages(stage.dead_letter_queue_url)
    assert dead["MessageAttributes"]["Reason"]["StringValue"].startswith("an audit without a reply")


def test_a_rejected_command_has_its_reason(stage):
    reply = stage.ask("start", target=APP, session="ann", owner="ann@laptop", config={})

    assert (reply["ok"], reply["code"]) == (False, "rejected")
    assert reply["error"].endswith("feature.split_queues: is missing or empty, so there is nothing to split")


@pytest.mark.parametrize(
    "hostile", ["(?R)^b$", "(?V0)(?=a)", "(?=a)a{100000000}", "(a|aa)+(?=b)" * 900, "(" * 5000, r"\w" * 5000]
)
def test_hostile_patterns_of_a_registry_are_refused_or_applied_and_stop_no_other_command(stage, hostile):
    document = {
        "apiVersion": "queues.mirrord.metalbear.co/v1",
        "kind": "MirrordSplitConfig",
        "metadata": {"name": "x"},
        "spec": {
            "targetRef": {"kind": "Function", "name": "meme-app"},
            "queues": [{"id": "x", "kind": "sqs", "appConfig": {"queue": [{"env": "Q", "valuePattern": hostile}]}}],
        },
    }

    reply = stage.ask("apply", documents=[document])

    assert not reply["ok"]
    assert "valuePattern: not a regular expression" in reply["error"]
    assert stage.ask("apply", documents=[REGISTRY])["ok"]


def test_a_premature_command_is_unavailable(stage):
    started(stage)
    stage.ask("stop", target=APP, session="ann")

    reply = stage.ask("start", target=APP, session="ann", owner="ann@laptop", config=CONFIG)

    assert (reply["ok"], reply["code"]) == (False, "unavailable")


def test_a_premature_command_without_a_reply_queue_is_redelivered(stage):
    started(stage)
    stage.ask("stop", target=APP, session="ann")
    again = stage.command("start", reply=False, target=APP, session="ann", owner="ann@laptop", config=CONFIG)

    assert handler(batch(again), None) == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}


def test_a_rejected_message_without_a_reply_queue_is_dead_lettered(stage):
    bad = [record_of("{"), stage.command("dance", reply=False)]

    assert handler(batch(*bad), None) == {"batchItemFailures": []}

    reasons = [m["MessageAttributes"]["Reason"]["StringValue"] for m in stage.messages(stage.dead_letter_queue_url)]
    assert reasons[0].startswith("command: not JSON")
    assert reasons[1].startswith("command: expected one of apply, remove, registries")


def test_the_sweep_restricts_temporary_queues_made_before(stage, caplog):
    started(stage)
    (message,) = stage.bodies(stage.control_queue_url)
    handler(batch(record_of(message)), None)

    handler({"task": "strays"}, None)

    assert all(f"the sources of queue {name} are restricted now" in caplog.text for name in stage.temporary_queues())


def test_a_command_is_executed_without_its_reply_queue(stage):
    stage.sqs.delete_queue(QueueUrl=stage.reply_queue_url)

    assert handler(batch(stage.command("apply", documents=[REGISTRY])), None) == {"batchItemFailures": []}

    stage.sqs.create_queue(QueueName="signalbox-split-reply")
    assert len(stage.ask("registries")["result"]) == 1


def test_the_schedule_requests_a_reconcile_for_each_split(stage):
    started(stage)
    lock = {"pk": f"split#{APP}", "sk": "lock"}

    stage.table.put_item(Item=lock | {"holder": "a chain", "until": 10**15})
    assert handler({"task": "reconcile"}, None)["woken"] == 0

    stage.table.delete_item(Key=lock)
    assert handler({"task": "reconcile"}, None)["woken"] == 1


def test_an_unknown_task_is_refused(stage):
    with pytest.raises(RejectedError, match="unknown task 'dance'"):
        handler({"task": "dance"}, None)


def test_a_record_of_a_newer_version_is_not_changed(stage):
    started(stage)
    (message,) = stage.bodies(stage.control_queue_url)
    stage.table.update_item(
        Key={"pk": f"split#{APP}", "sk": "split"},
        UpdateExpression="SET #record = :other",
        ExpressionAttributeNames={"#record": "record"},
        ExpressionAttributeValues={":other": "{}"},
    )

    assert handler(batch(record_of(message)), None) == {"batchItemFailures": [{"itemIdentifier": "m-1"}]}


def kept_setting(stage: ControlStage, keep_for: timedelta | None) -> None:
    readers = {"AIDAANN": "user/ann"}
    DynamoKeepSettings(stage.table).put(KeepSetting(QueueName("memes"), keep_for, datetime.now(UTC), readers))


def kept_message(stage: ControlStage, body: str, *, age: timedelta) -> str:
    message = Message.parse(
        {
            "MessageId": f"id-{body}",
            "Body": body,
            "MessageAttributes": {"color": {"DataType": "String", "StringValue": "red"}},
        }
    )
    batch_ = kept_batch(QueueName("memes"), [message], at=datetime.now(UTC) - age)
    stage.s3.put_object(Bucket=BUCKET, Key=batch_.stored_as.key, Body=batch_.text)
    return batch_.stored_as.key


def test_the_sweep_deletes_kept_messages_on_time(stage):
    kept_setting(stage, timedelta(hours=2))
    kept_message(stage, "old", age=timedelta(hours=3))
    young = kept_message(stage, "young", age=timedelta(hours=1))

    assert handler({"task": "reconcile"}, None) == {"woken": 0, "deleted": 1, "complete": True}

    assert [one["Key"] for one in stage.s3.list_objects_v2(Bucket=BUCKET, Prefix="kept/")["Contents"]] == [young]


def test_kept_messages_are_deleted_although_no_split_can_be_read(stage, monkeypatch):
    kept_setting(stage, None)
    kept_message(stage, "1", age=timedelta(hours=1))
    monkeypatch.setattr(ReconcileLoop, "wake_all", lambda *_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        handler({"task": "reconcile"}, None)

    assert "Contents" not in stage.s3.list_objects_v2(Bucket=BUCKET, Prefix="kept/")


def test_the_sweep_makes_one_call_when_nothing_is_kept(stage):
    with recorded_calls() as calls:
        assert handler({"task": "reconcile"}, None) == {"woken": 0, "deleted": 0, "complete": True}

    assert calls == ["dynamodb.Query"] * 2  # the splits, and the settings


def test_removed_messages_are_deleted_by_command(stage):
    kept_setting(stage, None)
    kept_message(stage, "1", age=timedelta(hours=1))

    result = stage.ask("keep", queue="memes")["result"]

    assert (result["kept_seconds"], result["deleted"], result["complete"]) == (None, 1, True)


def test_only_the_sender_that_the_setting_names_gets_kept_messages(stage):
    kept_setting(stage, timedelta(hours=2))
    kept_message(stage, "1", age=timedelta(hours=1))
    stage.ask("apply", documents=[REGISTRY])
    fields = {"target": APP, "session": "ann", "owner": "ann@laptop", "config": CONFIG, "since_seconds": 7200}

    refused = stage.ask("start", **fields)
    command = stage.command("start", **fields)
    command["attributes"] = {"SenderId": "AIDAANN"}
    handler(batch(command), None)
    (reply,) = stage.bodies(stage.reply_queue_url)

    assert "you may not read the kept messages of 'memes'" in refused["error"]
    assert json.loads(reply)["result"]["replay"]["sent"] == 0


def test_without_history_there_is_no_audit_and_nothing_is_kept(stage, monkeypatch):
    for name in ("HISTORY_STREAM", "HISTORY_OVERFLOW_URL", "HISTORY_DATABASE", "QUERY_RESULTS", "KEPT_BUCKET"):
        monkeypatch.delenv(name)
    clear_caches(wiring, control_wiring, target_wiring, control)

    assert "the stage records no events" in stage.ask("audit", message_id="m-1", days=1)["error"]
    assert stage.ask("keep", queue="memes")["error"] == "this stage cannot keep messages"
    assert handler({"task": "reconcile"}, None) == {"woken": 0, "deleted": 0, "complete": True}
