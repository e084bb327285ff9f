"""Queues: encrypted with the stage's key, TLS only, with a dead-letter queue and its alarm.

Each says which queues may use it as their dead-letter queue: otherwise any queue of the account can have SQS move its
messages there, past all permissions. Docs: docs/decisions/0028-queues-refuse-strange-sources.md
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.settings.config import Config
from stacks.shared.alarms import alarm
from stacks.shared.arns import queue_arn

# Reuse of a data key for one hour: a KMS request for each message would cost more than the message.
DATA_KEY_REUSE = Duration.hours(1)


@dataclass(frozen=True, slots=True)
class Redrive:
    """The dead-letter queue of a queue, and the receives before a message moves there."""

    queue: "DeadLetterQueue"
    maximum_receives: int


class DeadLetterQueue(sqs.Queue):
    """A dead-letter queue with a retention of two weeks and an alarm from `alarm_at` messages.

    `sources` are the names of the queues whose dead letters SQS moves here, ten at most. Names, because the queues
    refer to this one.
    """

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        key: kms.IKey,
        config: Config,
        alarm_at: int = 1,
        holds: str,
        sources: Sequence[str],
        ordered: bool = False,
    ) -> None:
        super().__init__(
            scope,
            name,
            fifo=ordered or None,
            retention_period=Duration.days(14),
            encryption=sqs.QueueEncryption.KMS,
            encryption_master_key=key,
            data_key_reuse=DATA_KEY_REUSE,
            enforce_ssl=True,
        )
        allow_sources(self, sources)
        self.alarm = alarm(
            self,
            "Alarm",
            metric=self.metric_approximate_number_of_messages_visible(period=Duration.minutes(1), statistic="Maximum"),
            threshold=alarm_at,
            description=f"{holds} are in the dead-letter queue.",
            config=config,
        )


class Queue(sqs.Queue):
    """A queue with a dead-letter queue."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        key: kms.IKey,
        redrive: Redrive,
        visibility: Duration,
        retention: Duration,
        queue_name: str,
        ordered: bool = False,
    ) -> None:
        super().__init__(
            scope,
            name,
            queue_name=queue_name,
            fifo=ordered or None,
            # High throughput: the order is kept within a message group only.
            deduplication_scope=sqs.DeduplicationScope.MESSAGE_GROUP if ordered else None,
            fifo_throughput_limit=sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID if ordered else None,
            visibility_timeout=visibility,
            retention_period=retention,
            encryption=sqs.QueueEncryption.KMS,
            encryption_master_key=key,
            data_key_reuse=DATA_KEY_REUSE,
            enforce_ssl=True,
            dead_letter_queue=sqs.DeadLetterQueue(queue=redrive.queue, max_receive_count=redrive.maximum_receives),
        )
        allow_sources(self, ())


def allow_sources(queue: sqs.Queue, names: Sequence[str]) -> None:
    """Allow only the named queues to use a queue as their dead-letter queue; none of them without names."""
    resource = cast("sqs.CfnQueue", queue.node.default_child)
    sources = [queue_arn(name) for name in names]
    resource.redrive_allow_policy = (
        {"redrivePermission": "byQueue", "sourceQueueArns": sources} if sources else {"redrivePermission": "denyAll"}
    )


def age_alarm(scope: Construct, queue: sqs.IQueue, *, oldest: Duration, config: Config) -> cloudwatch.Alarm:
    """Create an alarm on a queue, also an imported one, whose oldest message exceeds an age for three minutes."""
    return alarm(
        scope,
        "AgeAlarm",
        metric=queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(1), statistic="Maximum"),
        threshold=oldest.to_seconds(),
        periods=3,
        description="Messages wait too long: the function that reads the queue fails or is throttled.",
        config=config,
    )
