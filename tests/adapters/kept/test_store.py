"""Kept messages in S3 and in memory: written, listed in order, read, and deleted with all versions."""

from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from signalbox.aws.kept.store import S3KeptMessages
from signalbox.errors import EffectFailed
from signalbox.kept.objects import NotKept, StoredVersion, kept_batch, key_at, read_batch
from signalbox.messages import Message
from signalbox.queues import QueueName
from tests.fakes.aws import aws  # noqa: F401 - a fixture
from tests.fakes.clock import START
from tests.fakes.kept import MemoryKeptMessages

BUCKET = "history"
MEMES, OTHERS = QueueName("memes"), QueueName("memes-2")
MINUTE = timedelta(minutes=1)


@pytest.fixture
def s3(aws: None) -> Any:  # noqa: F811
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    return client


@pytest.fixture(params=["S3", "memory"])
def store(request: pytest.FixtureRequest) -> Any:
    if request.param == "memory":
        return MemoryKeptMessages()
    client = request.getfixturevalue("s3")
    return S3KeptMessages(lambda: client, BUCKET)


def batch(body: str, *, queue: QueueName = MEMES, age: timedelta = MINUTE):
    return kept_batch(queue, [Message.parse({"MessageId": body, "Body": body})], at=START - age)


def test_objects_are_listed_in_the_order_of_time_and_read(store):
    for body, age in (("2", MINUTE), ("1", 2 * MINUTE), ("0", 200 * MINUTE)):
        store.put(batch(body, age=age))
    store.put(batch("other", queue=OTHERS))

    keys = list(store.keys(MEMES, after=key_at(MEMES, START - 10 * MINUTE)))

    assert [read_batch(store.read(key))[0].body for key in keys] == ["1", "2"]
    assert list(store.keys(MEMES, after=keys[0])) == keys[1:]
    assert list(store.keys(QueueName("nothing"), after="")) == []


def test_a_deleted_object_has_no_text_and_no_version(store):
    store.put(batch("1"))
    store.put(batch("1"))  # again, by a retry
    (page,) = store.versions(MEMES)
    store.delete(page)

    assert store.read(page[0].key) is None
    assert [list(page) for page in store.versions(MEMES) if page] == []


def test_many_objects_are_listed_in_pages(s3):
    store = S3KeptMessages(lambda: Paged(s3), BUCKET)
    for number in range(5):
        store.put(batch(str(number), age=number * MINUTE))

    keys = [one.key for page in store.versions(MEMES) for one in page]

    assert len(keys) == 5
    assert keys == sorted(keys) == list(store.keys(MEMES, after=""))


class Paged:
    """An S3 client whose lists have two entries a page."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.client, name)
        return (lambda **arguments: call(MaxKeys=2, **arguments)) if name.startswith("list") else call


def test_what_s3_refuses_is_not_kept(s3):
    stub = Stubber(s3)
    stub.add_client_error("put_object", "AccessDenied", http_status_code=403)
    stub.activate()

    with pytest.raises(NotKept, match=r"AccessDenied.*'memes'"):
        S3KeptMessages(lambda: s3, BUCKET).put(batch("1"))


def test_failed_reads_and_deletions_can_be_retried(s3):
    store = S3KeptMessages(lambda: s3, "missing")
    with pytest.raises(EffectFailed):
        list(store.keys(MEMES, after=""))
    with pytest.raises(EffectFailed):
        list(store.versions(MEMES))
    with pytest.raises(EffectFailed):
        store.read("kept/memes/x")
    stub = Stubber(s3)
    stub.add_response("delete_objects", {"Errors": [{"Key": "k", "Code": "InternalError"}]})
    stub.activate()
    with pytest.raises(EffectFailed, match="1 kept objects cannot be deleted: InternalError"):
        S3KeptMessages(lambda: s3, BUCKET).delete([StoredVersion("k", "v")])
