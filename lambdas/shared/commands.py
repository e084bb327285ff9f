"""Handling of control queue messages: each command is answered, dead-lettered with its reason, or received again."""

import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from lambdas.shared.poison import fail_if_stuck, poison_of
from lambdas.shared.records import in_flight, messages_of
from signalbox.aws.shared.replies import SqsReplies
from signalbox.control.delivery import CommandDelivery, UnprovenSender, proven_sender
from signalbox.control.envelope import Envelope, InvalidEnvelope
from signalbox.control.protocol import REJECTED, UNAVAILABLE
from signalbox.dead_letters import DeadLetters
from signalbox.errors import Contended, RejectedError, UnavailableError
from signalbox.queues import QueueName

Record = dict[str, Any]
Caller = TypeVar("Caller")
Result = TypeVar("Result")

# The commands handled at once (the mapping's concurrency) may all change one record; each try lets one of them succeed.
TRIES = 10
LONGEST_PAUSE_SECONDS = 0.1

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommandProcessor(Generic[Caller]):
    """Handles the commands of control queues.

    `caller` returns the caller of a command, from its record and its SenderId, or raises `UnprovenSender`; `answer`
    returns a command's result or raises; `reply_queue` returns the queue that only the caller may read.
    """

    caller: Callable[[Record, str], Caller]
    answer: Callable[[Caller, Envelope], object]
    reply_queue: Callable[[Caller], QueueName]
    replies: SqsReplies
    dead_letters: DeadLetters

    def process(self, records: Sequence[Record]) -> dict[str, Any]:
        """Answer every command; return Lambda's partial batch response with the messages to receive again.

        Raises `UnavailableError` when none was handled, for the fifth time, which raises the alarm on errors.
        """
        poison = poison_of(records, lambda record: Envelope.parse(record["body"]))
        failed = [record["messageId"] for record in records if not self._is_handled(record, poison)]
        fail_if_stuck(records, failed)
        return in_flight(failed)

    def _is_handled(self, record: Record, poison: Mapping[str, str]) -> bool:
        try:
            if record["messageId"] in poison:
                self._dead_letter(record, poison[record["messageId"]])
            else:
                self._receive(record)
        except Exception:
            logger.exception("command %s failed", record["messageId"])
            return False  # a failed command must not fail its batch: it stays in flight and is received again
        return True

    def _receive(self, record: Record) -> None:
        try:
            caller = self.caller(record, proven_sender(record["attributes"]))
            envelope = replace(Envelope.parse(record["body"]), delivery=CommandDelivery.of(record["attributes"]))
        except (UnprovenSender, InvalidEnvelope) as error:
            self._dead_letter(record, str(error))
            return
        reply_queue = self.reply_queue(caller) if envelope.wants_reply else None
        try:
            result = retried(lambda: self.answer(caller, envelope))
        except RejectedError as error:
            if reply_queue is None:
                self._dead_letter(record, str(error))
            else:
                self.replies.error(reply_queue, envelope.request_id, str(error), REJECTED)
        except UnavailableError as error:
            if reply_queue is None:
                raise
            # The caller that waits for the reply decides whether to send the command again.
            self.replies.error(reply_queue, envelope.request_id, str(error), UNAVAILABLE)
        else:
            if reply_queue is not None:
                self.replies.result(reply_queue, envelope.request_id, result, after=envelope.after)

    def _dead_letter(self, record: Record, reason: str) -> None:
        (message,) = messages_of([record])
        self.dead_letters.dead_letter(message, reason=reason)


def retried(answer: Callable[[], Result]) -> Result:
    """Answer a command; repeat it when a concurrent change of the same record interferes."""
    for _ in range(TRIES - 1):
        try:
            return answer()
        except Contended:
            time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))  # noqa: S311 - two contenders pause for different times
    return answer()
