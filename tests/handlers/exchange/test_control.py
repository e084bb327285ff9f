"""The function `control` of the exchange, on moto."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto.cloudwatch.models import cloudwatch_backends

from lambdas.exchange import control, control_wiring, wiring
from lambdas.exchange.control import handler
from lambdas.shared import commands
from signalbox.aws.exchange.exchanges import DynamoQueues, DynamoUsers
from signalbox.aws.exchange.queues import SqsExchangeQueues
from signalbox.aws.exchange.routing_table import DynamoCounterWriter, DynamoHeads
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.sessions import DynamoRealmSessions, DynamoSessions
from signalbox.control.envelope import Envelope
from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.model.ports import CreatedQueue, QueueSpec
from signalbox.exchange.model.records import DeclaredQueue, LiveSettings, ResourceKind, ResourceRef, User
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.ports import HeadChange
from signalbox.exchange.routing.sequences import Head
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.state import ConnectionId, SessionState, opened
from signalbox.live.ports import Member
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.authentication import AuthMethod, Identity
from signalbox.live.wamp.messages import PublicationId, SessionId
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.adapters.shared.stubs import ARNS, KEY, URLS, function
from tests.fakes.aws import REGION, aws, exchange_table, live_table, sqs  # noqa: F401 - fixtures
from tests.handlers.environment import (
    OVERFLOW,
    STREAM,
    Context,
    clear_caches,
    create_history_stream,
    new_instances,
    written_events,
)
from tests.handlers.recorded_events import ACCOUNT, Event, batch, command_record

CONTROL, REPLIES, DEAD = "signalbox-exchange-control", "signalbox-exchange-reply", "dead"
RETRIES = "signalbox-exchange-retries"
NOW = datetime.now(UTC)
SENDERS = {"": "AROA9:admin", "alice": "AIDA1", "bob": "AIDA2"}


@dataclass
class ExchangeControlStage:
    sqs: Any
    table: Any
    s3: Any

    def command(self, name: str, *, user: str = "", reply: bool = True, **fields: object) -> Event:
        """Return a command of a user or administrator."""
        document = {"command": name, "id": f"id-{name}", "reply": reply, **fields}
        return record_of(json.dumps(document), user=user)

    def ask(self, name: str, *, user: str = "", **fields: object) -> dict[str, Any]:
        """Send a command and return the reply."""
        assert handler(batch(self.command(name, user=user, **fields)), None) == {"batchItemFailures": []}
        (reply,) = self.messages(f"{REPLIES}-{user}" if user else REPLIES)
        document = json.loads(reply["Body"])
        assert document["id"] == f"id-{name}"
        return dict(document)

    def result_of(self, about: str, name: str, **fields: object) -> Any:
        """Send an administrator's command about a user; return its result."""
        document = {"command": name, "id": "id", "reply": True, "user": about, **fields}
        assert handler(batch(record_of(json.dumps(document))), None) == {"batchItemFailures": []}
        (reply,) = self.messages(REPLIES)
        return json.loads(reply["Body"])["result"]

    def result(self, name: str, **fields: object) -> Any:
        """Send a command that succeeds; return its result."""
        reply = self.ask(name, **fields)
        assert reply["ok"], reply
        return reply["result"]

    def messages(self, queue: str) -> list[dict[str, Any]]:
        url = URLS + queue
        received = self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
        for message in received.get("Messages", []):
            self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return list(received.get("Messages", []))

    def queues(self, prefix: str) -> list[str]:
        urls = self.sqs.list_queues(QueueNamePrefix=prefix).get("QueueUrls", [])
        return sorted(url.rpartition("/")[2] for url in urls)

    def connected(self) -> list[str]:
        found = boto3.client("lambda").list_event_source_mappings()["EventSourceMappings"]
        return [one["EventSourceArn"].rpartition(":")[2] for one in found if one["State"] != "Deleting"]

    def history(self) -> list[tuple[str, str]]:
        return [(row["kind"], row["outcome"]) for row in written_events(self.s3)]


