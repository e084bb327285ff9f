"""Forwarding a batch: few calls, order per group, and what must come again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.messages import MAXIMUM_BYTES, Message, outgoing, size_bytes
from signalbox.queues import QueueName
from signalbox.sending import MAXIMUM_ENTRIES, Delivery
from signalbox.splitting.forwarding.forwarding import Forwarding, deliveries, returned
from signalbox.splitting.forwarding.matching import Decision, SessionId

DEPLOYED, ANN = QueueName("deployed"), QueueName("ann")


def message(number: int, *, group: str | None = None, body: str = "") -> Message:
    system = {} if group is None else {"MessageGroupId": group, "MessageDeduplicationId": f"d{number}"}
    return Message.parse({"MessageId": str(number), "Body": body, "Attributes": system})


def forwarding(*pairs: tuple[Message, QueueName], is_fifo: bool) -> Forwarding:
    messages = list(dict.fromkeys(id(one) for one, _ in pairs))
    by_id = {id(one): one for one, _ in pairs}
    return Forwarding([by_id[key] for key in messages], is_fifo, [Delivery(one, to) for one, to in pairs])


def calls(work: Forwarding) -> list[tuple[str, str]]:
    return [
        (batch.destination, "".join(d.message.message_id for d in batch.deliveries)) for batch in work.next_batches()
    ]


def test_a_standard_batch_takes_one_call_a_destination():
    work = forwarding((message(1), DEPLOYED), (message(2), ANN), (message(3), DEPLOYED), is_fifo=False)

    assert calls(work) == [("deployed", "13"), ("ann", "2")]
    assert calls(work) == []
    assert work.not_done() == ()


def test_calls_hold_ten_messages_and_as_many_bytes_as_sqs_takes():
    many = forwarding(*[(message(number), DEPLOYED) for number in range(21)], is_fifo=False)
    large = forwarding(*[(message(n, body="x" * (MAXIMUM_BYTES // 2)), DEPLOYED) for n in range(3)], is_fifo=False)

    assert [len(batch.deliveries) for batch in many.next_batches()] == [10, 10, 1]
    assert [len(batch.deliveries) for batch in large.next_batches()] == [2, 1]


def test_what_was_not_taken_comes_again_alone():
    first, second = Delivery(message(1), DEPLOYED), Delivery(message(2), DEPLOYED)
    work = Forwarding([first.message, second.message], False, [first, second])  # noqa: FBT003
    work.next_batches()

    work.failed(first)

    assert work.not_done() == ("1",)


def test_a_fifo_call_never_holds_two_messages_of_a_group():
    work = forwarding(
        (message(1, group="g"), DEPLOYED),
        (message(2, group="g"), DEPLOYED),
        (message(3, group="h"), DEPLOYED),
        (message(4, group="g"), ANN),
        is_fifo=True,
    )

    assert calls(work) == [("deployed", "13")]
    assert calls(work) == [("deployed", "2")]
    assert calls(work) == [("ann", "4")]
    assert work.not_done() == ()


def test_behind_a_failure_nothing_of_its_group_is_sent_and_all_of_it_comes_again():
    """A destination that fails in the middle of a batch."""
    failing = Delivery(message(2, group="g"), ANN)
    messages = [message(1, group="g"), failing.message, message(3, group="g"), message(4, group="h")]
    others = [Delivery(one, DEPLOYED) for one in (messages[0], messages[2], messages[3])]
    work = Forwarding(messages, True, [others[0], failing, *others[1:]])  # noqa: FBT003

    assert calls(work) == [("deployed", "14")]
    assert calls(work) == [("ann", "2")]
    work.failed(failing)
    assert calls(work) == []

    assert work.not_done() == ("2", "3")


def test_a_message_with_copies_is_sent_to_all_at_once_and_again_if_one_fails():
    one = message(1, group="g")
    decision = Decision(SessionId("ann"), (SessionId("eve"),), ())
    planned = deliveries(one, decision, deployed=DEPLOYED, sessions={"ann": ANN, "eve": QueueName("eve")})
    work = Forwarding([one], True, planned)  # noqa: FBT003

    assert [(d.destination, d.is_copy) for d in planned] == [("ann", False), ("eve", True)]
    assert calls(work) == [("ann", "1"), ("eve", "1")]
    work.failed(planned[1])
    assert work.not_done() == ("1",)


def test_what_no_session_owns_goes_to_the_deployed_consumer():
    (only,) = deliveries(message(1), Decision(None, (), ()), deployed=DEPLOYED, sessions={})

    assert only == Delivery(message(1), DEPLOYED)


@given(st.lists(st.tuples(st.sampled_from("gh"), st.sampled_from([DEPLOYED, ANN]), st.booleans()), max_size=12))
def test_each_destination_gets_a_group_in_order_whatever_fails(batch):
    messages = [message(number, group=group) for number, (group, _, _) in enumerate(batch)]
    planned = [Delivery(one, to) for one, (_, to, _) in zip(messages, batch, strict=True)]
    work = Forwarding(messages, True, planned)  # noqa: FBT003
    taken = []

    while batches := work.next_batches():
        for delivery in (one for found in batches for one in found.deliveries):
            number = int(delivery.message.message_id)
            if batch[number][2]:
                work.failed(delivery)
            else:
                taken.append(number)

    for group in "gh":
        numbers = [number for number, (one, _, _) in enumerate(batch) if one == group]
        failures = [number for number in numbers if batch[number][2]]
        until = failures[0] if failures else len(batch)
        assert [number for number in taken if number in numbers] == [number for number in numbers if number < until]
        assert [n for n in numbers if str(n) in work.not_done()] == [n for n in numbers if n >= until]


FULL = {
    "MessageId": "m",
    "Body": "b",
    "Attributes": {
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
        "AWSTraceHeader": "Root=1",
        "SentTimestamp": "1",
        "SenderId": "AROA",
    },
    "MessageAttributes": {
        **{f"a{number}": {"DataType": "String", "StringValue": "x"} for number in range(9)},
        "picture": {"DataType": "Binary", "BinaryValue": "iVBORw=="},
    },
}


def test_a_message_is_forwarded_as_it_was_sent():
    """A message with ten attributes has no room for one more, so none is added."""
    assert outgoing(Message.parse(FULL)) == {
        "MessageBody": "b",
        "MessageAttributes": FULL["MessageAttributes"],
        "MessageGroupId": "g",
        "MessageDeduplicationId": "d",
        "MessageSystemAttributes": {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}},
    }
    assert outgoing(Message.parse({"Body": "b"})) == {"MessageBody": "b"}


def test_what_goes_back_into_the_original_is_not_swallowed_there_and_not_doubled_by_a_second_try():
    message_ = Message.parse(FULL)
    told = returned(message_)

    assert told["MessageDeduplicationId"] != "d"
    assert len(told["MessageDeduplicationId"]) == 64  # SQS allows 128
    assert told == returned(message_)
    assert {**told, "MessageDeduplicationId": "d"} == outgoing(message_)
    assert returned(Message.parse({"Body": "b"})) == {"MessageBody": "b"}


@pytest.mark.parametrize(
    ("value", "size"),
    [({"Body": "é"}, 2), (FULL, 1 + 9 * (2 + 6 + 1) + 7 + 6 + 6), ({"Body": "\ud800"}, 3)],
)
def test_attributes_count_for_the_size_of_a_message(value, size):
    assert size_bytes(Message.parse(value)) == size
    assert MAXIMUM_ENTRIES == 10
