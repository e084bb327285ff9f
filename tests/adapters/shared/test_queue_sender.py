"""Sending to temporary queues: what SQS takes, refuses for good, and does not take now."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from signalbox.aws.shared.queue_sender import SqsQueueSender
from signalbox.errors import EffectFailed
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.sending import Batch, Delivery

PREFIX = "https://sqs.us-east-1.amazonaws.com/123456789012/"
QUEUE, ORIGINAL = QueueName("mirrord-1"), QueueName("memes")
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793"


def message(body: str, **attributes: str) -> Message:
    return Message.parse({"MessageId": f"id-{body}", "Body": body, "Attributes": attributes})


def batch_of(*bodies: str) -> Batch:
    return Batch(QUEUE, tuple(Delivery(message(body), QUEUE) for body in bodies))


def reasons(failed: Any) -> list[tuple[str, str | None]]:
    return [(delivery.message.body, reason) for delivery, reason in failed]


class OddSqs:
    """An SQS that answers as it is told to, call by call, and keeps what it was asked."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []

    def send_message_batch(self, **arguments: Any) -> Any:
        return self._answer(arguments)

    def send_message(self, **arguments: Any) -> Any:
        return self._answer(arguments)

    def _answer(self, arguments: dict[str, Any]) -> Any:
        self.asked.append(arguments)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def sender_over(sqs: Any) -> SqsQueueSender:
    return SqsQueueSender(sqs, PREFIX)


def refused(code: str, *, status: int = 400) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "SendMessageBatch")


def failed_entry(number: int, code: str) -> dict[str, Any]:
    return {"Id": str(number), "SenderFault": True, "Code": code, "Message": "no"}


def test_a_batch_is_one_call(sqs):
    url = sqs.create_queue(QueueName=QUEUE)["QueueUrl"]

    assert sender_over(sqs).send(batch_of(*"0123456789")) == []

    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert sorted(one["Body"] for one in found) == list("0123456789")


def test_the_trace_header_goes_with_the_message():
    sqs = OddSqs({"Successful": []})
    traced = Delivery(message("1", AWSTraceHeader=TRACE), QUEUE)

    sender_over(sqs).send(Batch(QUEUE, (traced,)))

    (entry,) = sqs.asked[0]["Entries"]
    assert entry["MessageSystemAttributes"] == {"AWSTraceHeader": {"DataType": "String", "StringValue": TRACE}}


def test_of_a_batch_that_was_taken_in_part_each_failure_is_told_with_what_it_is():
    answer = {"Failed": [failed_entry(0, "InvalidMessageContents"), failed_entry(2, "KmsThrottled")]}

    failed = sender_over(OddSqs(answer)).send(batch_of("a", "b", "c"))

    assert reasons(failed) == [
        ("a", "InvalidMessageContents at SendMessageBatch of queue 'mirrord-1': no"),
        ("c", None),
    ]


@pytest.mark.parametrize("code", ["AccessDenied", "RequestThrottled", "KmsAccessDenied", "KMS.DisabledException"])
def test_what_is_not_about_the_message_may_be_tried_again(code):
    assert reasons(sender_over(OddSqs(refused(code))).send(batch_of("a", "b"))) == [("a", None), ("b", None)]


def test_a_queue_that_is_gone_took_nothing(sqs):
    assert reasons(sender_over(sqs).send(batch_of("a"))) == [("a", None)]


def test_a_message_for_which_sqs_refuses_the_whole_call_is_found_and_the_others_are_sent():
    refusal = refused("InvalidParameterValue")
    sqs = OddSqs(refusal, {"Successful": []}, refusal, {"Successful": []})

    failed = sender_over(sqs).send(batch_of("a", "bad", "c"))

    assert reasons(failed) == [("bad", "InvalidParameterValue at SendMessageBatch of queue 'mirrord-1': no")]
    assert [len(asked["Entries"]) for asked in sqs.asked] == [3, 1, 1, 1]


@pytest.mark.parametrize(
    "error",
    [refused("InternalError", status=500), ReadTimeoutError(endpoint_url="https://sqs")],
    ids=["server error", "no answer"],
)
def test_it_is_told_when_nobody_knows_what_was_taken(error):
    with pytest.raises(EffectFailed, match="queue 'mirrord-1'"):
        sender_over(OddSqs(error)).send(batch_of("a"))
