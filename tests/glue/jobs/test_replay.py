"""The job `replay`: from logs, from dead letters, and resumed."""

import json
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
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import DeclaredQueue, Exchange, QueueSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.history.replay_state import InvalidReplay, ReplayId, ReplayProgress
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.export import ExportedEvent
from signalbox.live.wamp.audience import Audience
from signalbox.live.wamp.messages import Payload, PublicationId
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.aws import aws, exchange_table
from tests.glue.frames import frame

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
def test_a_log_is_replayed_within_a_time_range(lake):
    logged(lake, *(event("a", number, seconds=number) for number in (1, 2, 3)))
    asked = wanted("#", start=NOON + timedelta(seconds=2), end=NOON + timedelta(seconds=3))

    assert origins(LogSource(lake, newest_snapshot(lake), asked, 0)) == ["a 2"]


@pytest.mark.spark
def test_an_exchange_gets_no_events_for_selected_sessions_and_events_without_body_are_excluded(lake):
    some = Audience(eligible_authid=frozenset({"alice"}))
    logged(lake, event("a", 1), event("a", 2, audience=some), event("a", 3, omitted_bytes=500_000))
    snapshot = newest_snapshot(lake)

    for everybody, sent, left_out in ((True, 1, {"for some sessions only": 1}), (False, 2, {})):
        found = replay_volume(lake, snapshot, wanted("#", for_all_sessions=everybody))
        assert (found.messages, found.left_out) == (sent, {"too large for the log": 1} | left_out)


@pytest.mark.spark
def test_a_message_of_a_log_has_its_original_time_body_and_headers(lake):
    logged(lake, event("a", 1, seconds=0.25, headers={"color": "red"}))

    (ready,) = LogSource(lake, newest_snapshot(lake), wanted("#"), 0).take(1, NOTHING)

    original = ready.item
    assert original.published_at == NOON + timedelta(seconds=0.25)
    assert (original.properties.body, original.properties.headers["color"].text) == ('{"n":1}', "red")
    assert (original.publisher, original.message_id, original.sequence) == ("unknown", "1", 1)


@pytest.mark.spark
def test_an_empty_log_replays_no_messages(lake):
    snapshot = newest_snapshot(lake)

    assert (snapshot, replay_volume(lake, snapshot, wanted("#"))) == ("", ReplayVolume(0, 0, {}, {}))
    assert origins(LogSource(lake, snapshot, wanted("#"), 0)) == []


@pytest.mark.spark
def test_an_expired_snapshot_of_the_log_raises(lake):
    logged(lake, event("a", 1))

    with pytest.raises(InvalidReplay, match="snapshot 7 of the logs has expired"):
        replay_volume(lake, "7", wanted("#"))


@pytest.fixture
def stage(exchange_table, monkeypatch):
    """A stage with a standard exchange, an ordered queue and dead letters, without waits in moto."""
    monkeypatch.setattr("signalbox.aws.history.dead_letter_source.WAIT_SECONDS", 0)
    boto3.client("s3").create_bucket(Bucket="lake")
    DynamoExchanges(exchange_table).create(Exchange(ExchangeName("xs"), None, NOON))
    settings = QueueSettings(message_ttl=timedelta(hours=1))
    DynamoQueues(exchange_table).create(DeclaredQueue(DeclaredName("q_a.fifo"), None, NOON, NOON, None, settings))
    sqs = boto3.client("sqs")
    for name in ("xs", "xs-dlq"):
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
    found = sqs.receive_message(QueueUrl=_url(name), MaxNumberOfMessages=10, MessageAttributeNames=["All"])
    return found.get("Messages", [])


def test_selected_dead_letters_are_published_and_the_others_stay(stage, capsys):
    put_letters("a.1", "a.2", "b")

    run(stage, "--replay_id", "r", "--dead_letters", "xs", "--topics", "a.*", "--into", "xs", "--rate", "1000")

    sent = {one["Body"]: one["MessageAttributes"]["replay"]["StringValue"] for one in received("xs")}
    assert sent == {"body of a.1": "r", "body of a.2": "r"}
    assert [one["Body"] for one in received("xs-dlq")] == ["body of b"]
    plan, *_, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert (plan["messages"], plan["left_out"]) == (2, {"of other topics or times": 1})
    assert (end["state"], end["sent"]) == ("done", 2)


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


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--into", "xs"], "the source of the messages"),
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
