"""Batches of live's FIFO queues: the messages of each connection, and dead-lettering of unreadable ones."""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from lambdas.shared import instance
from lambdas.shared.threads import parallel_map
from signalbox.aws.shared.batch_calls import hide
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.errors import EffectFailed, RejectedError
from signalbox.history.event import HistoryEvent
from signalbox.live.model import events
from signalbox.live.model.state import ConnectionId
from signalbox.messages import Message

Record = dict[str, Any]

logger = logging.getLogger(__name__)


def failed_messages(
    handle: Callable[[tuple[ConnectionId, list[Record]]], list[str]], records: Iterable[Record]
) -> list[str]:
    """Handle the SQS records of several connections at a time, in order; return the ids of those that failed.

    `handle` gets a connection, whose id is the message group, with its records.
    """
    found: dict[ConnectionId, list[Record]] = {}
    for record in records:
        found.setdefault(ConnectionId(record["attributes"]["MessageGroupId"]), []).append(record)
    return [message for failed in parallel_map(handle, found.items()) for message in failed]


def redeliver(records: Iterable[Record], variable: str, *, since: datetime) -> None:
    """Return messages for which an invocation has no time to their queue, whose URL is in `variable`.

    They stay hidden as long as the messages before them took, so that messages of other connections go first.
    """
    pause = instance.CLOCK.now() - since
    hide(instance.sqs(), instance.settings().text(variable), {one["receiptHandle"]: pause for one in records})


def dead_letter(
    message: Message, problem: RejectedError, dead_letters: SqsDeadLetters, *, holder: str
) -> HistoryEvent | None:
    """Move a message of `holder` to the dead-letter queue; return the history event, or None if that failed.

    It would block the messages behind it. One that cannot be moved must stay in flight, so that it is received again.
    """
    try:
        dead_letters.dead_letter(message, reason=str(problem))
    except EffectFailed:
        logger.exception("message %s of %s can neither be read nor dead-lettered", message.message_id, holder)
        return None
    return events.dead_letter(message.message_id, holder=holder, at=instance.CLOCK.now())
