"""Sending replayed messages to one queue in SQS: tried again only where that cannot make two of one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from signalbox.errors import EffectFailed
from signalbox.exchange.model.routing_ports import SideBySide, one_by_one
from signalbox.history.replay_state import SendResult
from signalbox.messages import MAXIMUM_BYTES, Message, MessageId, size_bytes
from signalbox.queues import QueueName, is_fifo
from signalbox.sending import MAXIMUM_ENTRIES, Batch, Delivery, QueueSender

PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0)  # seconds before each try
NOT_TAKEN = f"SQS took it at none of {len(PAUSES)} attempts"
TOO_LONG = f"it has more than {MAXIMUM_BYTES} bytes with the header that marks it"


@dataclass(frozen=True, slots=True)
class Resender:
    """Sends messages, which are told apart by their `message_id`, in order where the queue keeps it."""

    sender: QueueSender
    queue: QueueName
    sleep: Callable[[float], None]
    side_by_side: SideBySide = one_by_one

    def send(self, messages: Sequence[Message]) -> SendResult:
        """Return what became of messages."""
        refused = {str(one.message_id): TOO_LONG for one in messages if size_bytes(one) > MAXIMUM_BYTES}
        work = _Work([one for one in messages if one.message_id not in refused], refused)
        for pause in PAUSES:
            if work.left:
                self.sleep(pause)
                self._try(work)
        left = {str(one.message_id) for one in work.left}
        unknown = left & work.unknown
        return SendResult(
            taken=tuple(work.taken),
            refused=work.refused | dict.fromkeys(sorted(left - unknown), NOT_TAKEN),
            doubtful=(*work.doubtful, *sorted(unknown)),
            is_stopped=bool(left),
        )

    def _try(self, work: "_Work") -> None:
        """Make one call for each ten messages; what is not taken is left."""
        ready, work.left = work.left, []
        if is_fifo(self.queue):
            self._try_in_order(ready, work)
            return
        calls = list(_calls(ready, is_fifo=False))
        for messages, failures in zip(calls, self.side_by_side(self._failures, calls), strict=True):
            if failures is None:  # perhaps they were taken, and a second call would make two of each
                work.doubtful += [str(one.message_id) for one in messages]
            else:
                work.note(messages, failures)

    def _try_in_order(self, ready: Sequence[Message], work: "_Work") -> None:
        waiting: set[str | None] = set()
        for call in _calls(ready, is_fifo=True):
            # Behind a message that was not taken, none of its group may come first.
            messages = [one for one in call if one.group_id not in waiting]
            work.left += [one for one in call if one.group_id in waiting]
            failures = self._failures(messages) if messages else {}
            if failures is None:  # of which the queue drops what it has taken
                work.unknown |= {str(one.message_id) for one in messages}
                failures = {one.message_id: None for one in messages}
            work.note(messages, failures)
            waiting |= {one.group_id for one in messages if failures.get(one.message_id, "") is None}

    def _failures(self, messages: Sequence[Message]) -> Mapping[MessageId, str | None] | None:
        """Make one call; return what was not taken, with SQS's reason if it never will be, or None if nobody knows."""
        try:
            failed = self.sender.send(Batch(self.queue, tuple(Delivery(one, self.queue) for one in messages)))
        except EffectFailed:
            return None
        return {delivery.message.message_id: reason for delivery, reason in failed}


class _Work:
    """Messages of one claim, and what became of them so far."""

    def __init__(self, left: list[Message], refused: dict[str, str]) -> None:
        self.left = left
        self.refused = refused
        self.taken: list[str] = []
        self.doubtful: list[str] = []
        self.unknown: set[str] = set()

    def note(self, messages: Sequence[Message], failures: Mapping[MessageId, str | None]) -> None:
        """Note what became of messages of a call that was answered."""
        for one in messages:
            reason = failures.get(one.message_id)
            if reason is not None:
                self.refused[str(one.message_id)] = reason
            elif one.message_id in failures:
                self.left.append(one)
            else:
                self.taken.append(str(one.message_id))


def _calls(messages: Sequence[Message], *, is_fifo: bool) -> Iterator[list[Message]]:
    """Yield what goes in one call: never two messages of a group, of which the second alone might be taken."""
    call: list[Message] = []
    size, groups = 0, set[str | None]()
    for one in messages:
        is_full = len(call) == MAXIMUM_ENTRIES or size + size_bytes(one) > MAXIMUM_BYTES
        if call and (is_full or (is_fifo and one.group_id in groups)):
            yield call
            call, size, groups = [], 0, set()
        call.append(one)
        size += size_bytes(one)
        groups.add(one.group_id)
    yield call  # whoever asks has a message at least
