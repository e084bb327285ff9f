"""S3 with the bucket of a history."""

import boto3
import pytest


@pytest.fixture
def s3(aws):
    client = boto3.client("s3")
    client.create_bucket(Bucket="history")
    return client
