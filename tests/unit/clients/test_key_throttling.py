"""SQS calls that the key of a queue throttled are repeated."""

from types import SimpleNamespace

import boto3
import pytest
from botocore.awsrequest import AWSResponse

from signalbox.clients import key_throttling
from signalbox.clients.key_throttling import ATTEMPTS, retry_delay, retry_throttled_keys

THROTTLED = {"x-amzn-query-error": "KMS.ThrottlingException;Sender", "content-type": "application/x-amz-json-1.0"}


def sends(*, retries: bool, throttled: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Send a message whose first calls are throttled; return the number of calls and the error's code."""
    monkeypatch.setattr(key_throttling, "FIRST_PAUSE_SECONDS", 0)
    session = boto3.Session("key", "secret", region_name="us-east-1")
    if retries:
        retry_throttled_keys(session)
    sqs, calls = session.client("sqs"), []

    def answer(request, **_):
        calls.append(request)
        refused = len(calls) <= throttled
        body = b'{"__type": "KmsThrottled", "message": "x"}' if refused else b'{"MessageId": "1"}'
        raw = SimpleNamespace(stream=lambda **_: iter([body]))
        return AWSResponse(request.url, 400 if refused else 200, THROTTLED if refused else {}, raw)

    sqs.meta.events.register("before-send", answer)
    try:
        sqs.send_message(QueueUrl="http://127.0.0.1:9/000000000000/q", MessageBody="x")
    except sqs.exceptions.KmsThrottled as error:
        return len(calls), error.response["Error"]["Code"]
    return len(calls), ""


def test_a_throttled_call_is_repeated_until_it_succeeds(monkeypatch):
    assert sends(retries=True, throttled=3, monkeypatch=monkeypatch) == (4, "")


def test_botocore_alone_does_not_repeat_it(monkeypatch):
    assert sends(retries=False, throttled=1, monkeypatch=monkeypatch) == (1, "KMS.ThrottlingException")


def test_a_call_that_stays_throttled_fails(monkeypatch):
    assert sends(retries=True, throttled=99, monkeypatch=monkeypatch) == (ATTEMPTS, "KMS.ThrottlingException")


@pytest.mark.parametrize("response", [None, (None, {}), (None, {"Error": {"Code": "QueueDoesNotExist"}})])
def test_other_answers_are_left_to_botocore(response):
    assert retry_delay(response, attempts=1) is None


def test_pauses_grow():
    response = (None, {"Error": {"Code": "KmsThrottled"}})

    first, third = (retry_delay(response, attempts=attempts) or 0 for attempts in (1, 3))

    assert 0.1 <= first <= 0.2
    assert 0.4 <= third <= 0.8
