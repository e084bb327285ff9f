"""The wiring that the functions of live share, made once for each function instance."""

import os
from functools import cache
from typing import TYPE_CHECKING

import boto3

from signalbox.aws.live.inbox import SqsInbox, SqsTimers
from signalbox.aws.live.sessions import DynamoSessions
from signalbox.aws.shared.clock import SystemClock
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.aws.shared.settings import Settings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_sqs.client import SQSClient

CLOCK = SystemClock()


@cache
def settings() -> Settings:
    """Return the function's settings."""
    return Settings(os.environ)


@cache
def table() -> "Table":
    """Return the table `Live`. Threads may share it: its methods only use its client, which is thread-safe."""
    return boto3.resource("dynamodb").Table(settings().text("LIVE_TABLE"))


@cache
def sqs() -> "SQSClient":
    """Return an SQS client."""
    return boto3.client("sqs")


@cache
def sessions() -> DynamoSessions:
    """Return the records of connections."""
    return DynamoSessions(table())


@cache
def inbox() -> SqsInbox:
    """Return the queue of inboxes."""
    return SqsInbox(sqs(), settings().text("LIVE_INBOX_URL"))


@cache
def timers() -> SqsTimers:
    """Return the queue of timers."""
    return SqsTimers(sqs(), settings().text("LIVE_TIMERS_URL"))


@cache
def ordered_dead_letters() -> SqsDeadLetters:
    """Return the dead-letter queue of inboxes, outboxes and overview calls."""
    return SqsDeadLetters(sqs(), settings().text("LIVE_ORDERED_DEAD_LETTER_QUEUE_URL"))
