"""The wiring that the functions of live share, made once for each function instance."""

from functools import cache

from lambdas.shared import instance
from signalbox.aws.live.inbox import SqsInbox, SqsTimers
from signalbox.aws.live.sessions import DynamoSessions
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.aws.shared.dynamodb import DynamoTable


def table() -> DynamoTable:
    """Return the table `Live`."""
    return instance.table("LIVE_TABLE")


@cache
def sessions() -> DynamoSessions:
    """Return the records of connections."""
    return DynamoSessions(table())


@cache
def inbox() -> SqsInbox:
    """Return the queue of inboxes."""
    return SqsInbox(instance.sqs(), instance.settings().text("LIVE_INBOX_URL"))


@cache
def timers() -> SqsTimers:
    """Return the queue of timers."""
    return SqsTimers(instance.sqs(), instance.settings().text("LIVE_TIMERS_URL"))


@cache
def ordered_dead_letters() -> SqsDeadLetters:
    """Return the dead-letter queue of inboxes, outboxes and overview calls."""
    return SqsDeadLetters(instance.sqs(), instance.settings().text("LIVE_ORDERED_DEAD_LETTER_QUEUE_URL"))
