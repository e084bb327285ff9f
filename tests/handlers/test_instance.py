"""The deadline of an invocation, after which its failed calls are not repeated."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError

from lambdas.shared import instance
from tests.handlers.environment import Context


def test_calls_are_repeated_within_half_of_the_time_that_is_left():
    before = instance.CLOCK.now()
    instance.begin(Context(10_000))
    deadline = instance.backoff().deadline()

    assert deadline is not None
    assert before + timedelta(seconds=5) <= deadline <= instance.CLOCK.now() + timedelta(seconds=5)


def test_an_invocation_without_a_context_has_no_deadline():
    instance.begin(Context(10_000))

    instance.begin(None)

    assert instance.backoff().deadline() is None


@pytest.mark.parametrize(("client", "most"), [(instance.sqs, 3), (instance.sqs_once, 1)])
def test_a_queue_that_sqs_throttles_does_not_hold_a_function(monkeypatch, client, most):
    """botocore's default is five calls with pauses of 7.5 s on average, without regard to the time-out."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "k")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    calls, slept = [], []
    monkeypatch.setattr("time.sleep", slept.append)

    def throttle(request, **_):
        calls.append(request)
        headers = {"x-amzn-query-error": "RequestThrottled;Sender", "content-type": "application/x-amz-json-1.0"}
        raw = SimpleNamespace(stream=lambda **_: iter([b'{"__type": "RequestThrottled", "message": "x"}']))
        return AWSResponse(request.url, 403, headers, raw)

    sqs = client.__wrapped__()
    sqs.meta.events.register("before-send", throttle)

    with pytest.raises(ClientError, match="RequestThrottled"):
        sqs.send_message(QueueUrl="http://127.0.0.1:9/000000000000/q", MessageBody="x")

    assert len(calls) == most
    assert sum(slept) <= most