def record_of(body: str, *, user: str = "", queue: str = CONTROL) -> Event:
    return command_record(body, sender=SENDERS[user], queue=queue + (f"-{user}" if user else ""))


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, sqs, exchange_table, live_table) -> Iterator[ExchangeControlStage]:  # noqa: F811 - fixtures
    s3 = create_history_stream()
    for name in (CONTROL, DEAD, RETRIES, REPLIES, f"{REPLIES}-alice"):
        sqs.create_queue(QueueName=name)
    sqs.create_queue(QueueName=f"{RETRIES}.fifo", Attributes={"FifoQueue": "true"})
    settings = {
        "STAGE": "signalbox",
        "EXCHANGE_TABLE": "Exchanges",
        "EXCHANGE_PREFIX": "",
        "HISTORY_STREAM": STREAM,
        "HISTORY_OVERFLOW_URL": OVERFLOW,
        "EXCHANGE_CONTROL_QUEUE_URL": URLS + CONTROL,
        "EXCHANGE_DEAD_LETTER_QUEUE_URL": URLS + DEAD,
        "ROUTE_FUNCTION_ARN": function("route"),
        "ROUTE_ROLE_ID": "AROAROUTE",
        "ROUTE_CONCURRENCY": "10",
        "EXCHANGE_VISIBILITY_SECONDS": "180",
        "QUEUE_KEY_ARN": KEY,
        "EXCHANGE_RETENTION_SECONDS": "345600",
        "EXCHANGE_USER_QUOTA": "100",
        "QUEUE_METRICS_DELAY_SECONDS": "0",
        "LIVE_TABLE": "Live",
        "LIVE_INBOX_URL": URLS + "live-inbox.fifo",
    }
    DynamoUsers(exchange_table).put(User(UserName("alice"), Role.SOURCE, Ownership.STRICT, NOW, "AIDA1"))
    with new_instances(monkeypatch, settings, wiring, control_wiring, control):
        yield ExchangeControlStage(sqs, exchange_table, s3)


NO_LIVE = "the stage has no live exchanges: deploy it with live in the setting `capabilities`"


def forget_everything() -> None:
    clear_caches(wiring, control_wiring, control)


def test_an_exchange_is_declared_and_connected_to_the_router(stage):
    found = stage.result("declare_exchange", exchange="xpublic")

    assert (found["sqs_name"], found["url"], found["connected"]) == ("xpublic", URLS + "xpublic", True)
    assert stage.queues("x") == ["xpublic", "xpublic-dlq"]
    assert sorted(stage.connected()) == [RETRIES, "xpublic"]
    made = stage.sqs.get_queue_attributes(QueueUrl=URLS + "xpublic", AttributeNames=["All"])["Attributes"]
    assert (made["VisibilityTimeout"], made["MessageRetentionPeriod"]) == ("180", "345600")
    assert ("declared", "exchange") in stage.history()


def test_a_realm_that_is_declared_again_has_nothing_of_the_earlier_one(stage, live_table):  # noqa: F811 - a fixture
    realm, name, topic = {"exchange": "xs_alice.fifo"}, ExchangeName("xs_alice.fifo"), RoutingKey("logs.a")
    stage.result("declare_exchange", **realm, live=True)
    for user in ("alice", "@lab"):
        stage.result_of(user, "grant", **realm, uri="logs.a")
    stage.result("group_add", **realm, group="lab", users=["alice"])
    event = LoggedEvent(PublicationId(1), topic, NOW, sequence=1, is_retained=True)
    log, heads = DynamoTopicLog(live_table), DynamoHeads(stage.table, stage.table)
    count = {ResourceRef(ResourceKind.EXCHANGE, name): {"received": 1}}

    def write() -> None:
        log.append(name, [event], live=LiveSettings())
        heads.save(name, HeadChange(topic, Head(7), Head()))
        DynamoCounterWriter(stage.table).add(count, at=NOW)

    write()

    stage.result("delete_exchange", **realm)
    assert {one["pk"] for one in stage.table.scan()["Items"]} == {
        *("user#alice", "sender#AIDA1", "sender#AROA9", "rights")
    }
    write()  # by a router that had begun a batch before the deletion
    stage.result("declare_exchange", **realm, live=True)

    of_log = ("log#", "topics#", "retained#")
    assert [one["pk"] for one in live_table.scan()["Items"] if one["pk"].startswith(of_log)] == []
    assert [one["sk"] for one in stage.table.scan()["Items"] if "xs_alice" in one["pk"]] == ["exchange", "listed"]
    assert (stage.result("grants", **realm), stage.result("groups", **realm)) == ([], [])


