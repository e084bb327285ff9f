"""Puts messages aside that nobody can read: they stand in nobody's way."""

import logging

from lambdas.live import wiring
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.errors import EffectFailed, RejectedError
from signalbox.history.event import HistoryEvent
from signalbox.live.outbox.events import dead_letter
from signalbox.messages import Message

logger = logging.getLogger(__name__)


def put_aside(message: Message, problem: RejectedError, letters: SqsDeadLetters, *, holder: str) -> HistoryEvent | None:
    """Make a dead letter of what `holder` had; return what happened, or None if that failed and it must come again."""
    try:
        letters.dead_letter(message, reason=str(problem))
    except EffectFailed:
        logger.exception("message %s of %s can neither be read nor put aside", message.message_id, holder)
        return None
    return dead_letter(message.message_id, holder=holder, at=wiring.CLOCK.now())
