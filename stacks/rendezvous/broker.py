"""The broker queue of a stage, its own or an existing one, with its dead-letter queue and key."""

from aws_cdk import Duration, Stack
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.settings.config import Config
from stacks.shared.queue import DATA_KEY_REUSE, DeadLetterQueue, Queue, age_alarm

# Malformed offers of any sender are dead letters too, so a single one must not raise an alarm.
DEAD_OFFERS_ALARM = 10


class Broker:
    """The broker queue, its dead-letter queue and its KMS key, if any; `owned` is False for an imported queue."""

    def __init__(self, scope: Construct, *, key: kms.IKey, config: Config, visibility_seconds: int) -> None:
        self.config, self.visibility_seconds = config, visibility_seconds
        self.owned = config.broker_queue_arn is None
        self.dead_letters = DeadLetterQueue(
            scope,
            "DeadOffers",
            key=key,
            config=config,
            alarm_at=DEAD_OFFERS_ALARM,
            holds="Offers that could not be handled",
        )
        self.key: kms.IKey | None = key
        self.queue: sqs.IQueue
        if config.broker_queue_arn is not None:
            self.queue = sqs.Queue.from_queue_arn(scope, "Broker", config.broker_queue_arn)
            key_arn = config.broker_queue_key_arn
            self.key = None if key_arn is None else kms.Key.from_key_arn(scope, "BrokerKey", key_arn)
        else:
            self.queue = Queue(
                scope,
                "Broker",
                queue_name=config.broker_queue_name,
                key=key,
                visibility=Duration.seconds(visibility_seconds),
                retention=Duration.seconds(config.broker_queue_retention_seconds),
            )
        age_alarm(scope, self.queue, oldest=Duration.seconds(config.offer_age_limit_seconds), config=config)

    def outputs(self) -> dict[str, str]:
        """Return the outputs of the stack by name."""
        return {
            "BrokerQueueUrl": self.queue.queue_url,
            "BrokerQueueArn": self.queue.queue_arn,
            "BrokerQueueName": self.config.broker_queue,
            "DeadLetterQueueUrl": self.dead_letters.queue_url,
            "ClientQueuePrefix": self.config.client_queue_prefix,
        }

    def variables(self) -> dict[str, str]:
        """Return the environment variables of functions."""
        return {
            "BROKER_QUEUE_URL": self.queue.queue_url,
            "BROKER_QUEUE_ARN": self.queue.queue_arn,
            "BROKER_QUEUE_ATTRIBUTES": Stack.of(self.dead_letters).to_json_string(self._attributes()),
            "DEAD_LETTER_QUEUE_URL": self.dead_letters.queue_url,
        }

    def _attributes(self) -> dict[str, str]:
        """Return the attributes with which the sweep recreates a deleted broker queue; none for an imported queue."""
        if not self.owned or self.key is None:
            return {}
        return {
            "VisibilityTimeout": str(self.visibility_seconds),
            "MessageRetentionPeriod": str(self.config.broker_queue_retention_seconds),
            "KmsMasterKeyId": self.key.key_arn,
            "KmsDataKeyReusePeriodSeconds": str(DATA_KEY_REUSE.to_seconds()),
        }
