"""The adapters of the function `split`, created once for each execution environment."""

import os
from functools import cache
from typing import TYPE_CHECKING

import boto3

from signalbox.aws.shared.clock import SystemClock
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.aws.shared.queue_sender import SqsQueueSender
from signalbox.aws.shared.settings import Settings
from signalbox.aws.splitting.queues import SqsSplitQueues
from signalbox.aws.splitting.splits import DynamoLedger, DynamoSplits

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_sqs.client import SQSClient

CLOCK = SystemClock()


@cache
def settings() -> Settings:
    """Return this function's settings."""
    return Settings(os.environ)


@cache
def table() -> "Table":
    """Return the table of splits."""
    return boto3.resource("dynamodb").Table(settings().text("SPLIT_TABLE"))


@cache
def sqs() -> "SQSClient":
    """Return an SQS client."""
    return boto3.client("sqs")


@cache
def splits() -> DynamoSplits:
    """Return the records of all splits."""
    return DynamoSplits(table())


@cache
def ledger() -> DynamoLedger:
    """Return the ledger of unfinished calls."""
    return DynamoLedger(table())


@cache
def sender() -> SqsQueueSender:
    """Return the sender to temporary queues."""
    return SqsQueueSender(sqs(), url_prefix=url_prefix())


@cache
def dead_letters() -> SqsDeadLetters:
    """Return the dead-letter queue of split messages."""
    return SqsDeadLetters(sqs(), settings().text("SPLIT_DEAD_LETTER_QUEUE_URL"))


@cache
def queues() -> SqsSplitQueues:
    """Return the queues, from which this function only deletes messages."""
    return SqsSplitQueues(sqs(), url_prefix=url_prefix(), stage=settings().text("STAGE"))


def url_prefix() -> str:
    """Return the URL of a queue up to its name; all queues share that of the dead-letter queue."""
    return settings().text("SPLIT_DEAD_LETTER_QUEUE_URL").rpartition("/")[0] + "/"
