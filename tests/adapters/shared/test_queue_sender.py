"""The sender to temporary queues: accepted messages, permanent failures and retryable failures."""

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from signalbox.aws.shared.queue_sender import SqsQueueSender
from signalbox.backoff import ATTEMPTS, Backoff
from signalbox.errors import EffectFailed
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.sending import Batch, Delivery, SentBatch
from tests.fakes.backoff import AT_ONCE, SteppedClock

PREFIX = "https://sqs.us-east-1.amazonaws.com/123456789012/"
QUEUE, ORIGINAL = QueueName("mirrord-1"), QueueName("memes")
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793"


def message(body: str, **attributes: str) -> Message:
    return Message.parse({"MessageId": f"id-{body}", "Body": body, "Attributes": attributes})


def batch_of(*bodies: str) -> Batch:
    return Batch(QUEUE, tuple(Delivery(message(body), QUEUE) for body in bodies))


def reasons(sent: SentBatch) -> list[tuple[str, str | None]]:
    return [(delivery.message.body, reason) for delivery, reason in sent.failed]


def accepted(*numbers: int) -> dict[str, Any]:
    return {"Successful": [{"Id": str(number), "MessageId": "new"} for number in numbers]}


class StubbedSqs:
    """An SQS client that returns or raises the given answers, one per call, and records its arguments."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.calls: list[dict[str, Any]] = []

    def send_message_batch(self, **arguments: Any) -> Any:
        return self._answer(arguments)

    def send_message(self, **arguments: Any) -> Any:
        return self._answer(arguments)

    def _answer(self, arguments: dict[str, Any]) -> Any:
        self.calls.append(arguments)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def sender_over(sqs: Any) -> SqsQueueSender:
    return SqsQueueSender(sqs, PREFIX, AT_ONCE)


def refused(code: str, *, status: int = 400) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "SendMessageBatch")


def failed_entry(number: int, code: str) -> dict[str, Any]:
    return {"Id": str(number), "SenderFault": True, "Code": code, "Message": "no"}


def test_a_batch_is_one_call(sqs):
    url = sqs.create_queue(QueueName=QUEUE)["QueueUrl"]

    sent = sender_over(sqs).send(batch_of(*"0123456789"))

    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert sorted(one["Body"] for one in found) == list("0123456789")
    assert sent == SentBatch([], {f"id-{one['Body']}": one["MessageId"] for one in found})


def test_the_trace_header_is_sent_with_the_message():
    sqs = StubbedSqs({"Successful": []})
    traced = Delivery(message("1", AWSTraceHeader=TRACE), QUEUE)

    sender_over(sqs).send(Batch(QUEUE, (traced,)))

    (entry,) = sqs.calls[0]["Entries"]
    assert entry["MessageSystemAttributes"] == {"AWSTraceHeader": {"DataType": "String", "StringValue": TRACE}}


def test_failures_of_a_partly_accepted_batch_are_returned_with_a_reason_if_permanent():
    answer = {"Failed": [failed_entry(0, "InvalidMessageContents"), failed_entry(2, "KmsAccessDenied")]}

    sent = sender_over(StubbedSqs(answer)).send(batch_of("a", "b", "c"))

    assert reasons(sent) == [
        ("a", "InvalidMessageContents at SendMessageBatch of queue 'mirrord-1': no"),
        ("c", None),
    ]
    assert (sent.is_denied, sent.problem) == (True, "KmsAccessDenied at SendMessageBatch of queue 'mirrord-1': no")


@pytest.mark.parametrize(
    ("code", "is_missing"),
    [("AWS.SimpleQueueService.NonExistentQueue", True), ("QueueDoesNotExist", True), ("KmsDisabled", False)],
)
def test_a_missing_queue_is_told_from_one_that_accepts_nothing(code, is_missing):
    sent = sender_over(StubbedSqs(refused(code))).send(batch_of("a"))

    assert (reasons(sent), sent.is_queue_missing) == ([("a", None)], is_missing)


@pytest.mark.parametrize("code", ["KmsThrottled", "KMS.ThrottlingException", "RequestThrottled"])
def test_failures_that_pass_are_sent_again_alone_after_a_pause(code):
    clock = SteppedClock()
    partly = {"Failed": [failed_entry(1, code), failed_entry(2, "InvalidMessageContents")]}
    sqs = StubbedSqs(partly, {"Failed": [failed_entry(1, code)]}, {"Successful": []})

    sent = SqsQueueSender(sqs, PREFIX, Backoff(clock, lambda: 1.0)).send(batch_of("a", "b", "c"))

    assert reasons(sent) == [("c", "InvalidMessageContents at SendMessageBatch of queue 'mirrord-1': no")]
    assert [[entry["MessageBody"] for entry in call["Entries"]] for call in sqs.calls] == [
        ["a", "b", "c"],
        ["b"],
        ["b"],
    ]
    assert clock.slept == [0.1, 0.2]


def test_a_fault_of_the_service_is_sent_again_whatever_its_code():
    failure = {**failed_entry(0, "InternalError"), "SenderFault": False}

    assert sender_over(StubbedSqs({"Failed": [failure]}, {"Successful": []})).send(batch_of("a")) == SentBatch([])


def test_failures_that_do_not_pass_in_time_are_retryable():
    sqs = StubbedSqs(*[{"Failed": [failed_entry(0, "KmsThrottled")]}] * ATTEMPTS)

    assert reasons(sender_over(sqs).send(batch_of("a"))) == [("a", None)]
    assert len(sqs.calls) == ATTEMPTS


def test_an_error_of_a_repeated_call_loses_nothing_of_the_first():
    sqs = StubbedSqs({"Failed": [failed_entry(1, "KmsThrottled")]}, refused("InternalError", status=500))

    assert reasons(sender_over(sqs).send(batch_of("a", "b"))) == [("b", None)]


@pytest.mark.parametrize(
    ("code", "is_denied"),
    [
        ("AccessDenied", True),
        ("RequestThrottled", False),
        ("ThrottlingException", False),
        ("KmsAccessDenied", True),
        ("KMS.DisabledException", True),
        ("KMS.NotFoundException", True),
        ("KmsThrottled", False),
        ("KMS.ThrottlingException", False),
        ("AWS.SimpleQueueService.NonExistentQueue", False),
    ],
)
def test_a_failure_that_no_message_caused_is_retryable(code, is_denied):
    problem = f"{code} at SendMessageBatch of queue 'mirrord-1': no"
    sqs = StubbedSqs(refused(code), {"Failed": [failed_entry(0, code)]})
    once = SqsQueueSender(sqs, PREFIX, replace(AT_ONCE, most=1))

    whole, partly = once.send(batch_of("a", "b")), once.send(batch_of("a", "b"))

    assert (reasons(whole), reasons(partly)) == ([("a", None), ("b", None)], [("a", None)])
    for sent in (whole, partly):
        assert (sent.is_denied, sent.problem) == (is_denied, problem)


def test_failures_for_a_deleted_queue_are_retryable(sqs):
    assert reasons(sender_over(sqs).send(batch_of("a"))) == [("a", None)]


def test_a_message_that_makes_sqs_reject_the_whole_batch_is_isolated_and_the_others_are_sent():
    refusal = refused("InvalidParameterValue")
    sqs = StubbedSqs(refusal, accepted(0), refusal, accepted(0))

    sent = sender_over(sqs).send(batch_of("a", "bad", "c"))

    assert reasons(sent) == [("bad", "InvalidParameterValue at SendMessageBatch of queue 'mirrord-1': no")]
    assert sent.ids == {"id-a": "new", "id-c": "new"}
    assert [len(call["Entries"]) for call in sqs.calls] == [3, 1, 1, 1]


@pytest.mark.parametrize(
    "error",
    [refused("InternalError", status=500), ReadTimeoutError(endpoint_url="https://sqs")],
    ids=["server error", "no answer"],
)
def test_an_unknown_outcome_of_a_call_raises_an_error(error):
    with pytest.raises(EffectFailed, match="queue 'mirrord-1'"):
        sender_over(StubbedSqs(error)).send(batch_of("a"))
