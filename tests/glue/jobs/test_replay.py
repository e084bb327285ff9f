"""The job `replay`: from logs, from dead letters, from kept messages, and resumed."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import boto3
import pytest

from glue_jobs import replay
from glue_jobs.export_logs import ROW_SCHEMA, merge_rows
from glue_jobs.shared.lake import Lake
from glue_jobs.shared.log_reader import log_row
from glue_jobs.shared.log_source import LogSelection, LogSource, ReplayVolume, newest_snapshot, replay_volume
from glue_jobs.transforms.tables import LOG_TOPICS, LOGS
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues
from signalbox.aws.history.replay_records import S3ReplayRecords
from signalbox.aws.kept.store import S3KeptMessages
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import DeclaredQueue, ExchangeRecord, QueueSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.history.replay_state import InvalidReplay, ReplayId, ReplayProgress
from signalbox.kept.objects import kept_batch
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.export import ExportedEvent
from signalbox.live.wamp.audience import Audience
from signalbox.live.wamp.messages import Payload, PublicationId
from signalbox.messages import Attribute, Message, MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.aws import aws, exchange_table
from tests.glue.frames import frame
from tests.handlers.environment import STREAM, create_history_stream, written_events

__all__ = ["aws", "exchange_table"]
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
LOG = ExchangeName("xlog.fifo")
NOTHING = ReplayProgress(ReplayId("r"), {}, "", messages=0, size_bytes=0, planned_at=NOON)


def logged(lake: Lake, *events: LoggedEvent) -> None:
    for table in (LOGS, LOG_TOPICS):
        lake.ensure(table.name)
    merge_rows(lake, frame(lake.spark, [log_row(LOG, ExportedEvent(one)) for one in events], ROW_SCHEMA))


def event(topic: str, sequence: int, *, seconds: int = 0, **more) -> LoggedEvent:
    at = NOON + timedelta(seconds=seconds)
    payload = Payload(({"n": sequence},))
    return LoggedEvent(PublicationId(sequence), RoutingKey(topic), at, payload, sequence, **more)


def wanted(pattern: str, **more) -> LogSelection:
    return LogSelection(LOG, Pattern.parse(pattern), **more)


def origins(source: LogSource, count: int = 100) -> list[str]:
    return [one.origin.removeprefix("xlog.fifo ") for one in source.take(count, NOTHING)]


@pytest.mark.spark
@pytest.mark.release
def test_a_log_is_replayed_in_order_of_time_from_any_position(lake):
    logged(lake, event("a.x", 1), event("a.x", 2, seconds=2), event("a.y", 1, seconds=1), event("b", 1))
    snapshot = newest_snapshot(lake)
    logged(lake, event("a.x", 3, seconds=3))

    found = replay_volume(lake, snapshot, wanted("a.*"))

    assert found == ReplayVolume(3, 3 * len('{"n":1}'), {"a.x": 2, "a.y": 1}, {})
    assert origins(LogSource(lake, snapshot, wanted("a.*"), 0)) == ["a.x 1", "a.y 1", "a.x 2"]
    later = LogSource(lake, snapshot, wanted("a.*"), 1)
    assert (origins(later, 1), origins(later), origins(later)) == (["a.y 1"], ["a.x 2"], [])
    assert later.is_repeatable


@pytest.mark.spark
@pytest.mark.release
def test_a_log_is_replayed_within_a_time_range(lake):
    logged(lake, *(event("a", number, seconds=number) for number in (1, 2, 3)))
    asked = wanted("#", start=NOON + timedelta(seconds=2), end=NOON + timedelta(seconds=3))

    assert origins(LogSource(lake, newest_snapshot(lake), asked, 0)) == ["a 2"]


TO_EXCHANGES = {"for some sessions only": 1, "of sessions' own events": 1}


@pytest.mark.spark
@pytest.mark.release
def test_an_exchange_gets_no_events_for_selected_sessions_and_events_without_body_are_excluded(lake):
    some = Audience(eligible_authid=frozenset({"alice"}))
    logged(lake, event("a", 1), event("a", 2, audience=some), event("a", 3, omitted_bytes=500_000))
    logged(lake, event("wamp.session.on_join", 1))
    snapshot = newest_snapshot(lake)

    for everybody, sent, left_out in ((True, 1, TO_EXCHANGES), (False, 3, {})):
        found = replay_volume(lake, snapshot, wanted("#", for_all_sessions=everybody))
        assert (found.messages, found.left_out) == (sent, {"too large for the log": 1} | left_out)


@pytest.mark.spark
@pytest.mark.release
def test_a_message_of_a_log_has_its_original_time_body_and_headers(lake):
    logged(lake, event("a", 1, seconds=0.25, headers={"color": "red"}))

    (ready,) = LogSource(lake, newest_snapshot(lake), wanted("#"), 0).take(1, NOTHING)

    original = ready.item
    assert original.published_at == NOON + timedelta(seconds=0.25)
    assert (original.properties.body, original.properties.headers["color"].text) == ('{"n":1}', "red")
    assert (original.publisher, original.message_id, original.sequence) == ("unknown", "1", 1)


@pytest.mark.spark
@pytest.mark.release
def test_an_empty_log_replays_no_messages(lake):
    snapshot = newest_snapshot(lake)

    assert (snapshot, replay_volume(lake, snapshot, wanted("#"))) == ("", ReplayVolume(0, 0, {}, {}))
    assert origins(LogSource(lake, snapshot, wanted("#"), 0)) == []


@pytest.mark.spark
@pytest.mark.release
def test_an_expired_snapshot_of_the_log_raises(lake):
    logged(lake, event("a", 1))

    with pytest.raises(InvalidReplay, match="snapshot 7 of the logs has expired"):
        replay_volume(lake, "7", wanted("#"))


@pytest.fixture
def stage(exchange_table, monkeypatch):
    """A stage with a standard exchange, an ordered queue and dead letters, without waits in moto."""
    monkeypatch.setattr("signalbox.aws.history.dead_letter_source.WAIT_SECONDS", 0)
    boto3.client("s3").create_bucket(Bucket="lake")
    create_history_stream()
    DynamoExchanges(exchange_table).create(ExchangeRecord(ExchangeName("xs"), None, NOON))
    settings = QueueSettings(message_ttl=timedelta(hours=1))
    DynamoQueues(exchange_table).create(DeclaredQueue(DeclaredName("q_a.fifo"), None, NOON, NOON, None, settings))
    sqs = boto3.client("sqs")
    DynamoQueues(exchange_table).create(DeclaredQueue(DeclaredName("q_b"), None, NOON, NOON))
    for name in ("xs", "xs-dlq", "q_b"):
        sqs.create_queue(QueueName=name)
    sqs.create_queue(QueueName="q_a.fifo", Attributes={"FifoQueue": "true"})
    return exchange_table


def run(stage, *words: str) -> None:
    options = {
        "database": "trial_history",
        "bucket": "lake",
        "prefix": "replays/",
        "stage": "trial",
        "exchange_prefix": "-",
        "exchange_table": stage.name,
        "stream": STREAM,
        "region": "us-east-1",
    }
    replay.main(["replay.py", *(word for name, text in options.items() for word in (f"--{name}", text)), *words])


def put_letters(*keys: str) -> None:
    sqs = boto3.client("sqs")
    for key in keys:
        topic = {"topic": {"DataType": "String", "StringValue": key}}
        sqs.send_message(QueueUrl=_url("xs-dlq"), MessageBody=f"body of {key}", MessageAttributes=topic)


def _url(name: str) -> str:
    return boto3.client("sqs").get_queue_url(QueueName=name)["QueueUrl"]


def received(name: str) -> list[dict]:
    sqs = boto3.client("sqs")
    found = sqs.receive_message(
        QueueUrl=_url(name), MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"]
    )
    return found.get("Messages", [])


def test_selected_dead_letters_are_published_and_the_others_stay(stage, capsys):
    put_letters("a.1", "a.2", "b")
    boto3.client("sqs").send_message(QueueUrl=_url("xs-dlq"), MessageBody="without a topic")

    run(stage, "--replay_id", "r", "--dead_letters", "xs", "--topics", "a.*", "--into", "xs", "--rate", "1000")

    sent = {one["Body"]: one["MessageAttributes"]["replay"]["StringValue"] for one in received("xs")}
    assert sent == {"body of a.1": "r", "body of a.2": "r"}
    assert {one["Body"] for one in received("xs-dlq")} == {"body of b", "without a topic"}
    plan, *_, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert (plan["messages"], plan["left_out"]) == (2, {"of other topics or times": 1, replay.NOT_REPLAYABLE: 1})
    assert (end["state"], end["sent"]) == ("done", 2)
    events = written_events(boto3.client("s3"))
    assert [(one["kind"], one["source"], one["destination"]) for one in events] == [("replayed", "xs", "xs")] * 2
    assert {one["topic"] for one in events} == {"a.1", "a.2"}


def test_events_that_firehose_refuses_do_not_stop_a_replay(stage, capsys):
    put_letters("a")
    boto3.client("firehose").delete_delivery_stream(DeliveryStreamName=STREAM)

    run(stage, "--replay_id", "r", "--dead_letters", "xs", "--into", "xs")

    assert "replay: 1 events were not written to the history" in capsys.readouterr().out.splitlines()
    assert [one["Body"] for one in received("xs")] == ["body of a"]


def test_dead_letters_in_flight_are_reported(stage, capsys):
    put_letters("a")
    received("xs-dlq")  # and neither deleted nor released

    run(stage, "--replay_id", "r", "--dead_letters", "xs", "--into", "xs")

    assert json.loads(capsys.readouterr().out.splitlines()[-1])["held"] == 1


def test_a_dry_run_counts_and_moves_no_message_until_it_is_resumed(stage):
    put_letters("a.1")
    run(stage, "--replay_id", "r", "--dead_letters", "xs", "--into", "q_a.fifo", "--dry_run", "yes")
    assert received("q_a.fifo") == []

    run(stage, "--replay_id", "r")

    (copy,) = received("q_a.fifo")
    assert copy["MessageAttributes"]["exchange"]["StringValue"] == "xs"
    assert "expires_at" in copy["MessageAttributes"]
    assert received("xs-dlq") == []


def keep(queue: str, *messages: Message, ago: timedelta = timedelta(minutes=10)) -> str:
    """Keep messages of a queue as the functions do; return the key of their object."""
    batch = kept_batch(QueueName(queue), messages, at=datetime.now(UTC) - ago)
    S3KeptMessages(lambda: boto3.client("s3"), "lake").put(batch)
    return batch.stored_as.key


def raw(body: str, *, group: str | None = None, **attributes: str) -> Message:
    """Return a message of a queue that is split, whose id is its body."""
    system = {"SentTimestamp": "1000", "SenderId": "AIDAANN"} | ({"MessageGroupId": group} if group else {})
    values = {name: Attribute("String", text) for name, text in attributes.items()}
    return Message(MessageId(body), body, values, system, {})


def run_kept(stage, queue: str, into: str, *words: str) -> None:
    since = ("--kept_since", (datetime.now(UTC) - timedelta(days=1)).isoformat())
    run(stage, "--replay_id", "r", "--kept", queue, "--into", into, "--rate", "1000", *since, *words)


def record() -> ReplayProgress:
    found = S3ReplayRecords(boto3.client("s3"), "lake", "replays/").load(ReplayId("r"))
    assert found is not None
    return found


def kept_copy(number: int) -> Message:
    """Return a copy as the exchange sends it to the declared queue `q_old`."""
    published = Message(MessageId(f"m-{number}"), f"{number}", {}, {"SentTimestamp": "1000"}, {})
    properties = MessageProperties(RoutingKey("a.b"), f"{number}", {"color": Attribute("String", "red")})
    return properties.delivered(
        published, exchange=LOG, publisher="alice", sequence=number, expires_at=NOON, is_fifo=False
    )


def test_kept_messages_of_a_split_queue_arrive_as_they_were_in_the_order_of_their_groups(stage, capsys):
    keep("orders.fifo", raw("3", group="b", color="red"))
    keep("orders.fifo", raw("1", group="a", color="red"), raw("2", group="a"), ago=timedelta(minutes=20))
    keep("orders.fifo", raw("2", group="a"), raw("4", group="a"), ago=timedelta(minutes=5))  # 2 was received again
    keep("orders.fifo", raw("0", group="a"), ago=timedelta(days=2))  # longer ago than the setting's time
    keep("other.fifo", raw("9", group="a"))

    run_kept(stage, "orders.fifo", "q_a.fifo")

    found = {one["Body"]: one for one in received("q_a.fifo")}
    groups = [(body, one["Attributes"]["MessageGroupId"]) for body, one in found.items()]
    assert [body for body, group in groups if group == "a"] == ["1", "2", "4"]
    assert [body for body, group in groups if group == "b"] == ["3"]
    attributes = [{name: one["StringValue"] for name, one in found[n]["MessageAttributes"].items()} for n in "12"]
    assert attributes == [{"color": "red", "replay": "r"}, {"replay": "r"}]
    plan, *_, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert (plan["messages"], plan["size_bytes"], plan["left_out"]) == (4, 4, {"stored again": 1})
    assert plan["topics"] == {"(without a topic)": 4}
    assert (end["state"], end["sent"]) == ("done", 4)


@pytest.mark.parametrize(("into", "headers"), [("xs", {}), ("q_b", {"exchange": "xlog.fifo", "message_id": "m-1"})])
def test_kept_messages_of_a_declared_queue_are_published_anew_or_copied(stage, into, headers):
    keep("q_old", kept_copy(1))

    run_kept(stage, "q_old", into, "--topics", "a.*")

    (found,) = received(into)
    texts = {name: one["StringValue"] for name, one in found["MessageAttributes"].items()}
    assert (found["Body"], texts | {"topic": "a.b", "color": "red", "replay": "r"} | headers) == ("1", texts)
    assert ("exchange" in texts) == (into == "q_b")


def test_kept_messages_that_cannot_be_sent_are_counted_by_reason(stage, capsys):
    keep("orders", raw("1", topic="a"), raw("2"), raw("3", topic="b"))

    run_kept(stage, "orders", "xs", "--topics", "a")

    plan = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (plan["messages"], plan["left_out"]) == (1, {"not readable": 1, "of other topics": 1})
    assert [one["Body"] for one in received("xs")] == ["1"]


def test_a_kept_message_with_ten_attributes_has_no_room_for_the_mark(stage, capsys):
    keep("orders", raw("1", **{f"a{number}": "x" for number in range(10)}), raw("2"))

    run_kept(stage, "orders", "q_b")

    plan = json.loads(capsys.readouterr().out.splitlines()[0])
    assert plan["left_out"] == {"with ten attributes, no room for the mark": 1}
    assert [one["Body"] for one in received("q_b")] == ["2"]


def test_the_times_of_a_replay_of_kept_messages_are_those_at_which_they_were_kept(stage):
    for minutes in (30, 20, 10):
        keep("orders", raw(f"{minutes}"), ago=timedelta(minutes=minutes))
    start, end = (f"{datetime.now(UTC) - timedelta(minutes=ago):%Y-%m-%dT%H:%M:%S}" for ago in (25, 15))

    run_kept(stage, "orders", "q_b", "--from", start, "--to", end)

    assert [one["Body"] for one in received("q_b")] == ["20"]


def test_a_resumed_replay_sends_the_messages_of_its_plan_and_names_those_that_are_no_longer_kept(stage):
    first = keep("orders", raw("1"), ago=timedelta(minutes=20))
    keep("orders", raw("2"))
    run_kept(stage, "orders", "q_b", "--dry_run", "yes")
    keep("orders", raw("3"), ago=timedelta(minutes=30))  # was stored late, after the plan
    boto3.client("s3").delete_object(Bucket="lake", Key=first)

    run(stage, "--replay_id", "r")

    assert [one["Body"] for one in received("q_b")] == ["2"]
    assert (record().sent, record().refused) == (1, {"1": "it is no longer kept"})


@pytest.mark.parametrize(("into", "sent", "doubtful"), [("q_a.fifo", ["1", "2"], ()), ("q_b", ["2"], ("1",))])
def test_a_killed_replay_of_kept_messages_sends_none_twice(stage, into, sent, doubtful):
    keep("orders.fifo", raw("1", group="a"), raw("2", group="a"))
    run_kept(stage, "orders.fifo", into, "--dry_run", "yes")
    records = S3ReplayRecords(boto3.client("s3"), "lake", "replays/")
    planned = records.load(ReplayId("r"))
    assert planned is not None
    records.save(planned.claimed(["1"], at=datetime.now(UTC)))  # and killed before, or after, it was sent

    run(stage, "--replay_id", "r")
    run(stage, "--replay_id", "r")

    assert [one["Body"] for one in received(into)] == sent
    assert record().doubtful == doubtful


def test_a_claimed_message_that_is_no_longer_kept_is_in_doubt(stage):
    key = keep("orders", raw("1"))
    run_kept(stage, "orders", "q_a.fifo", "--dry_run", "yes")
    records = S3ReplayRecords(boto3.client("s3"), "lake", "replays/")
    planned = records.load(ReplayId("r"))
    assert planned is not None
    records.save(planned.claimed(["1"], at=datetime.now(UTC)))
    boto3.client("s3").delete_object(Bucket="lake", Key=key)

    run(stage, "--replay_id", "r")

    assert (record().doubtful, record().refused) == (("1",), {})


def test_the_records_of_a_replay_contain_nothing_of_its_messages(stage):
    keep("orders", replace(raw("secret-body", color="secret-color"), message_id=MessageId("1")))
    s3 = boto3.client("s3")

    run_kept(stage, "orders", "q_b")

    keys = [one["Key"] for one in s3.list_objects_v2(Bucket="lake", Prefix="replays/")["Contents"]]
    texts = [s3.get_object(Bucket="lake", Key=key)["Body"].read().decode() for key in keys]
    assert len(texts) == 3  # the list, the record and the plan
    assert [text for text in texts if "secret" in text] == []
    assert [one["Body"] for one in received("q_b")] == ["secret-body"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--into", "xs"], "the source of the messages"),
        (["--dead_letters", "xs", "--kept", "orders", "--into", "xs"], "the source of the messages"),
        (["--kept", "orders", "--into", "xs"], "give --kept_since"),
        (["--dead_letters", "xs", "--exchange", "x.fifo", "--into", "xs"], "the source of the messages"),
        (["--dead_letters", "xs"], "give --into"),
        (["--dead_letters", "xs", "--into", "weather"], "expected an exchange"),
        (["--dead_letters", "xs", "--into", "x_other"], "'x_other' is not declared"),
        (["--dead_letters", "xs", "--into", "q_other"], "'q_other' is not declared"),
        (["--dead_letters", "xs", "--into", "xs", "--from", "noon"], "'noon' is not a time"),
    ],
)
def test_an_invalid_replay_is_refused_and_has_no_record(stage, words, problem):
    with pytest.raises(InvalidReplay, match=problem):
        run(stage, "--replay_id", "r", *words)

    assert "Contents" not in boto3.client("s3").list_objects_v2(Bucket="lake")


def test_an_id_identifies_one_replay(stage):
    run(stage, "--replay_id", "r", "--dead_letters", "xs", "--into", "xs", "--dry_run", "yes")

    with pytest.raises(InvalidReplay, match="has another selection"):
        run(stage, "--replay_id", "r", "--dead_letters", "xs", "--into", "q_a.fifo")
