"""Puts messages aside that stand in outboxes and that nobody can read: they stand in nobody's way."""

import logging
from collections.abc import Sequence
from datetime import timedelta

from lambdas.live import deliver_wiring, wiring
from signalbox.errors import EffectFailed
from signalbox.history.event import HistoryEvent
from signalbox.live.delivery_events import dead_letter
from signalbox.live.outbox_items import InvalidItem
from signalbox.messages import Message, MessageId

Unreadable = tuple[Message, InvalidItem]
# While a message is in flight, its connection gets nothing that was put behind it later.
PAUSE = timedelta(seconds=2)

logger = logging.getLogger(__name__)


def put_aside(unreadable: Sequence[Unreadable]) -> tuple[list[HistoryEvent], list[MessageId]]:
    """Make dead letters of messages; return what happened, and those that come again, since that failed."""
    buried: list[HistoryEvent] = []
    left: list[Message] = []
    for message, problem in unreadable:
        try:
            deliver_wiring.queue().bury(message, reason=str(problem))
        except EffectFailed:
            logger.exception("message %s of an outbox can neither be read nor put aside", message.message_id)
            left.append(message)
        else:
            buried.append(dead_letter(message.message_id, at=wiring.CLOCK.now()))
    if left:
        deliver_wiring.queue().show_again(left, after=PAUSE)
    return buried, [message.message_id for message in left]
