"""The adapters of the function `split`, created once for each execution environment."""

from functools import cache
from typing import TYPE_CHECKING

from lambdas.shared import instance
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.aws.shared.queue_sender import SqsQueueSender
from signalbox.aws.splitting.queues import SqsSplitQueues
from signalbox.aws.splitting.splits import DynamoLedger, DynamoQueueUses, DynamoSplits

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table


def table() -> "Table":
    """Return the table of splits."""
    return instance.table("SPLIT_TABLE")


@cache
def splits() -> DynamoSplits:
    """Return the records of all splits."""
    return DynamoSplits(table())


@cache
def ledger() -> DynamoLedger:
    """Return the ledger of unfinished calls."""
    return DynamoLedger(table())


@cache
def uses() -> DynamoQueueUses:
    """Return the recorded uses of temporary queues."""
    return DynamoQueueUses(table())


@cache
def sender() -> SqsQueueSender:
    """Return the sender to temporary queues."""
    return SqsQueueSender(instance.sqs(), url_prefix(), instance.backoff())


@cache
def dead_letters() -> SqsDeadLetters:
    """Return the dead-letter queue of split messages."""
    return SqsDeadLetters(instance.sqs(), instance.settings().text("SPLIT_DEAD_LETTER_QUEUE_URL"))


@cache
def queues() -> SqsSplitQueues:
    """Return the queues, from which this function only deletes messages."""
    return SqsSplitQueues(instance.sqs(), url_prefix(), instance.settings().text("STAGE"), instance.backoff())


def url_prefix() -> str:
    """Return the URL of a queue up to its name; all queues share that of the dead-letter queue."""
    return instance.settings().text("SPLIT_DEAD_LETTER_QUEUE_URL").rpartition("/")[0] + "/"
