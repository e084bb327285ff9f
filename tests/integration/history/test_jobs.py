"""The history jobs on the events of this run, compared with the sent messages; and a killed replay."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from signalbox.aws.history.replay_records import S3ReplayRecords
from signalbox.cli.exchange.stage import client_of
from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.history.jobs import REPLAY_PREFIX
from signalbox.history.replay_state import ReplayId, ReplayProgress, ReplayState
from signalbox.local.demo.history import wait_for_files
from signalbox.local.spark.history_jobs import Job, run_locally
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.minutes]

EXCHANGE, LOG = "xtold", "xtold-log.fifo"
QUEUE, COPY = "q_told", "q_told-again"
# The number of messages by routing key.
PUBLISHED = {"a.1": 5, "a.2": 4, "b": 3}
LOGGED = {"job.1.log": 40, "job.2.log": 20, "other": 2}


def sums(number: str, *, of: str, by: str, where: str) -> str:
    """Return the query for the sum of a number by a name."""
    return f"SELECT {by}, sum({number}) FROM {of} WHERE {where} GROUP BY {by}"  # noqa: S608 - all of it is ours


OF_EXCHANGE, OF_LOG = f"exchange = '{EXCHANGE}'", f"exchange = '{LOG}'"
QUERIES = {
    **{
        name: sums(name, of="topic_hourly", by="topic", where=OF_EXCHANGE)
        for name in ("publications", "copies", "dropped")
    },
    "delivered": sums("delivered", of="delivery_hourly", by="destination", where=f"source = '{EXCHANGE}'"),
    "logs": sums("1", of="logs", by="topic", where=OF_LOG),
    "whole": sums("complete_to", of="log_topics", by="topic", where=OF_LOG),
    "findings": sums("1", of="order_audit", by="finding", where=OF_LOG),
}


@dataclass(frozen=True, slots=True)
class Told:
    """The results of queries, and the folder of the log texts."""

    answers: Mapping[str, Mapping[str, int]]
    texts: Mapping[str, Sequence[str]]


def window() -> dict[str, str]:
    """Return the days on which this run may have written events."""
    now = datetime.now(UTC)
    return {"from": f"{(now - timedelta(hours=1)).date()}", "to": f"{(now + timedelta(days=1)).date()}"}


@pytest.fixture(scope="module")
def sent(deployment: Deployment) -> None:
    """Publish and deliver all messages, and wait until their events are in the bucket."""
    with client_of(deployment) as client:
        client.declare_exchange(EXCHANGE)
        client.ask("declare_exchange", {"exchange": LOG, "live": True})
        for queue in (QUEUE, COPY, f"{QUEUE}.fifo"):
            client.declare_queue(queue)
        client.bind(EXCHANGE, QUEUE, "a.*")
        client.bind(LOG, f"{QUEUE}.fifo", "job.#")
        for exchange, counts in ((EXCHANGE, PUBLISHED), (LOG, LOGGED)):
            posts = [
                PublishRequest(key, f"{key} {number}")
                for key, count in counts.items()
                for number in range(1, count + 1)
            ]
            assert all(one.message_id for one in client.publish_all(exchange, posts))
    wait_for(lambda: waiting(deployment, QUEUE) == 9, "what is bound", seconds=60)
    wait_for(lambda: waiting(deployment, f"{QUEUE}.fifo") == 60, "what is bound in order", seconds=60)
    wait_for_files(deployment.session().client("s3"), deployment.outputs["HistoryBucket"])


def waiting(deployment: Deployment, queue: str) -> int:
    sqs = deployment.session().client("sqs")
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    name = "ApproximateNumberOfMessages"
    return int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])


@pytest.fixture(scope="module")
def told(sent: None, deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Compact, report, export and query in one Spark session."""
    folder = tmp_path_factory.mktemp("answers")
    reports = ("topic_report", "delivery_report", "order_audit")
    jobs: list[Job] = [("compact_history", window()), *((report, window()) for report in reports), ("export_logs", {})]
    jobs += [("query", {"query": sql, "output": str(folder / name)}) for name, sql in QUERIES.items()]
    run_locally(deployment, jobs, print)
    return Told({name: answer(folder / name) for name in QUERIES}, texts(deployment))


