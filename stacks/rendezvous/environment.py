"""The environment variables of each rendezvous function; a test compares the names with the handlers."""

from collections.abc import Mapping

from aws_cdk import Aws

from stacks.settings.config import Config
from stacks.shared.arns import queue_arn, queue_url
from stacks.shared.function import Surroundings, selected, stream

# The policy of signalbox/rendezvous/rules/policy.py: a function that needs a part of it gets all.
POLICY = (
    "OFFER_PATIENCE_SECONDS",
    "HTTP_OFFER_PATIENCE_SECONDS",
    "MATCH_PATIENCE_SECONDS",
    "PROXY_RECENCY_SECONDS",
    "CLIENT_QUEUE_LEASE_SECONDS",
    "POLLS_PER_MINUTE",
)
EVERY = ("HISTORY_STREAM", *POLICY)
QUEUES = ("BROKER_QUEUE_URL", "STAGE", "CLIENT_QUEUE_ARN_PREFIX")
RECEIVER = (*EVERY, *QUEUES, "CLIENT_QUEUE_PREFIX", "DEAD_LETTER_QUEUE_URL")
DOOR = (*EVERY, "RENDEZVOUS_TABLE", "HISTORY_OVERFLOW_URL")
NEEDS = {
    "offer": (*RECEIVER, "RENDEZVOUS_TABLE"),
    "forward": (*RECEIVER, "BROKER_URL", "STRAY_QUEUE_AGE_SECONDS"),
    "sweep": (
        *(*EVERY, *QUEUES, "CLIENT_QUEUE_PREFIX", "RENDEZVOUS_TABLE", "LEASE_TABLE", "STRAY_QUEUE_AGE_SECONDS"),
        *("BROKER_QUEUE_ARN", "BROKER_QUEUE_ATTRIBUTES"),
    ),
    "proxies": (*DOOR, *QUEUES, "ALLOWED_RELAY_PATTERN"),
    "clients": DOOR,
}


def environment(function: str, around: Surroundings, *, queues: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a function; `queues` has the variables of the stage's queues."""
    state, config = around.state, around.config
    given = {**queues, **stream(around.lake), "CLIENT_QUEUE_ARN_PREFIX": client_queues_arn(config)}
    if config.broker_url is None:
        given["RENDEZVOUS_TABLE"] = state.rendezvous_table.table_name
        given["LEASE_TABLE"] = state.lease_table.table_name
    return selected(given, NEEDS[function], config)


def door_queues(config: Config) -> dict[str, str]:
    """Return the variables of the doors, which know the queues and the stream of the stage by their names."""
    variables = {"BROKER_QUEUE_URL": queue_url(broker_queue_arn(config))}
    if config.has("history"):
        variables["HISTORY_STREAM"] = config.history_stream
        variables["HISTORY_OVERFLOW_URL"] = queue_url(queue_arn(config.history_overflow_queue))
    return variables


def broker_queue_arn(config: Config) -> str:
    """Return the ARN of the broker queue, created or imported."""
    return config.broker_queue_arn or queue_arn(config.broker_queue)


def client_queues_arn(config: Config) -> str:
    """Return the common prefix of the ARNs of all client queues."""
    return f"arn:{Aws.PARTITION}:sqs:{Aws.REGION}:{Aws.ACCOUNT_ID}:{config.client_queue_prefix}"
