"""The resender, with a queue that does not always accept messages."""

from collections.abc import Callable, Sequence

from signalbox.errors import EffectFailed
from signalbox.exchange.routing.resender import NOT_TAKEN, PAUSES, Resender
from signalbox.messages import MAXIMUM_BYTES, Message, MessageId
from signalbox.queues import QueueName
from signalbox.sending import Batch, SentBatch

Answer = Callable[[Message], str | None]


class Queue:
    """A `QueueSender` with scripted failures, which drops duplicates if it is a FIFO queue."""

    def __init__(self, *failures: dict[str, str | None], silent: Sequence[int] = ()) -> None:
        self.failures, self.silent = list(failures), silent
        self.calls: list[list[str]] = []
        self.taken: list[str] = []

    def send(self, batch: Batch) -> SentBatch:
        number = len(self.calls)
        self.calls.append([one.message.body for one in batch.deliveries])
        failing = self.failures[number] if number < len(self.failures) else {}
        self.taken += [body for body in self.calls[-1] if body not in failing and body not in self.taken]
        if number in self.silent:
            raise EffectFailed("no answer")
        failed = [(one, failing[one.message.body]) for one in batch.deliveries if one.message.body in failing]
        ids = {one.message.message_id: MessageId(f"new-{one.message.body}") for one in batch.deliveries}
        return SentBatch(failed, ids)


def messages(*bodies: str, fifo: bool = False) -> list[Message]:
    return [
        Message(MessageId(f"id-{body}"), body, {}, {"MessageGroupId": body[0]} if fifo else {}, {}) for body in bodies
    ]


def resender(queue: Queue, name: str = "q_a", slept: list[float] | None = None) -> Resender:
    return Resender(queue, QueueName(name), (slept if slept is not None else []).append)


def test_messages_go_ten_a_call():
    queue = Queue()
    bodies = [f"m{number}" for number in range(12)]

    sent = resender(queue).send(messages(*bodies))

    assert queue.calls == [bodies[:10], bodies[10:]]
    assert sent.taken == {f"id-{body}": f"new-{body}" for body in bodies}
    assert not sent.is_stopped


def test_calls_are_no_larger_than_sqs_takes():
    queue = Queue()
    half = "x" * (MAXIMUM_BYTES // 2 + 1)

    resender(queue).send(messages(f"a{half}", f"b{half}"))

    assert [len(call) for call in queue.calls] == [1, 1]


def test_a_message_for_which_the_mark_leaves_no_room_is_refused_unsent():
    queue = Queue()

    sent = resender(queue).send(messages("a" * (MAXIMUM_BYTES + 1), "b"))

    assert queue.calls == [["b"]]
    assert (len(sent.refused), tuple(sent.taken)) == (1, ("id-b",))


def test_messages_that_are_not_accepted_are_sent_again_after_a_pause():
    queue, slept = Queue({"b": None}), list[float]()

    sent = resender(queue, slept=slept).send(messages("a", "b"))

    assert queue.calls == [["a", "b"], ["b"]]
    assert slept == list(PAUSES[:2])
    assert tuple(sent.taken) == ("id-a", "id-b")


def test_permanently_refused_messages_are_not_sent_again():
    queue = Queue({"a": "InvalidMessageContents"})

    sent = resender(queue).send(messages("a", "b"))

    assert (queue.calls, sent.refused, tuple(sent.taken)) == (
        [["a", "b"]],
        {"id-a": "InvalidMessageContents"},
        ("id-b",),
    )


def test_a_message_that_is_never_accepted_stops_the_replay():
    queue = Queue(*[{"a": None}] * len(PAUSES))

    sent = resender(queue).send(messages("a"))

    assert (len(queue.calls), sent.refused, sent.is_stopped) == (len(PAUSES), {"id-a": NOT_TAKEN}, True)


def test_an_unanswered_call_to_a_standard_queue_is_not_repeated():
    queue = Queue(silent=[0])

    sent = resender(queue).send(messages("a", "b"))

    assert (queue.calls, sent.doubtful, tuple(sent.taken)) == ([["a", "b"]], ("id-a", "id-b"), ())
    assert not sent.is_stopped


def test_an_unanswered_call_to_a_fifo_queue_is_repeated():
    queue = Queue(silent=[0])

    sent = resender(queue, "q_a.fifo").send(messages("a1", "b1", fifo=True))

    assert queue.calls == [["a1", "b1"], ["a1", "b1"]]
    assert (tuple(sent.taken), sent.doubtful) == (("id-a1", "id-b1"), ())


def test_a_fifo_queue_that_never_answers_leaves_messages_in_doubt():
    queue = Queue(silent=range(len(PAUSES)))

    sent = resender(queue, "q_a.fifo").send(messages("a1", fifo=True))

    assert (sent.doubtful, sent.refused, sent.is_stopped) == (("id-a1",), {}, True)


def test_in_a_fifo_queue_nothing_overtakes_a_message_of_its_group():
    queue = Queue({"a1": None})

    sent = resender(queue, "q_a.fifo").send(messages("a1", "b1", "a2", "b2", fifo=True))

    assert queue.calls == [["a1", "b1"], ["b2"], ["a1"], ["a2"]]
    assert tuple(sent.taken) == ("id-b1", "id-b2", "id-a1", "id-a2")


def test_a_call_of_which_everything_has_to_wait_is_not_made():
    queue = Queue({"a1": None})

    resender(queue, "q_a.fifo").send(messages("a1", "a2", fifo=True))

    assert queue.calls == [["a1"], ["a1"], ["a2"]]
