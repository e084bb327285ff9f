"""The metadata of S3 objects, read with one HeadObject each."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import Stubber

from signalbox.aws.splitting.objects import S3ObjectMetadata
from signalbox.parallel import serial_map
from signalbox.splitting.model.s3_objects import S3Object, Unread
from tests.fakes.aws import aws  # noqa: F401 - a fixture
from tests.fakes.clock import MemoryTime

BUCKET = "demo-uploads"
CAT = S3Object(BUCKET, "cat 1.jpg")
PATIENCE = timedelta(seconds=2)


@pytest.fixture
def s3(aws: None) -> Iterator[Any]:  # noqa: F811
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    client.put_object(Bucket=BUCKET, Key="cat 1.jpg", Body=b"", Metadata={"Client": "a", "size": "7"})
    return client


def adapter(s3: Any, *buckets: str, clock: MemoryTime | None = None) -> S3ObjectMetadata:
    return S3ObjectMetadata(lambda: s3, buckets or (BUCKET,), clock or MemoryTime(), lambda: 1.0, PATIENCE, serial_map)


def refusing(s3: Any, *answers: tuple[str, int]) -> Stubber:
    """Return a stub that answers HeadObject with these codes and statuses."""
    stub = Stubber(s3)
    for code, status in answers:
        stub.add_client_error("head_object", code, http_status_code=status)
    stub.activate()
    return stub


def test_metadata_has_lower_case_names(s3):
    assert adapter(s3).fetch([CAT]) == {CAT: {"client": "a", "size": "7"}}


def test_the_version_of_the_event_is_read(s3):
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    first = s3.put_object(Bucket=BUCKET, Key="dog", Body=b"", Metadata={"client": "a"})["VersionId"]
    s3.put_object(Bucket=BUCKET, Key="dog", Body=b"", Metadata={"client": "b"})
    deleted = s3.delete_object(Bucket=BUCKET, Key="dog")["VersionId"]
    versions = [S3Object(BUCKET, "dog", version) for version in (first, deleted, None)]

    assert list(adapter(s3).fetch(versions).values()) == [{"client": "a"}, Unread.MISSING, Unread.MISSING]


def test_an_object_that_does_not_exist_is_missing(s3):
    gone = S3Object(BUCKET, "gone")

    assert adapter(s3).fetch([gone, CAT]) == {gone: Unread.MISSING, CAT: {"client": "a", "size": "7"}}


def test_other_buckets_are_not_called():
    def never() -> Any:
        raise AssertionError

    found = S3ObjectMetadata(never, ("demo-*", "exact"), MemoryTime(), lambda: 1.0, PATIENCE, serial_map)

    others = [S3Object(name, "key") for name in ("secrets", "exact-too")]
    assert found.fetch(others) == dict.fromkeys(others, Unread.OTHER_BUCKET)


def test_a_star_ends_the_name_of_a_bucket(s3):
    assert adapter(s3, "other", "demo-*").fetch([CAT]) == {CAT: {"client": "a", "size": "7"}}


@pytest.mark.parametrize(
    ("status", "found"),
    [(403, Unread.FORBIDDEN), (404, Unread.MISSING), (405, Unread.MISSING), (400, Unread.REFUSED)],
)
def test_a_final_answer_is_not_asked_for_again(s3, status, found):
    stub = refusing(s3, (str(status), status))

    assert adapter(s3).fetch([CAT]) == {CAT: found}
    stub.assert_no_pending_responses()


def test_a_call_that_s3_throttles_is_repeated(s3):
    stub = refusing(s3, ("SlowDown", 503))
    stub.add_response("head_object", {"Metadata": {"client": "a"}}, {"Bucket": BUCKET, "Key": "cat 1.jpg"})

    assert adapter(s3).fetch([CAT]) == {CAT: {"client": "a"}}


def test_calls_end_in_time_while_s3_does_not_answer(s3, monkeypatch):
    clock, calls = MemoryTime(), []

    def unreachable(**wanted: str) -> None:
        calls.append(wanted["Key"])
        clock.sleep(1)
        raise EndpointConnectionError(endpoint_url="s3")

    monkeypatch.setattr(s3, "head_object", unreachable)
    objects = [S3Object(BUCKET, str(number)) for number in range(9)]

    assert set(adapter(s3, clock=clock).fetch(objects).values()) == {Unread.UNAVAILABLE}
    assert calls == ["0", "0"]  # the others have no time left


def test_a_key_that_no_request_can_contain_is_refused(s3):
    empty = S3Object(BUCKET, "")

    assert adapter(s3).fetch([empty]) == {empty: Unread.REFUSED}
