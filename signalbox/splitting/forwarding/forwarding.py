"""Forwarding a batch: what is sent where in which order, and which messages must come again."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from signalbox.messages import Message, MessageId, outgoing
from signalbox.queues import QueueName
from signalbox.sending import Batch, Delivery, batches
from signalbox.splitting.forwarding.matching import Decision, SessionId


@dataclass(slots=True)
class Forwarding:
    """The forwarding of one received batch: hands out calls, hears how they went, and tells what is not done.

    A message is done when each of its deliveries was taken, or refused for good and buried. In a FIFO queue nothing of
    a group is sent before the message ahead of it is done, so that a retry finds the order as it was; for the same
    reason no call holds two messages of one group, of which the first could fail alone.
    """

    messages: Sequence[Message]
    is_fifo: bool
    deliveries: Sequence[Delivery]
    _waiting: list[Message] = field(init=False)
    _failed: set[MessageId] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._waiting = list(self.messages)

    def next_batches(self) -> tuple[Batch, ...]:
        """Return the calls that may be made now, in any order; none when there is nothing left to do."""
        chosen = {message.message_id for message in self._ready()}
        self._waiting = [message for message in self._waiting if message.message_id not in chosen]
        return tuple(batches(one for one in self.deliveries if one.message.message_id in chosen))

    def failed(self, delivery: Delivery) -> None:
        """Hear that a delivery was not taken but may be tried again; what is not heard of was taken or buried."""
        self._failed.add(delivery.message.message_id)

    def not_done(self) -> tuple[MessageId, ...]:
        """Return the messages that must come again: what failed, and in a FIFO queue all behind it in its group."""
        waiting = {message.message_id for message in self._waiting}
        return tuple(one.message_id for one in self.messages if one.message_id in self._failed | waiting)

    def _ready(self) -> Iterator[Message]:
        if not self.is_fifo:
            yield from self._waiting
            return
        held = {message.group_id for message in self.messages if message.message_id in self._failed}
        for message in self._waiting:
            if message.group_id not in held:
                held.add(message.group_id)
                yield message


def deliveries(
    message: Message, decision: Decision, *, deployed: QueueName, sessions: Mapping[SessionId, QueueName]
) -> tuple[Delivery, ...]:
    """Return where a message goes: to its owner's queue, and as a copy to each that mirrors it."""
    owner = deployed if decision.owner is None else sessions[decision.owner]
    copies = (Delivery(message, sessions[session], is_copy=True) for session in decision.copies)
    return (Delivery(message, owner), *copies)


def returned(message: Message) -> dict[str, object]:
    """Return what SendMessage is told when a message goes back into the original queue.

    A FIFO queue swallows what it has seen in the last five minutes, also when that was deleted since: the message
    needs another de-duplication id there, the same one each time that its return is tried.
    """
    told = outgoing(message)
    if message.deduplication_id is not None:
        text = f"returned:{message.deduplication_id}:{message.message_id}"
        told["MessageDeduplicationId"] = hashlib.sha256(text.encode()).hexdigest()
    return told
