"""The history jobs on the events of this run, compared with the sent messages; and a killed replay."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from signalbox.aws.history.replay_records import S3ReplayRecords
from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.history.jobs import REPLAY_PREFIX
from signalbox.history.replay_state import ReplayId, ReplayProgress, ReplayState
from signalbox.local.demo.history import wait_for_files
from signalbox.local.spark.history_jobs import Job, run_locally
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.spark, pytest.mark.release]

EXCHANGE, LOG = "xtold", "xtold-log.fifo"
QUEUE, COPY = "q_told", "q_told-again"
# The number of messages by routing key.
PUBLISHED = {"a.1": 5, "a.2": 4, "b": 3}
LOGGED = {"job.1.log": 40, "job.2.log": 20, "other": 2}


OF_EXCHANGE, OF_LOG = f"exchange = '{EXCHANGE}'", f"exchange = '{LOG}'"
# Of each answer: the number that is summed, its table, the column by which, and the condition.
SUMS = {
    **{name: (name, "topic_hourly", "topic", OF_EXCHANGE) for name in ("publications", "copies", "dropped")},
    "delivered": ("delivered", "delivery_hourly", "destination", f"source = '{EXCHANGE}'"),
    "logs": ("1", "logs", "topic", OF_LOG),
    "counted": ("events", "log_topics", "topic", OF_LOG),
    "whole": ("complete_to", "log_topics", "topic", OF_LOG),
    "findings": ("1", "order_audit", "finding", OF_LOG),
}
# One query, since each is a job of its own.
QUERY = " UNION ALL ".join(
    f"SELECT '{name}', {by}, sum({number}) FROM {table} WHERE {where} GROUP BY {by}"  # noqa: S608 - all of it is ours
    for name, (number, table, by, where) in SUMS.items()
)


@dataclass(frozen=True, slots=True)
class Reported:
    """The answers by their names, and the log texts by topic."""

    answers: Mapping[str, Mapping[str, int]]
    texts: Mapping[str, Sequence[str]]


def window() -> dict[str, str]:
    """Return the days on which this run may have written events."""
    now = datetime.now(UTC)
    return {"from": f"{(now - timedelta(hours=1)).date()}", "to": f"{(now + timedelta(days=1)).date()}"}


@pytest.fixture(scope="module")
def sent(deployment: Deployment) -> None:
    """Publish and deliver all messages, and wait until their events are in the bucket."""
    client = client_of(deployment)
    client.declare_exchange(EXCHANGE)
    client.ask("declare_exchange", {"exchange": LOG, "live": True})
    for queue in (QUEUE, COPY, f"{QUEUE}.fifo"):
        client.declare_queue(queue)
    client.bind(EXCHANGE, QUEUE, "a.*")
    client.bind(LOG, f"{QUEUE}.fifo", "job.#")
    for exchange, counts in ((EXCHANGE, PUBLISHED), (LOG, LOGGED)):
        posts = [
            PublishRequest(key, f"{key} {number}") for key, count in counts.items() for number in range(1, count + 1)
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
def reported(sent: None, deployment: Deployment, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """Compact, report and export in two runs at once, after one that was killed, and query the tables."""
    output = tmp_path_factory.mktemp("answers") / "rows"
    reports = ("topic_report", "delivery_report", "order_audit")
    jobs: list[Job] = [("compact_history", window()), ("export_logs", {}), *((report, window()) for report in reports)]
    with pytest.raises(Killed):
        run_locally(deployment, jobs, kill_at("export_logs: "))
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: run_locally(deployment, jobs, print), range(2)))
    run_locally(deployment, [("query", {"query": QUERY, "output": str(output)})], print)
    return Reported(answers(output), texts(deployment))


class Killed(Exception):
    """Raised to kill a run."""


def kill_at(start: str) -> Callable[[str], None]:
    """Return a handler of output that kills a run at the line that starts with a text."""

    def kill(line: str) -> None:
        if line.startswith(start):
            raise Killed

    return kill


def answers(path: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {name: {} for name in SUMS}
    for name, key, total in json.loads(path.read_text())["rows"]:
        found[name][key] = int(total)
    return found


def texts(deployment: Deployment) -> dict[str, list[str]]:
    """Return the messages in the text of each topic, in the order of the files."""
    s3, bucket = deployment.session().client("s3"), deployment.outputs["HistoryBucket"]
    found: dict[str, list[str]] = {}
    for item in s3.list_objects_v2(Bucket=bucket, Prefix=f"logs/{LOG}/")["Contents"]:
        topic = item["Key"].split("/")[2].removeprefix("topic=")
        lines = s3.get_object(Bucket=bucket, Key=item["Key"])["Body"].read().decode().splitlines()
        found.setdefault(topic, []).extend(line.split("\t")[2] for line in lines)
    return found


def test_the_topic_report_counts_publications_copies_and_dropped_messages(reported):
    assert reported.answers["publications"] == PUBLISHED
    assert reported.answers["copies"] == {"a.1": 5, "a.2": 4, "b": 0}
    assert reported.answers["dropped"] == {"a.1": 0, "a.2": 0, "b": 3}


def test_the_delivery_report_counts_the_messages_of_the_queue(reported):
    assert reported.answers["delivered"].get(QUEUE) == 9


def test_the_audit_has_no_findings_for_messages_delivered_in_order(reported):
    assert reported.answers["findings"] == {"seen": 2}


def test_logs_are_complete_in_the_table_and_as_text(reported):
    assert reported.answers["logs"] == LOGGED
    assert reported.answers["whole"] == reported.answers["counted"] == LOGGED
    assert reported.texts == {topic: [f"{topic} {n}" for n in range(1, count + 1)] for topic, count in LOGGED.items()}


def kill(line: str) -> None:
    """Kill the run after its first sent message."""
    if line.startswith("{") and json.loads(line)["sent"]:
        raise Killed


def test_a_killed_replay_is_resumed_and_sends_no_message_twice(reported, deployment):
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
    client = client_of(deployment)
    with client.consumer(queue) as consumer:
        taken = []
        while found := consumer.receive(wait_seconds=3):
            taken += found
            consumer.ack(*found)
    return [{"body": one.delivered.body, "replay": one.delivered.headers["replay"]} for one in taken]
