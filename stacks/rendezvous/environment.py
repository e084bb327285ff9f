"""The environment variables of each rendezvous function; a test compares the names with the handlers."""

from aws_cdk import Aws, Stack

from stacks.history.lake import HistoryLake
from stacks.rendezvous.broker import Broker
from stacks.settings.choices import OFFER_VISIBILITY_SECONDS
from stacks.settings.config import Config
from stacks.shared.arns import queue_arn, queue_url
from stacks.shared.function import selected, stream
from stacks.shared.queue import DATA_KEY_REUSE
from stacks.state_stack import State

HISTORY = ("RENDEZVOUS_TABLE", "HISTORY_STREAM")
# The policy of signalbox/rendezvous/rules/policy.py: a function that needs a part of it gets all, so that no default
# applies.
POLICY = (
    "OFFER_PATIENCE_SECONDS",
    "HTTP_OFFER_PATIENCE_SECONDS",
    "MATCH_PATIENCE_SECONDS",
    "PROXY_RECENCY_SECONDS",
    "CLIENT_QUEUE_LEASE_SECONDS",
    "POLLS_PER_MINUTE",
)
BROKER = ("BROKER_QUEUE_URL",)
NEEDS = {
    "offer": (
        *HISTORY,
        *POLICY,
        *BROKER,
        "DEAD_LETTER_QUEUE_URL",
        "STAGE",
        "CLIENT_QUEUE_PREFIX",
        "CLIENT_QUEUE_ARN_PREFIX",
    ),
    "sweep": (
        *HISTORY,
        *POLICY,
        *BROKER,
        "STAGE",
        "LEASE_TABLE",
        "CLIENT_QUEUE_PREFIX",
        "CLIENT_QUEUE_ARN_PREFIX",
        "STRAY_QUEUE_AGE_SECONDS",
        "BROKER_QUEUE_NAME",
        "BROKER_QUEUE_ARN",
        "BROKER_QUEUE_ATTRIBUTES",
    ),
}
FRONT_NEEDS = (
    *("BROKER_URL", *BROKER, "DEAD_LETTER_QUEUE_URL", "HISTORY_STREAM"),
    *("STAGE", "CLIENT_QUEUE_PREFIX", "CLIENT_QUEUE_ARN_PREFIX", *POLICY),
)

DOORS = {
    "proxies": (
        *HISTORY,
        "HISTORY_OVERFLOW_URL",
        *POLICY,
        *BROKER,
        "STAGE",
        "CLIENT_QUEUE_ARN_PREFIX",
        "ALLOWED_RELAY_PATTERN",
    ),
    "clients": (*HISTORY, "HISTORY_OVERFLOW_URL", *POLICY),
}


def environments(
    broker: Broker, *, state: State, lake: HistoryLake | None, config: Config
) -> dict[str, dict[str, str]]:
    """Return the environments of the functions `offer` and `sweep`."""
    everything = _resources(broker, state=state, config=config) | stream(lake) | _values(config)
    return {function: selected(everything, names) for function, names in NEEDS.items()}


def door_environments(state: State, config: Config) -> dict[str, dict[str, str]]:
    """Return the environments of the doors, which know the stream and the queues of the stage by their names."""
    everything = _values(config) | {"RENDEZVOUS_TABLE": state.rendezvous_table.table_name}
    everything["BROKER_QUEUE_URL"] = queue_url(broker_queue_arn(config))
    if config.has("history"):
        everything["HISTORY_STREAM"] = config.history_stream
        everything["HISTORY_OVERFLOW_URL"] = queue_url(queue_arn(config.history_overflow_queue))
    return {door: selected(everything, names) for door, names in DOORS.items()}


def broker_queue_arn(config: Config) -> str:
    """Return the ARN of the broker queue, created or imported."""
    return config.broker_queue_arn or queue_arn(config.broker_queue)


def front_environment(broker: Broker, *, lake: HistoryLake | None, config: Config) -> dict[str, str]:
    """Return the environment of a front's function."""
    found = {
        "BROKER_URL": config.broker_url or "",
        "BROKER_QUEUE_URL": broker.queue.queue_url,
        "DEAD_LETTER_QUEUE_URL": broker.dead_letters.queue_url,
    }
    return selected(found | stream(lake) | _values(config), FRONT_NEEDS)


def client_queues_arn(config: Config) -> str:
    """Return the common prefix of the ARNs of all client queues."""
    return f"arn:{Aws.PARTITION}:sqs:{Aws.REGION}:{Aws.ACCOUNT_ID}:{config.client_queue_prefix}"


def _resources(broker: Broker, *, state: State, config: Config) -> dict[str, str]:
    return {
        "RENDEZVOUS_TABLE": state.rendezvous_table.table_name,
        "LEASE_TABLE": state.lease_table.table_name,
        "BROKER_QUEUE_URL": broker.queue.queue_url,
        "BROKER_QUEUE_NAME": config.broker_queue,
        "BROKER_QUEUE_ARN": broker.queue.queue_arn,
        "BROKER_QUEUE_ATTRIBUTES": Stack.of(broker.dead_letters).to_json_string(_attributes(broker, config)),
        "DEAD_LETTER_QUEUE_URL": broker.dead_letters.queue_url,
    }


def _attributes(broker: Broker, config: Config) -> dict[str, str]:
    """Return the attributes with which the sweep recreates a deleted broker queue; none for an imported queue."""
    if not broker.owned or broker.key is None:
        return {}
    stack = Stack.of(broker.dead_letters)
    return {
        "VisibilityTimeout": str(OFFER_VISIBILITY_SECONDS),
        "MessageRetentionPeriod": str(config.broker_queue_retention_seconds),
        "KmsMasterKeyId": broker.key.key_arn,
        "KmsDataKeyReusePeriodSeconds": str(DATA_KEY_REUSE.to_seconds()),
        "RedriveAllowPolicy": stack.to_json_string({"redrivePermission": "denyAll"}),
        "Policy": stack.to_json_string(_tls_only(broker.queue.queue_arn)),
    }


def _tls_only(queue_arn: str) -> dict[str, object]:
    refusal = {
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": "sqs:*",
        "Resource": queue_arn,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return {"Version": "2012-10-17", "Statement": [refusal]}


def _values(config: Config) -> dict[str, str]:
    return {
        "STAGE": config.stage,
        "CLIENT_QUEUE_PREFIX": config.client_queue_prefix,
        "CLIENT_QUEUE_ARN_PREFIX": client_queues_arn(config),
        "CLIENT_QUEUE_LEASE_SECONDS": str(config.client_queue_lease_seconds),
        "STRAY_QUEUE_AGE_SECONDS": str(config.stray_queue_age_seconds),
        "OFFER_PATIENCE_SECONDS": str(config.offer_patience_seconds),
        "HTTP_OFFER_PATIENCE_SECONDS": str(config.http_offer_patience_seconds),
        "MATCH_PATIENCE_SECONDS": str(config.match_patience_seconds),
        "PROXY_RECENCY_SECONDS": str(config.proxy_recency_seconds),
        "POLLS_PER_MINUTE": str(config.polls_per_minute),
        "ALLOWED_RELAY_PATTERN": config.allowed_relay_pattern,
    }