@pytest.mark.parametrize(
    ("command", "fields"), [("declare_exchange", {"anonymous": ""}), ("delete_exchange", {"force": True})]
)
def test_sessions_that_a_realm_does_not_admit_any_more_end(stage, live_table, command, fields):  # noqa: F811 - a fixture
    name, connection = ExchangeName("xs_alice.fifo"), ConnectionId("c1")
    stage.sqs.create_queue(QueueName="live-inbox.fifo", Attributes={"FifoQueue": "true"})
    stage.result("declare_exchange", exchange=name, live=True, anonymous="alice")
    identity = Identity("alice", "source", AuthMethod.ANONYMOUS)
    joined = replace(opened(connection, now=NOW), state=SessionState.JOINED, session=SessionId(1), identity=identity)
    DynamoSessions(live_table).open(joined)
    member = Member(connection, Listener(SessionId(1), "alice", "source"), NOW)
    DynamoRealmSessions(live_table).enter(name, member, expires_at=NOW + timedelta(hours=2))

    stage.result("declare_exchange", exchange=name)
    assert stage.messages("live-inbox.fifo") == []
    stage.result(command, exchange=name, **fields)

    (signal,) = stage.messages("live-inbox.fifo")
    assert json.loads(signal["Body"])["heard"] == "killed"


def test_without_live_exchanges_are_declared_and_deleted_and_realms_are_refused(stage, monkeypatch):
    for name in ("LIVE_TABLE", "LIVE_INBOX_URL"):
        monkeypatch.delenv(name)
    forget_everything()

    assert stage.ask("declare_exchange", exchange="xs_alice_log.fifo")["ok"]
    assert stage.ask("delete_exchange", exchange="xs_alice_log.fifo")["ok"]
    assert stage.result_of("alice", "forget_user")["ended"] == []
    for command, fields in (("declare_exchange", {"live": True}), ("grants", {})):
        reply = stage.ask(command, exchange="xs_alice_log.fifo", **fields)
        assert (reply["code"], reply["error"]) == ("rejected", NO_LIVE)


def test_a_deletion_leaves_nothing(stage):
    stage.result("declare_exchange", exchange="xpublic")
    stage.result("declare_queue", queue="q_alice")
    stage.result("bind", exchange="xpublic", queue="q_alice", pattern="#")
    assert "unbind it first" in stage.ask("delete_exchange", exchange="xpublic")["error"]

    stage.result("delete_exchange", exchange="xpublic", force=True)
    stage.result("delete_queue", queue="q_alice")

    assert stage.queues("x") == stage.queues("q_") == []
    assert stage.connected() == [RETRIES]
    users = {"user#alice", "sender#AIDA1", "sender#AROA9"}
    assert {item["pk"] for item in stage.table.scan()["Items"]} == users


def test_the_control_queue_identifies_the_caller_and_the_message_does_not(stage):
    asked = {"user": None, "role": "admin", "ownership": "strict", "stage": "signalbox", "exchange_prefix": ""}
    place = {"account": ACCOUNT, "region": REGION}
    assert stage.result("whoami") == {**asked, **place}
    assert stage.result("whoami", user="alice") == {**asked, **place, "user": "alice", "role": "source"}


def reasons(stage: ExchangeControlStage) -> list[str]:
    return [one["MessageAttributes"]["Reason"]["StringValue"] for one in stage.messages(DEAD)]


@pytest.mark.parametrize(
    ("user", "attributes", "reason"),
    [
        ("bob", {}, "sent a command to the control queue of user 'bob', who has another id"),
        ("alice", {"SenderId": "AIDA2"}, "'AIDA2' sent a command to the control queue of user 'alice'"),
        ("alice", {"SenderId": ""}, "the command has no SenderId"),
        ("", {"SenderId": "AIDA1"}, "user 'alice' sent a command to the administrators' control queue"),
        ("", {"DeadLetterQueueSourceArn": ARNS + "eve"}, f"SQS moved the command here from {ARNS}eve"),
        ("alice", {"DeadLetterQueueSourceArn": ARNS + "eve"}, f"SQS moved the command here from {ARNS}eve"),
    ],
    ids=["removed", "another user", "nobody", "a user as administrator", "moved", "moved to a user"],
)
def test_a_command_without_proof_is_dead_lettered_with_its_reason(stage, user, attributes, reason):
    command = stage.command("declare_exchange", user=user, exchange="xs_alice")
    command["attributes"] |= attributes

    assert handler(batch(command), None) == {"batchItemFailures": []}

    (found,) = reasons(stage)
    assert reason in found
    assert stage.queues("x") == []
    assert stage.messages(REPLIES) == stage.messages(f"{REPLIES}-alice") == []


