"""Handling of control queue messages: each command is answered, dead-lettered with its reason, or received again."""

import logging
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lambdas.shared.records import in_flight, messages_of
from signalbox.control.envelope import Envelope, InvalidEnvelope
from signalbox.control.protocol import REJECTED, UNAVAILABLE
from signalbox.errors import Contended, RejectedError, UnavailableError

if TYPE_CHECKING:
    from signalbox.aws.shared.replies import SqsReplies
    from signalbox.dead_letters import DeadLetters

Record = dict[str, Any]
Answer = Callable[[Record, Envelope], object]

# The commands handled at once (the mapping's concurrency) may all change one record; each try lets one of them succeed.
TRIES = 10
LONGEST_PAUSE_SECONDS = 0.1

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommandProcessor:
    """Handles the commands of one control queue; `answer` returns a command's result or raises."""

    answer: Answer
    replies: "SqsReplies"
    dead_letters: "DeadLetters"
    reply_prefix: Callable[[Record], str]

    def process(self, records: Iterable[Record]) -> dict[str, Any]:
        """Answer every command; return Lambda's partial batch response with the messages to receive again."""
        return in_flight(
            [record["messageId"] for record in records if not self._is_handled(record, self.reply_prefix(record))]
        )

    def _is_handled(self, record: Record, reply_prefix: str) -> bool:
        try:
            self._receive(record, reply_prefix)
        except Exception:
            logger.exception("command %s failed", record["messageId"])
            return False  # a failed command must not fail its batch: it stays in flight and is received again
        return True

    def _receive(self, record: Record, reply_prefix: str) -> None:
        try:
            envelope = Envelope.parse(record["body"], reply_prefix=reply_prefix)
        except InvalidEnvelope as error:
            self._dead_letter(record, str(error))
            return
        try:
            result = _retried(lambda: self.answer(record, envelope))
        except RejectedError as error:
            self._refuse(envelope, str(error), REJECTED, record)
        except UnavailableError as error:
            if envelope.reply_queue is None:
                raise
            # The caller that waits for the reply decides whether to send the command again.
            self._refuse(envelope, str(error), UNAVAILABLE, record)
        else:
            if envelope.reply_queue is not None:
                self.replies.result(envelope.reply_queue, envelope.request_id, result)

    def _refuse(self, envelope: Envelope, error: str, code: str, record: Record) -> None:
        if envelope.reply_queue is not None:
            self.replies.error(envelope.reply_queue, envelope.request_id, error, code)
        else:
            self._dead_letter(record, error)

    def _dead_letter(self, record: Record, reason: str) -> None:
        (message,) = messages_of([record])
        self.dead_letters.dead_letter(message, reason=reason)


def _retried(answer: Callable[[], object]) -> object:
    """Answer a command; repeat it when a concurrent change of the same record interferes."""
    for _ in range(TRIES - 1):
        try:
            return answer()
        except Contended:
            time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))  # noqa: S311 - two contenders pause for different times
    return answer()
