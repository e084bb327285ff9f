"""Queues: encrypted with our key, TLS only, with dead letters and the alarm on them."""

from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.settings.config import Config
from stacks.shared.alarms import alarm

# One data key for an hour: a request to KMS per message would cost more than the message.
DATA_KEY_REUSE = Duration.hours(1)


@dataclass(frozen=True, slots=True)
class Redrive:
    """Where messages go that were received too often."""

    queue: "DeadLetterQueue"
    maximum_receives: int


class DeadLetterQueue(sqs.Queue):
    """Keeps what failed for two weeks and raises an alarm when there is `alarm_at` of it."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        key: kms.IKey,
        config: Config,
        alarm_at: int = 1,
        holds: str,
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
        self.alarm = alarm(
            self,
            "Alarm",
            metric=self.metric_approximate_number_of_messages_visible(period=Duration.minutes(1), statistic="Maximum"),
            threshold=alarm_at,
            description=f"{holds} are in the dead-letter queue.",
            config=config,
        )


class Queue(sqs.Queue):
    """A queue with dead letters; `age_alarm` watches it, also when it is an imported one."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        key: kms.IKey,
        redrive: Redrive,
        visibility: Duration,
        retention: Duration,
        queue_name: str | None = None,
        ordered: bool = False,
    ) -> None:
        super().__init__(
            scope,
            name,
            queue_name=queue_name,
            fifo=ordered or None,
            # As many messages as SQS can: order is promised to a group alone.
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


def age_alarm(scope: Construct, queue: sqs.IQueue, *, oldest: Duration, config: Config) -> cloudwatch.Alarm:
    """Alarm when the oldest message of the queue has been older than this for three minutes."""
    return alarm(
        scope,
        "AgeAlarm",
        metric=queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(1), statistic="Maximum"),
        threshold=oldest.to_seconds(),
        periods=3,
        description="Messages wait longer than they may: the function that reads the queue is failing or throttled.",
        config=config,
    )
