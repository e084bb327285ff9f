"""SQS calls that the key of a queue throttled are repeated, also by the client of functions."""

from datetime import timedelta
from types import SimpleNamespace

import boto3
import pytest
from botocore.awsrequest import AWSResponse

from lambdas.shared import instance
from signalbox.aws.shared.throttled_keys import retry_delay, retry_throttled_keys
from signalbox.backoff import ATTEMPTS, Backoff
from tests.fakes.backoff import SteppedClock

THROTTLED = {"x-amzn-query-error": "KMS.ThrottlingException;Sender", "content-type": "application/x-amz-json-1.0"}
AT_ONCE = Backoff(SteppedClock(), lambda: 0.0)
REFUSED = (None, {"Error": {"Code": "KmsThrottled"}})


def sends(sqs, *, throttled: int) -> tuple[int, str]:
    """Send a message whose first calls are throttled; return the number of calls and the error's code."""
    calls = []

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


def client(*, retries: bool):
    session = boto3.Session("key", "secret", region_name="us-east-1")
    if retries:
        retry_throttled_keys(session.events, AT_ONCE)
    return session.client("sqs")


def test_a_throttled_call_is_repeated_until_it_succeeds():
    assert sends(client(retries=True), throttled=3) == (4, "")


def test_botocore_alone_does_not_repeat_it():
    assert sends(client(retries=False), throttled=1) == (1, "KMS.ThrottlingException")


def test_a_call_that_stays_throttled_fails():
    assert sends(client(retries=True), throttled=99) == (ATTEMPTS, "KMS.ThrottlingException")


def test_the_client_of_functions_repeats_it(monkeypatch):
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "k"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
        ("AWS_DEFAULT_REGION", "eu-west-1"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(instance, "backoff", lambda: AT_ONCE)

    assert sends(instance.sqs.__wrapped__(), throttled=3) == (4, "")


@pytest.mark.parametrize("response", [None, (None, {}), (None, {"Error": {"Code": "QueueDoesNotExist"}})])
def test_other_answers_are_left_to_botocore(response):
    assert retry_delay(AT_ONCE, response, attempts=1) is None


def test_pauses_grow_and_end_with_the_deadline():
    clock = SteppedClock()
    backoff = Backoff(clock, lambda: 1.0, lambda: clock.now() + timedelta(seconds=0.5))

    assert [retry_delay(backoff, REFUSED, attempts=attempts) for attempts in (1, 2, 3, 4)] == [0.1, 0.2, 0.4, None]
