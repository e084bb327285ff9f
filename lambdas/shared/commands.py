"""Obeying commands: each message of a control queue is answered, or buried with its reason, or comes again."""

import logging
import random
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from lambdas.shared.records import in_flight
from signalbox.control.envelope import Envelope, InvalidEnvelope
from signalbox.control.protocol import REJECTED, UNAVAILABLE
from signalbox.errors import Contended, RejectedError, UnavailableError

if TYPE_CHECKING:
    from signalbox.aws.shared.replies import SqsReplies

Record = dict[str, Any]
Answer = Callable[[Record, Envelope], object]

# As many commands as are obeyed at once may want to change the same record, and each time one of them succeeds.
TRIES = 10
LONGEST_PAUSE_SECONDS = 0.1

logger = logging.getLogger(__name__)


def obey(
    records: Iterable[Record], *, answer: Answer, replies: "SqsReplies", reply_prefix: Callable[[Record], str]
) -> dict[str, Any]:
    """Have every command answered; return the messages that stay in flight."""
    failed = [
        record["messageId"] for record in records if not _is_handled(record, answer, replies, reply_prefix(record))
    ]
    return in_flight(failed)


def _is_handled(record: Record, answer: Answer, replies: "SqsReplies", reply_prefix: str) -> bool:
    try:
        _receive(record, answer, replies, reply_prefix)
    except Exception:
        logger.exception("command %s was not carried out", record["messageId"])
        return False  # one command must not take its batch along: it stays in flight and comes again
    return True


def _receive(record: Record, answer: Answer, replies: "SqsReplies", reply_prefix: str) -> None:
    try:
        envelope = Envelope.parse(record["body"], reply_prefix=reply_prefix)
    except InvalidEnvelope as error:
        replies.bury(record["body"], reason=str(error), message_id=record["messageId"])
        return
    try:
        result = _contending(lambda: answer(record, envelope))
    except RejectedError as error:
        _refuse(envelope, str(error), REJECTED, record, replies)
    except UnavailableError as error:
        if envelope.reply_queue is None:
            raise
        # Who waits for a reply decides whether to ask again.
        _refuse(envelope, str(error), UNAVAILABLE, record, replies)
    else:
        if envelope.reply_queue is not None:
            replies.result(envelope.reply_queue, envelope.request_id, result)


def _contending(answer: Callable[[], object]) -> object:
    """Answer again when somebody else's change came in between; a command may come twice anyway."""
    for _ in range(TRIES - 1):
        try:
            return answer()
        except Contended:
            time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))  # noqa: S311 - so that two do not meet again
    return answer()


def _refuse(envelope: Envelope, error: str, code: str, record: Record, replies: "SqsReplies") -> None:
    if envelope.reply_queue is not None:
        replies.error(envelope.reply_queue, envelope.request_id, error, code)
    else:
        replies.bury(record["body"], reason=error, message_id=record["messageId"])
