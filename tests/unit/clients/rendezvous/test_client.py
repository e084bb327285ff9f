"""The client library: its requests, its waiting times, and its results.

The times in the table were measured with upstream's client v2.14.1, when it succeeded and when it gave up.
"""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from signalbox.clients.rendezvous.client import BrokerRefused, NoAnswer, SqsRendezvous, new_client_id
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage
from signalbox.rendezvous.wire.reply import answer_reply, error_reply

BROKER = "https://sqs.eu-central-1.amazonaws.com/123456789012/snowflake-broker"
CLIENT_ID = "0123456789abcdef"
NEVER = float("inf")


class QueueMissing(Exception):
    """The exception of the fake."""


class FakeExceptions:
    QueueDoesNotExist = QueueMissing


@dataclass
class FakeQueues:
    """A fake SQS with its own clock; the broker creates the queue and replies at given times."""

    queue_at: float = 0.0
    reply_at: float = 0.0
    reply: str = answer_reply("an answer")
    now: float = 0.0
    calls: list = field(default_factory=list)
    exceptions = FakeExceptions()

    def sleep(self, seconds):
        self.now += seconds

    def clock(self):
        return self.now

    def send_message(self, **request):
        self.calls.append(("send_message", request))

    def get_queue_url(self, **request):
        self.calls.append(("get_queue_url", request))
        if self.now < self.queue_at:
            raise QueueMissing
        return {"QueueUrl": f"https://sqs/{request['QueueName']}"}

    def receive_message(self, **request):
        self.calls.append(("receive_message", request))
        end = self.now + request["WaitTimeSeconds"]
        if self.reply_at > end:
            self.now = end
            return {}
        self.now = max(self.now, self.reply_at)
        return {"Messages": [{"Body": self.reply}]}

    def rendezvous(self, **settings):
        return SqsRendezvous(self, queue_url=BROKER, sleep=self.sleep, clock=self.clock, **settings)


def test_the_requests_are_those_of_upstreams_client():
    queues = FakeQueues(queue_at=1.5, reply_at=30)

    queues.rendezvous().exchange("1.0\n{}", client_id=CLIENT_ID)

    look = ("get_queue_url", {"QueueName": "snowflake-client-0123456789abcdef"})
    receive = (
        "receive_message",
        {
            "QueueUrl": "https://sqs/snowflake-client-0123456789abcdef",
            "MaxNumberOfMessages": 1,
            "WaitTimeSeconds": 20,
        },
    )
    attributes = {"ClientID": {"DataType": "String", "StringValue": CLIENT_ID}}
    assert queues.calls == [
        ("send_message", {"QueueUrl": BROKER, "MessageBody": "1.0\n{}", "MessageAttributes": attributes}),
        look,
        look,
        receive,
        receive,
    ]


def test_another_prefix_of_client_queues():
    queues = FakeQueues()

    queues.rendezvous(client_queue_prefix="c-").exchange("1.0\n{}", client_id=CLIENT_ID)

    assert queues.calls[1] == ("get_queue_url", {"QueueName": f"c-{CLIENT_ID}"})


@pytest.mark.parametrize(
    ("queue_at", "reply_at", "answered_after"),
    [
        pytest.param(0, 0, 1, id="no rendezvous is faster than a second"),
        pytest.param(4.5, 5, 5, id="a queue after 4.5 s is in time"),
        pytest.param(0, 30, 30, id="30 s"),
        pytest.param(0, 80, 80, id="80 s"),
        pytest.param(0, 105, 105, id="105 s"),
        pytest.param(0, 21.5, 22, id="an answer in a pause waits for its end"),
    ],
)
def test_an_answer_in_time_is_returned(queue_at, reply_at, answered_after):
    answer = FakeQueues(queue_at, reply_at).rendezvous().exchange("1.0\n{}", client_id=CLIENT_ID)

    assert answer.session_description == "an answer"
    assert answer.client_id == CLIENT_ID
    assert answer.after == timedelta(seconds=answered_after)


@pytest.mark.parametrize(
    ("queue_at", "reply_at", "gives_up_after"),
    [
        pytest.param(5.6, 6, 5, id="a queue after 5.6 s is too late"),
        pytest.param(NEVER, NEVER, 5, id="no queue"),
        pytest.param(0, 112, 108, id="an answer after 112 s is too late"),
        pytest.param(0, NEVER, 108, id="no answer"),
    ],
)
def test_a_client_gives_up_when_upstreams_does(queue_at, reply_at, gives_up_after):
    queues = FakeQueues(queue_at, reply_at)

    with pytest.raises(NoAnswer):
        queues.rendezvous().exchange("1.0\n{}", client_id=CLIENT_ID)

    assert queues.now == gives_up_after


def test_progress_is_reported_in_order():
    seen = []

    FakeQueues(queue_at=1.5, reply_at=7).rendezvous().exchange("1.0\n{}", client_id=CLIENT_ID, on_progress=seen.append)

    assert seen == [
        f"offer sent, client id {CLIENT_ID}",
        "the broker received it (2.00 s)",
        "answered (7.00 s)",
    ]


def test_a_refusal_has_the_brokers_error_text():
    queues = FakeQueues(reply=error_reply("no snowflake proxies currently available"))

    with pytest.raises(BrokerRefused) as refused:
        queues.rendezvous().exchange("1.0\n{}")

    assert refused.value.text == "no snowflake proxies currently available"


def test_an_invalid_reply_is_an_error():
    with pytest.raises(InvalidMessage):
        FakeQueues(reply="hello").rendezvous().exchange("1.0\n{}")


def test_every_exchange_has_a_client_id_of_its_own():
    queues = FakeQueues()

    ids = {queues.rendezvous().exchange("1.0\n{}").client_id for _ in range(8)}

    assert len(ids) == 8


def test_a_client_id_is_16_lower_case_hexadecimal_characters():
    client_id = new_client_id()

    assert len(client_id) == 16
    assert set(client_id) <= set("0123456789abcdef")
