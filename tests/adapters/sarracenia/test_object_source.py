"""S3 as a source of files."""

import boto3
import pytest

from signalbox.clients.sarracenia.object_source import s3_source
from signalbox.clients.sarracenia.sources import ByteRange, NotFetched
from tests.fakes.aws import aws  # noqa: F401 - a fixture


@pytest.fixture
def source(aws: None):  # noqa: F811
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="files")
    s3.put_object(Bucket="files", Key="a b/c#d", Body=b"abcdefghij")
    return s3_source(boto3.Session)


def test_an_object_is_fetched_whole_or_by_range(source):
    assert b"".join(source("s3://files/a%20b/c%23d", None)) == b"abcdefghij"
    assert b"".join(source("s3://files/a%20b/c%23d", ByteRange(2, 3))) == b"cde"


def test_a_range_with_huge_numbers_fails(source):
    with pytest.raises(NotFetched):
        list(source("s3://files/a%20b/c%23d", ByteRange(10**5000, 1)))


@pytest.mark.parametrize(("url", "code"), [("s3://files/nothing", "NoSuchKey"), ("s3://nothing/f", "NoSuchBucket")])
def test_a_missing_object_or_bucket_is_reported(url, code, source):
    with pytest.raises(NotFetched, match=f"cannot fetch '{url}': .*{code}"):
        list(source(url, None))
