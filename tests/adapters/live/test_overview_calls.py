"""The queue of calls for the function `overview`."""

from signalbox.aws.live.overview_calls import SqsOverviewCalls
from signalbox.live.outbox.overview_calls import OverviewCall
from tests.fakes.aws import sqs  # noqa: F401 - a fixture
from tests.unit.live.procedures.test_overview_service import CALL


def test_a_call_that_is_sent_twice_is_one_message_of_its_connections_group(sqs):  # noqa: F811
    url = sqs.create_queue(QueueName="overview.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    calls = SqsOverviewCalls(sqs, url)

    for _ in range(2):
        calls.send(CALL)

    (message,) = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"])["Messages"]
    assert OverviewCall.parse(message["Body"]) == CALL
    assert message["Attributes"]["MessageGroupId"] == CALL.connection
