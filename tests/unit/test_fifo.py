"""The FIFO rule of received batches: order within a group, one message of a group a call, and redelivery."""

from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from signalbox.fifo import FifoBatch
from signalbox.messages import MAXIMUM_BYTES, Message
from signalbox.queues import QueueName
from signalbox.sending import Delivery, batches

LEFT, RIGHT = QueueName("left"), QueueName("right")
BATCHES = st.lists(st.tuples(st.sampled_from("gh"), st.booleans()), max_size=12)


def message(number: int, *, group: str | None = None, body: str = "") -> Message:
    system = {} if group is None else {"MessageGroupId": group, "MessageDeduplicationId": f"d{number}"}
    return Message.parse({"MessageId": str(number), "Body": body, "Attributes": system})


def planned(*pairs: tuple[Message, QueueName], is_fifo: bool) -> FifoBatch[Delivery]:
    return FifoBatch([(one, Delivery(one, destination)) for one, destination in pairs], is_fifo)


def calls(batch: FifoBatch[Delivery]) -> list[tuple[str, str]]:
    return [
        (call.destination, "".join(one.message.message_id for one in call.deliveries))
        for call in batches(batch.take_ready())
    ]


def test_a_standard_batch_takes_one_call_a_destination() -> None:
    batch = planned((message(1), LEFT), (message(2), RIGHT), (message(3), LEFT), is_fifo=False)

    assert calls(batch) == [("left", "13"), ("right", "2")]
    assert calls(batch) == []
    assert batch.not_done() == ()


def test_a_call_holds_at_most_ten_messages_and_at_most_the_bytes_that_sqs_accepts() -> None:
    many = [Delivery(message(number), LEFT) for number in range(21)]
    large = [Delivery(message(number, body="x" * (MAXIMUM_BYTES // 2)), LEFT) for number in range(3)]

    assert [len(call.deliveries) for call in batches(many)] == [10, 10, 1]
    assert [len(call.deliveries) for call in batches(large)] == [2, 1]


def test_a_fifo_call_never_holds_two_messages_of_a_group() -> None:
    batch = planned(
        (message(1, group="g"), LEFT),
        (message(2, group="g"), LEFT),
        (message(3, group="h"), LEFT),
        (message(4, group="g"), RIGHT),
        is_fifo=True,
    )

    assert calls(batch) == [("left", "13")]
    assert calls(batch) == [("left", "2")]
    assert calls(batch) == [("right", "4")]
    assert batch.not_done() == ()


def test_a_message_with_copies_is_sent_to_all_at_once_and_redelivered_if_one_fails() -> None:
    one = message(1, group="g")
    copies = Delivery(one, LEFT), Delivery(one, RIGHT, is_copy=True)
    batch = FifoBatch([(one, copies)], is_fifo=True)

    sent = [(call.destination, len(call.deliveries)) for call in batches(chain.from_iterable(batch.take_ready()))]
    assert sent == [("left", 1), ("right", 1)]
    batch.fail(one.message_id)
    assert batch.not_done() == ("1",)


def test_a_recalled_message_takes_back_what_was_done_behind_it_in_its_group() -> None:
    messages = [message(1, group="g"), message(2, group="h"), message(3, group="g"), message(4, group="g")]
    batch = planned(*((one, LEFT) for one in messages), is_fifo=True)
    while batch.take_ready():
        pass

    batch.recall([messages[2].message_id])

    assert batch.not_done() == ("3", "4")
    assert [one.message.message_id for one in batch.unblocked()] == ["1", "2"]


@given(BATCHES)
def test_each_group_is_processed_in_order_up_to_its_first_failure_and_redelivered_from_there(
    found: list[tuple[str, bool]],
) -> None:
    batch = FifoBatch([(message(n, group=group), n) for n, (group, _) in enumerate(found)], is_fifo=True)
    taken: list[int] = []

    while ready := batch.take_ready():
        assert len({found[number][0] for number in ready}) == len(ready)  # one message of a group a round
        taken += [number for number in ready if not found[number][1]]
        for number in ready:
            if found[number][1]:
                batch.fail(message(number).message_id)

    for group in "gh":
        numbers = [number for number, (one, _) in enumerate(found) if one == group]
        first_failure = next((number for number in numbers if found[number][1]), len(found))
        before = [number for number in numbers if number < first_failure]
        assert [number for number in taken if number in numbers] == before
        assert [number for number in batch.unblocked() if number in numbers] == before
        assert [n for n in numbers if str(n) in batch.not_done()] == [n for n in numbers if n >= first_failure]


@given(BATCHES)
def test_in_a_standard_queue_every_message_is_processed_once_and_exactly_the_failed_ones_are_redelivered(
    found: list[tuple[str, bool]],
) -> None:
    batch = FifoBatch([(message(number), number) for number in range(len(found))], is_fifo=False)

    assert batch.take_ready() == list(range(len(found)))
    for number, (_, has_failed) in enumerate(found):
        if has_failed:
            batch.fail(message(number).message_id)

    assert batch.take_ready() == []
    assert batch.not_done() == tuple(str(number) for number, (_, has_failed) in enumerate(found) if has_failed)


def test_messages_in_front_of_one_that_failed_are_ready() -> None:
    batch = FifoBatch([(message(n, group="a"), n) for n in range(3)], is_fifo=True)

    batch.fail(message(1, group="a").message_id)

    assert (batch.take_ready(), batch.take_ready()) == ([0], [])
    assert len(batch.not_done()) == 2


def test_messages_of_one_key_are_ready_one_after_the_other_in_any_group() -> None:
    batch = FifoBatch([(message(n, group=str(n)), n) for n in range(4)], is_fifo=True, key_of=lambda n: "ab"[n // 3])

    assert [batch.take_ready() for _ in range(4)] == [[0, 3], [1], [2], []]