def answer(path: Path) -> dict[str, int]:
    return {name: int(count) for name, count in json.loads(path.read_text())["rows"]}


def texts(deployment: Deployment) -> dict[str, list[str]]:
    """Return the messages in the text of each topic, in the order of the files."""
    s3, bucket = deployment.session().client("s3"), deployment.outputs["HistoryBucket"]
    found: dict[str, list[str]] = {}
    for item in s3.list_objects_v2(Bucket=bucket, Prefix=f"logs/{LOG}/")["Contents"]:
        topic = item["Key"].split("/")[2].removeprefix("topic=")
        lines = s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read().decode().splitlines()
        found.setdefault(topic, []).extend(line.split("\t")[2] for line in lines)
    return found


def test_the_topic_report_counts_publications_copies_and_dropped_messages(told):
    assert told.answers["publications"] == PUBLISHED
    assert told.answers["copies"] == {"a.1": 5, "a.2": 4, "b": 0}
    assert told.answers["dropped"] == {"a.1": 0, "a.2": 0, "b": 3}


def test_the_delivery_report_counts_the_messages_of_the_queue(told):
    assert told.answers["delivered"].get(QUEUE) == 9


def test_the_audit_has_no_findings_for_messages_delivered_in_order(told):
    assert told.answers["findings"] == {"seen": 2}


def test_logs_are_complete_in_the_table_and_as_text(told):
    assert told.answers["logs"] == LOGGED
    assert told.answers["whole"] == LOGGED
    assert told.texts == {topic: [f"{topic} {n}" for n in range(1, count + 1)] for topic, count in LOGGED.items()}


class Killed(Exception):
    """Raised to kill a run."""


def kill(line: str) -> None:
    """Kill the run after its first sent message."""
    if line.startswith("{") and json.loads(line)["sent"]:
        raise Killed


def test_a_killed_replay_is_resumed_and_sends_no_message_twice(told, deployment):
    asked = {"replay_id": "killed", "exchange": LOG, "topics": "job.*.log", "into": COPY, "rate": "20"}
    with pytest.raises(Killed):
        run_locally(deployment, [("replay", asked)], kill)
    before = record(deployment)

    run_locally(deployment, [("replay", {"replay_id": "killed", "rate": "1000"})], print)

    after = record(deployment)
    got = received(deployment, COPY)
    assert (before.state, after.state, after.messages) == (ReplayState.SENDING, ReplayState.DONE, 60)
    assert set(Counter(one["body"] for one in got).values()) == {1}
    assert {one["replay"] for one in got} == {"killed"}
    assert len(got) <= after.sent + len(after.doubtful)
    wanted = {f"{topic} {n}" for topic in ("job.1.log", "job.2.log") for n in range(1, LOGGED[topic] + 1)}
    doubtful = {" ".join(origin.split(" ")[1:]) for origin in after.doubtful}
    assert {one["body"] for one in got} | doubtful == wanted
    assert len(doubtful) <= 20


def record(deployment: Deployment) -> ReplayProgress:
    s3 = deployment.session().client("s3")
    found = S3ReplayRecords(s3, deployment.outputs["HistoryBucket"], REPLAY_PREFIX).load(ReplayId("killed"))
    assert found is not None
    return found


def received(deployment: Deployment, queue: str) -> list[dict[str, Any]]:
    with client_of(deployment) as client, client.consumer(queue) as consumer:
        taken = []
        while found := consumer.receive(wait_seconds=3):
            taken += found
            consumer.ack(*found)
    return [{"body": one.delivered.body, "replay": one.delivered.headers["replay"]} for one in taken]
