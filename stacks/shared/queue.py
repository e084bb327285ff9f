"""Queues, and dead-letter queues with their alarms: encrypted with the stage's key, TLS only.

None has a redrive policy: functions dead-letter messages themselves (docs/decisions/0034-only-poison-dies.md). None may
be named in one: otherwise any queue of the account can have SQS move its messages there, past all permissions
(docs/decisions/0028-queues-refuse-strange-sources.md).
"""

from typing import cast

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.settings.config import Config
from stacks.shared.alarms import alarm

# Reuse of a data key for one hour: a KMS request for each message would cost more than the message.
DATA_KEY_REUSE = Duration.hours(1)


class DeadLetterQueue(sqs.Queue):
    """A dead-letter queue with a retention of two weeks and an alarm from `alarm_at` messages."""

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
        )
        refuse_sources(self)
        alarm(
            self,
            "Alarm",
            metric=self.metric_approximate_number_of_messages_visible(period=Duration.minutes(1), statistic="Maximum"),
            threshold=alarm_at,
            description=f"{holds} are in the dead-letter queue.",
            config=config,
        )


class Queue(sqs.Queue):
    """A queue that a function or a client reads."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        key: kms.IKey,
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
        )
        refuse_sources(self)


def require_tls(scope: Construct) -> None:
    """Refuse requests without TLS to the queues of a construct, by one policy for all of them."""
    queues = [child for child in scope.node.find_all() if isinstance(child, sqs.Queue)]
    policy = sqs.QueuePolicy(scope, "TlsOnly", queues=queues)
    policy.document.add_statements(
        iam.PolicyStatement(
            effect=iam.Effect.DENY,
            principals=[iam.AnyPrincipal()],
            actions=["sqs:*"],
            resources=["*"],  # in a queue's own policy: this queue
            conditions={"Bool": {"aws:SecureTransport": "false"}},
        )
    )


def refuse_sources(queue: sqs.Queue) -> None:
    """Allow no queue to use a queue as its dead-letter queue."""
    resource = cast("sqs.CfnQueue", queue.node.default_child)
    resource.redrive_allow_policy = {"redrivePermission": "denyAll"}


def age_alarm(scope: Construct, queue: sqs.IQueue, *, oldest: Duration, config: Config) -> None:
    """Create an alarm on a queue, also an imported one, whose oldest message exceeds an age for three minutes."""
    alarm(
        scope,
        "AgeAlarm",
        metric=queue.metric_approximate_age_of_oldest_message(period=Duration.minutes(1), statistic="Maximum"),
        threshold=oldest.to_seconds(),
        periods=3,
        description="Messages wait too long: the function that reads the queue fails or is throttled.",
        config=config,
    )
