"""Errors as AWS sends them, by botocore's parsers: which of them pass."""

import json

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ClientError

from signalbox.aws.shared.errors import is_retryable, translate_write_errors
from signalbox.errors import EffectFailed, EffectRefused


class Wire:
    """The body of a response, as botocore reads it from a connection."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def stream(self, **_: object):
        yield self.body


def answered(service: str, kind: str, *, query_error: str | None = None, status: int = 400):
    """Return a client whose every call gets this error over the wire."""
    credentials = {"region_name": "us-east-1", "aws_access_key_id": "a", "aws_secret_access_key": "b"}
    client = boto3.client(service, config=Config(retries={"total_max_attempts": 1}), **credentials)
    headers = {"Content-Type": "application/x-amz-json-1.0"}
    if query_error:  # the code of the older protocol, which botocore prefers
        headers["x-amzn-query-error"] = query_error
    body = json.dumps({"__type": kind, "message": "no"}).encode()
    client.meta.events.register("before-send", lambda **_: AWSResponse("https://aws", status, headers, Wire(body)))
    return client


def send(client) -> None:
    client.send_message(QueueUrl="https://sqs.us-east-1.amazonaws.com/1/q", MessageBody="x")


@pytest.mark.parametrize(
    ("kind", "query_error"),
    [
        ("com.amazonaws.sqs#KmsThrottled", "KMS.ThrottlingException;Sender"),
        ("com.amazonaws.sqs#KmsThrottled", None),
        ("com.amazonaws.sqs#RequestThrottled", "RequestThrottled;Sender"),
        ("com.amazonaws.sqs#QueueDeletedRecently", "AWS.SimpleQueueService.QueueDeletedRecently;Sender"),
        ("com.amazonaws.sqs#KmsAccessDenied", "KMS.AccessDeniedException;Sender"),
        ("com.amazonaws.sqs#KmsDisabled", "KMS.DisabledException;Sender"),
        ("com.amazonaws.sqs#KmsInvalidState", None),
    ],
)
def test_throttling_recent_deletion_and_an_unusable_key_pass_in_the_form_that_sqs_sends(kind, query_error):
    with pytest.raises(EffectFailed), translate_write_errors("queue 'q'"):
        send(answered("sqs", kind, query_error=query_error))


def test_a_missing_queue_does_not_pass():
    missing = answered(
        "sqs", "com.amazonaws.sqs#QueueDoesNotExist", query_error="AWS.SimpleQueueService.NonExistentQueue;Sender"
    )

    with pytest.raises(EffectRefused), translate_write_errors("queue 'q'"):
        send(missing)


@pytest.mark.parametrize(
    "kind", ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"]
)
def test_a_hot_key_of_dynamodb_passes(kind):
    client = answered("dynamodb", f"com.amazonaws.dynamodb.v20120810#{kind}")

    with pytest.raises(ClientError) as caught:
        client.get_item(TableName="t", Key={"pk": {"S": "a"}})

    assert is_retryable(caught.value)
