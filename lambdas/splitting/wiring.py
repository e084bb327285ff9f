"""The adapters of the function `split`, created once for each execution environment."""

from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

from botocore.config import Config

from lambdas.shared import instance
from signalbox.aws.kept.store import S3KeptMessages
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.queue_sender import SqsQueueSender
from signalbox.aws.splitting.queues import SqsSplitQueues
from signalbox.aws.splitting.splits import DynamoSplits

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client


def table() -> DynamoTable:
    """Return the table of splits."""
    return instance.table("SPLIT_TABLE")


@cache
def splits() -> DynamoSplits:
    """Return the records of all splits."""
    return DynamoSplits(table())


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


@cache
def s3(patience: timedelta) -> "S3Client":
    """Return the S3 client, which repeats no call and waits this long for a connection and for an answer."""
    seconds = patience.total_seconds()
    config = Config(connect_timeout=seconds, read_timeout=seconds, retries={"total_max_attempts": 1})
    client: S3Client = instance.aws_client("s3", config=config)
    return client


@cache
def kept() -> S3KeptMessages | None:
    """Return the store of kept messages, whose client is created for the first kept queue; None without history."""
    if not instance.settings().has("KEPT_BUCKET"):
        return None
    return S3KeptMessages(cache(partial(instance.aws_client, "s3")), instance.settings().text("KEPT_BUCKET"))


def buckets() -> tuple[str, ...]:
    """Return the names of the buckets whose objects' metadata may be read; `*` may end a name."""
    return tuple(name for name in instance.settings().text("SPLITTABLE_BUCKETS").split(",") if name)


def url_prefix() -> str:
    """Return the URL of a queue up to its name, which is the same for all queues."""
    return instance.settings().text("SPLIT_DEAD_LETTER_QUEUE_URL").rpartition("/")[0] + "/"
