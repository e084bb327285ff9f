"""The environment variables of the exchange's functions; a test compares these names with the handlers."""

from collections.abc import Mapping

from stacks.settings.choices import VISIBILITY_PER_TIMEOUT
from stacks.settings.config import Config
from stacks.shared.arns import queue_arn
from stacks.shared.function import selected

COMMON = (
    "STAGE",
    "EXCHANGE_TABLE",
    "EXCHANGE_PREFIX",
    "HISTORY_STREAM",
    "EXCHANGE_DEAD_LETTER_QUEUE_URL",
)
NEEDS = {
    "route": (
        *COMMON,
        "EXCHANGE_RETRY_QUEUE_URL",
        "EXCHANGE_ORDERED_RETRY_QUEUE_URL",
        "ROUTE_TIMEOUT_SECONDS",
        "ROUTE_RETRY_SECONDS",
        "EXCHANGE_RETENTION_SECONDS",
        "KEPT_BUCKET",
    ),
    "control": (
        *COMMON,
        "EXCHANGE_CONTROL_QUEUE_URL",
        "EXCHANGE_RETENTION_SECONDS",
        "EXCHANGE_VISIBILITY_SECONDS",
        "ROUTE_FUNCTION_ARN",
        "ROUTE_CONCURRENCY",
        "QUEUE_KEY_ARN",
        "QUEUE_METRICS_DELAY_SECONDS",
        "EXCHANGE_USER_QUOTA",
    ),
}
# SQS's metrics are up to 15 minutes late when a queue becomes active, and usually five; the emulator's are not.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-monitoring-using-cloudwatch.html
METRICS_DELAY_SECONDS = 1200


def environment(function: str, resources: Mapping[str, str], config: Config) -> dict[str, str]:
    """Return the environment of a function; `resources` are the variables with names of resources."""
    given = {
        **resources,
        "EXCHANGE_VISIBILITY_SECONDS": str(VISIBILITY_PER_TIMEOUT * config.route_timeout_seconds),
        "QUEUE_METRICS_DELAY_SECONDS": str(0 if config.local else METRICS_DELAY_SECONDS),
    }
    return selected(given, NEEDS[function], config)


def exchange_queues_arn(config: Config) -> str:
    """Return the ARN pattern of exchanges' queues and dead-letter queues, such as `xpublic` and `xs_alice-dlq`."""
    return queue_arn(f"{config.exchange_prefix}x*")


def dead_publications_arns(config: Config) -> list[str]:
    """Return the ARN patterns of the dead-letter queues of exchanges."""
    return [queue_arn(f"{config.exchange_prefix}x*-dlq{ending}") for ending in ("", ".fifo")]


def dead_copies_arns(config: Config) -> list[str]:
    """Return the ARN patterns of the dead-letter queues of declared queues."""
    return [queue_arn(f"{config.exchange_prefix}q_*-dlq{ending}") for ending in ("", ".fifo")]


def bound_queues_arn(config: Config) -> str:
    """Return the ARN pattern of declared queues and their dead-letter queues, such as `q_alice_weather-dlq`."""
    return queue_arn(f"{config.exchange_prefix}q_*")


def user_control_queues_arn(config: Config) -> str:
    """Return the ARN pattern of users' control queues, each of which identifies its user."""
    return queue_arn(f"{config.exchange_control_queue}-*")


def user_reply_queues_arn(config: Config) -> str:
    """Return the ARN pattern of users' reply queues."""
    return queue_arn(f"{config.exchange_reply_queue}-*")
