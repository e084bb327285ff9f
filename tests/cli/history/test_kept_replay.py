"""`signalbox replay --kept` on a fake AWS stage: who may replay, and what the job gets."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import boto3
import pytest

from signalbox.aws.history.replay_records import S3ReplayRecords
from signalbox.aws.kept.readers import IamReaders
from signalbox.aws.kept.settings import DynamoKeepSettings
from signalbox.errors import RejectedError
from signalbox.history.replay_state import ReplayId, ReplayProgress
from signalbox.kept.settings import KeepSetting, ReplayRefused
from signalbox.queues import QueueName
from tests.cli.exchange.stage import signalbox
from tests.cli.shared.stage import serving
from tests.fakes.aws import aws, split_table  # noqa: F401 - fixtures

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ASKED = ("replay", "--kept", "memes", "--into", "q_debug", "--id", "r")


@pytest.fixture
def settings(split_table) -> Iterator[DynamoKeepSettings]:  # noqa: F811 - a fixture
    boto3.client("s3").create_bucket(Bucket="lake")
    command = {"Name": "glueetl", "ScriptLocation": "s3://lake/replay.py"}
    boto3.client("glue").create_job(Name="signalbox-replay", Role="job", Command=command)
    outputs = {
        "HistoryBucket": "lake",
        "HistoryDatabase": "signalbox_lake",
        "SplitTable": "Splits",
        "ExchangePrefix": "sb-",
        "ExchangeControlQueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/signalbox-exchange-control",
    }
    with serving(outputs, []):
        yield DynamoKeepSettings(split_table)


def me() -> dict[str, str]:
    """Return the caller of the commands as a reader."""
    return dict([IamReaders(boto3.client("iam"), boto3.client("sts")).caller()])


def runs() -> list[dict[str, str]]:
    return [
        run.get("Arguments", {}) for run in boto3.client("glue").get_job_runs(JobName="signalbox-replay")["JobRuns"]
    ]


def put_replay(messages: int = 2, **asked: str) -> None:
    """Store a record and a plan as the job does."""
    planned = ReplayProgress(ReplayId("r"), asked, "7", messages=messages, size_bytes=20, planned_at=NOON)
    S3ReplayRecords(boto3.client("s3"), "lake", "replays/").save(planned)
    left_out = {"of other topics": 3}
    plan = {"messages": messages, "size_bytes": 20, "rate": 1, "seconds": 2, "topics": {}, "left_out": left_out}
    boto3.client("s3").put_object(Bucket="lake", Key="replays/r.plan.json", Body=json.dumps(plan))


@pytest.mark.parametrize(
    ("queue", "setting"),
    [
        ("memes", {"queue": QueueName("memes")}),
        ("q_ann", {"queue": QueueName("sb-q_ann"), "declared": "q_ann"}),
    ],
)
def test_a_reader_replays_what_the_setting_keeps(settings, queue, setting):
    settings.put(KeepSetting(keep_for=timedelta(hours=2), set_at=NOON, readers=me(), **setting))
    put_replay(kept=queue)

    done = signalbox("replay", "--kept", queue, "--from", "2026-11-20", "--into", "q_debug", "--id", "r", "--yes")

    assert done.exit_code == 0
    (run,) = runs()
    since = datetime.fromisoformat(run.pop("--kept_since"))
    assert timedelta(hours=1.9) < datetime.now(UTC) - since < timedelta(hours=2.1)
    selection = {"--kept": queue, "--from": "2026-11-20", "--into": "q_debug"}
    assert run == {"--replay_id": "r", "--rate": "100", "--dry_run": "no", **selection}


def test_a_caller_who_is_no_reader_is_refused_before_a_job_starts(settings):
    settings.put(KeepSetting(QueueName("memes"), timedelta(hours=2), NOON, {"AIDABOB": "user/bob"}))

    with pytest.raises(ReplayRefused, match=r"you may not read the kept messages of 'memes'.*--readable-by"):
        signalbox(*ASKED)

    assert runs() == []


def test_a_queue_that_is_not_kept_is_refused_before_a_job_starts(settings):
    with pytest.raises(ReplayRefused, match=r"no messages are kept of 'memes': `signalbox keep set"):
        signalbox(*ASKED)

    assert runs() == []


def test_a_replay_of_which_the_caller_is_no_reader_any_more_is_not_resumed(settings):
    settings.put(KeepSetting(QueueName("memes"), timedelta(hours=2), NOON, {"AIDABOB": "user/bob"}))
    put_replay(kept="memes", into="q_debug")

    with pytest.raises(ReplayRefused, match="you may not read"):
        signalbox("replay", "--resume", "r")
    settings.put(KeepSetting(QueueName("memes"), timedelta(hours=2), NOON, me()))
    signalbox("replay", "--resume", "r")

    assert runs() == [{"--replay_id": "r", "--rate": "100"}]


def test_a_replay_that_selects_no_kept_message_is_refused(settings):
    settings.put(KeepSetting(QueueName("memes"), timedelta(hours=2), NOON, me()))
    put_replay(0, kept="memes")

    with pytest.raises(RejectedError, match=r"no kept message of queue 'memes' is selected: --from and --to"):
        signalbox(*ASKED)


@pytest.mark.usefixtures("settings")
def test_a_replay_has_one_source():
    with pytest.raises(RejectedError, match="give one of --exchange, --dead-letters and --kept"):
        signalbox(*ASKED, "--dead-letters", "q_a")