def test_a_message_does_not_name_its_reply_queue(stage):
    command = stage.command("whoami", user="alice", reply=False, reply_queue_url=f"{URLS}{REPLIES}-bob")

    assert handler(batch(command), None) == {"batchItemFailures": []}
    assert "reply_queue_url" in reasons(stage)[0]


def test_a_command_from_an_unknown_queue_gets_no_administrator_rights(stage):
    assert handler(batch(record_of("{}", queue="orders")), None) == {"batchItemFailures": []}
    assert "is not a control queue" in reasons(stage)[0]


def leaving(stage: ExchangeControlStage) -> None:
    stage.result("declare_queue", queue="q_alice")
    stage.table.update_item(
        Key={"pk": "queue#q_alice", "sk": "queue"},
        UpdateExpression="SET is_leaving = :yes",
        ExpressionAttributeValues={":yes": True},
    )


def test_a_command_that_fails_for_the_fifth_time_raises_the_alarm_on_errors_and_comes_again(stage):
    leaving(stage)
    command = stage.command("declare_queue", reply=False, queue="q_alice")
    command["attributes"] |= {"ApproximateReceiveCount": "5"}

    with pytest.raises(UnavailableError, match="none of 1 messages was handled"):
        handler(batch(command), None)

    assert reasons(stage) == []


def test_a_command_that_stops_its_reader_is_dead_lettered(stage, monkeypatch):
    monkeypatch.setattr(Envelope, "parse", classmethod(lambda _, __: os.kill(os.getpid(), signal.SIGSEGV)))
    command = stage.command("declare_queue", queue="q_alice")
    command["attributes"] |= {"ApproximateReceiveCount": "5"}

    assert handler(batch(command), None) == {"batchItemFailures": []}

    assert reasons(stage) == ["reading it ends the process with SIGSEGV"]


def test_a_concurrent_declaration_is_retried_and_succeeds(stage, monkeypatch):
    make, meanwhile = SqsExchangeQueues.make, iter(["another caller"])

    def made(queues: SqsExchangeQueues, wanted: QueueSpec) -> CreatedQueue:
        if next(meanwhile, None):
            stage.result("declare_queue", queue="q_alice", user="alice")
        return make(queues, wanted)

    monkeypatch.setattr(SqsExchangeQueues, "make", made)

    assert stage.result("declare_queue", queue="q_alice", prefetch=7)["prefetch"] == 7
    (found,) = stage.result("queues")
    assert (found["queue"], found["prefetch"]) == ("q_alice", 7)


def test_repeated_conflicts_are_reported_as_unavailable(stage, monkeypatch):
    tries: list[DeclaredQueue] = []

    def never(_queues: DynamoQueues, queue: DeclaredQueue) -> bool:
        tries.append(queue)
        return False

    monkeypatch.setattr(DynamoQueues, "create", never)
    monkeypatch.setattr(commands, "LONGEST_PAUSE_SECONDS", 0)

    reply = stage.ask("declare_queue", queue="q_alice")

    assert (reply["ok"], reply["code"], len(tries)) == (False, "unavailable", commands.TRIES)
    assert reply["error"] == "queue 'q_alice' was changed by another command at the same time: retry"


def measure(queue: str) -> None:
    """Let SQS publish that no message of a queue was deleted; clients may not write into its namespace."""
    value = {
        "MetricName": "NumberOfMessagesDeleted",
        "Dimensions": [{"Name": "QueueName", "Value": queue}],
        "Value": 0.0,
        "Timestamp": datetime.now(UTC).replace(tzinfo=None) - timedelta(seconds=5),  # moto's times have no zone
    }
    cloudwatch_backends[ACCOUNT][REGION].put_metric_data("AWS/SQS", [value])


def test_the_schedule_deletes_unused_queues(stage):
    stage.result("declare_queue", queue="q_alice", expires_seconds=60)
    stage.result("declare_queue", queue="q_bob")
    context = Context(30_000, function("control"))
    assert handler({"task": "maintain"}, context)["deleted"] == 0

    stage.table.update_item(
        Key={"pk": "queue#q_alice", "sk": "queue"},
        UpdateExpression="SET declared_at = :then",
        ExpressionAttributeValues={":then": round((NOW - timedelta(hours=1)).timestamp() * 1000)},
    )

    measure("q_alice")

    assert handler({"task": "maintain"}, context)["deleted"] == 1
    assert stage.queues("q_") == ["q_bob", "q_bob-dlq"]


