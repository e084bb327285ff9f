"""Dead-lettering of unreadable messages, so that they do not block the messages behind them."""

import logging

from lambdas.shared import instance
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.errors import EffectFailed, RejectedError
from signalbox.history.event import HistoryEvent
from signalbox.live.session import events
from signalbox.messages import Message

logger = logging.getLogger(__name__)


def dead_letter(
    message: Message, problem: RejectedError, dead_letters: SqsDeadLetters, *, holder: str
) -> HistoryEvent | None:
    """Move a message of `holder` to the dead-letter queue; return the history event, or None if that failed.

    A message that cannot be moved must stay in flight, so that it is received again.
    """
    try:
        dead_letters.dead_letter(message, reason=str(problem))
    except EffectFailed:
        logger.exception("message %s of %s can neither be read nor dead-lettered", message.message_id, holder)
        return None
    return events.dead_letter(message.message_id, holder=holder, at=instance.CLOCK.now())
