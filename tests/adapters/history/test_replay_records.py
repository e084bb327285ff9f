"""The record of a replay in S3: loaded as it was saved, and replaced by one run only."""

from datetime import UTC, datetime

import pytest
from botocore.exceptions import ClientError

from signalbox.aws.history.replay_records import ReplayBusy, S3ReplayRecords
from signalbox.errors import EffectFailed
from signalbox.history.replay_state import InvalidReplay, ReplayId, ReplayProgress

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
AGAIN = ReplayId("again")
PLANNED = ReplayProgress(AGAIN, {"topics": "a.#"}, "snapshot 7", messages=3, size_bytes=30, planned_at=NOON)


def records(s3, bucket="history") -> S3ReplayRecords:
    return S3ReplayRecords(s3, bucket, "replays/")


def test_a_saved_record_is_loaded_unchanged(s3):
    kept = records(s3)
    kept.save(PLANNED)
    kept.save(PLANNED.claimed(["1"], at=NOON))

    assert records(s3).load(AGAIN) == PLANNED.claimed(["1"], at=NOON)
    assert [found["Key"] for found in s3.list_objects_v2(Bucket="history")["Contents"]] == ["replays/again.json"]


def test_an_unknown_replay_has_no_record(s3):
    assert records(s3).load(AGAIN) is None


def test_of_two_runs_that_begin_the_same_replay_the_second_raises(s3):
    records(s3).save(PLANNED)

    with pytest.raises(ReplayBusy, match="'again'"):
        records(s3).save(PLANNED)


def test_of_two_runs_that_resume_a_replay_the_second_to_save_raises(s3):
    first, second = records(s3), records(s3)
    first.save(PLANNED)
    second.load(AGAIN)
    second.save(PLANNED.claimed(["1"], at=NOON))

    with pytest.raises(ReplayBusy):
        first.save(PLANNED.claimed(["1"], at=NOON))


def test_an_invalid_record_raises(s3):
    s3.put_object(Bucket="history", Key="replays/again.json", Body=b"[]")

    with pytest.raises(InvalidReplay):
        records(s3).load(AGAIN)


@pytest.mark.parametrize("act", ["load", "save"])
def test_a_failed_call_of_s3_raises(s3, act):
    kept = records(s3, "nobody-s")

    with pytest.raises(EffectFailed) as failed:
        kept.load(AGAIN) if act == "load" else kept.save(PLANNED)

    assert isinstance(failed.value.__cause__, ClientError)
    assert "NoSuchBucket" in str(failed.value)