def test_the_sweep_restricts_queues_made_before_and_makes_missing_reply_queues(stage, caplog):
    stage.result("declare_exchange", exchange="xpublic")
    stage.sqs.delete_queue(QueueUrl=f"{URLS}{REPLIES}-alice")
    redrive = {"deadLetterTargetArn": ARNS + "xpublic", "maxReceiveCount": 1}
    stage.sqs.create_queue(QueueName="theirs", Attributes={"RedrivePolicy": json.dumps(redrive)})

    handler({"task": "strays"}, None)

    assert stage.queues(f"{REPLIES}-") == [f"{REPLIES}-alice"]
    assert "the sources of queue xpublic-dlq are restricted now" in caplog.text
    assert f"queue xpublic takes the dead letters of other queues: {ARNS}theirs" in caplog.text


def lose_connections() -> None:
    functions = boto3.client("lambda")
    for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
        functions.delete_event_source_mapping(UUID=mapping["UUID"])


def test_the_schedule_connects_the_queues_of_an_earlier_deployment_once(stage):
    stage.result("declare_exchange", exchange="xpublic")
    stage.sqs.create_queue(QueueName=f"{CONTROL}-alice")
    lose_connections()
    function_arn = function("control")
    boto3.client("lambda").create_event_source_mapping(
        EventSourceArn=ARNS + CONTROL, FunctionName=function_arn, ScalingConfig={"MaximumConcurrency": 2}
    )
    context = Context(30_000, function_arn)

    done = handler({"task": "maintain"}, context)

    assert done == {"deleted": 0, "connected": 3, "disconnected": 0, "complete": True}
    assert sorted(stage.connected()) == [CONTROL, f"{CONTROL}-alice", RETRIES, "xpublic"]
    assert handler({"task": "maintain"}, context)["connected"] == 0


def test_queues_that_could_not_be_connected_are_logged_and_tried_again(stage, caplog):
    stage.result("declare_exchange", exchange="xpublic")
    lose_connections()

    late = handler({"task": "maintain"}, Context(0, function("control")))
    failed = handler({"task": "maintain"}, Context(30_000, function("other")))

    assert late == {"deleted": 0, "connected": 0, "disconnected": 0, "complete": False}
    assert failed == {"deleted": 0, "connected": 2, "disconnected": 0, "complete": False}
    assert "no function reads the control queue" in caplog.text  # of Alice, since none reads the administrators' queue


def test_the_schedule_measures_the_oldest_message_of_exchanges(stage, capsys):
    stage.result("declare_exchange", exchange="xpublic")
    assert handler({"task": "measure"}, None) == {"oldest_seconds": None, "dead_letters": 0}

    stage.sqs.send_message(QueueUrl=URLS + "xpublic", MessageBody="waits")
    boto3.client("cloudwatch").put_metric_data(
        Namespace="AWS/SQS",
        MetricData=[
            {
                "MetricName": "ApproximateAgeOfOldestMessage",
                "Dimensions": [{"Name": "QueueName", "Value": "xpublic"}],
                "Timestamp": datetime.now(UTC) - timedelta(minutes=2),
                "Value": 400.0,
            }
        ],
    )

    assert handler({"task": "measure"}, None) == {"oldest_seconds": 400.0, "dead_letters": 0}
    (metric,) = (json.loads(line) for line in capsys.readouterr().out.splitlines() if "OldestMessageAge" in line)
    assert (metric["service"], metric["stage"], metric["OldestMessageAge"]) == ("exchange", "signalbox", [400.0])


def test_the_schedule_reads_new_dead_letters_and_leaves_them_there(stage):
    stage.result("declare_queue", queue="q_alice")
    reason = {"Reason": {"DataType": "String", "StringValue": "the router's own"}}
    stage.sqs.send_message(QueueUrl=URLS + "q_alice-dlq", MessageBody="poison", MessageAttributes=reason)

    assert handler({"task": "measure"}, None)["dead_letters"] == 0  # the router has recorded it

    item = stage.table.get_item(Key={"pk": "queue#q_alice", "sk": "queue"})["Item"]
    assert item["dead_letters"] == 1
    assert [one["Body"] for one in stage.messages("q_alice-dlq")] == ["poison"]


def test_an_unknown_task_is_refused(stage):
    with pytest.raises(RejectedError, match="unknown task 'dance'"):
        handler({"task": "dance"}, None)
