"""Names, tags, leases and sources of queues that a stage creates at run time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from signalbox.errors import RejectedError

QueueUrl = NewType("QueueUrl", str)
QueueName = NewType("QueueName", str)

MAXIMUM_NAME_LENGTH = 80  # SQS, CreateQueue: letters, digits, hyphens and underscores
CAPABILITY_TAG = "signalbox:capability"
STAGE_TAG = "signalbox:stage"
FIFO_SUFFIX = ".fifo"  # SQS, CreateQueue: the names of FIFO queues, and only these, have this suffix


class InvalidQueueName(RejectedError):
    """Raised when a name cannot be the name of an SQS queue."""


def is_fifo(name: str) -> bool:
    """Return whether a queue (by name or URL) or an exchange is FIFO."""
    return name.endswith(FIFO_SUFFIX)


def queue_name(queue_url: QueueUrl) -> QueueName:
    """Return the name of the queue with this URL."""
    return QueueName(queue_url.rpartition("/")[2])


@dataclass(frozen=True, slots=True)
class Lease:
    """A temporary queue and the time from which it may be deleted."""

    queue_name: QueueName
    queue_url: QueueUrl
    capability: str
    due_at: datetime


def parse_queue_name(text: str) -> QueueName:
    """Return `text` as the name of a standard queue. Raises `InvalidQueueName`."""
    if not 1 <= len(text) <= MAXIMUM_NAME_LENGTH:
        raise InvalidQueueName(f"queue name of {len(text)} characters; SQS allows 1 to {MAXIMUM_NAME_LENGTH}")
    if not all(c.isascii() and (c.isalnum() or c in "-_") for c in text):
        raise InvalidQueueName(f"queue name {text!r} has characters other than letters, digits, '-' and '_'")
    return QueueName(text)


def parse_any_queue_name(text: str) -> QueueName:
    """Return `text` as the name of a standard or FIFO queue. Raises `InvalidQueueName`."""
    parse_queue_name(text.removesuffix(FIFO_SUFFIX))
    return QueueName(text)


def own_tags(*, stage: str, capability: str) -> dict[str, str]:
    """Return the tags by which a stage knows its queues.

    They are constant: SQS refuses CreateQueue with other tags than those of the existing queue.
    """
    return {STAGE_TAG: stage, CAPABILITY_TAG: capability}


def is_ours(tags: Mapping[str, str], *, stage: str, capability: str) -> bool:
    """Return whether a queue's tags name this stage and capability."""
    return tags.get(STAGE_TAG) == stage and tags.get(CAPABILITY_TAG) == capability


def allow_policy(source_arns: Sequence[str] = ()) -> str:
    """Return the `RedriveAllowPolicy` of a queue: only these queues, or none, may use it as their dead-letter queue."""
    if not source_arns:
        return json.dumps({"redrivePermission": "denyAll"})
    return json.dumps({"redrivePermission": "byQueue", "sourceQueueArns": list(source_arns)})


def tls_only(arn: str, *, policy_id: str | None = None) -> str:
    """Return the policy of a queue that refuses requests without TLS, as CDK writes it for `enforce_ssl`."""
    statement = {
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": "sqs:*",
        "Resource": arn,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    name = {} if policy_id is None else {"Id": policy_id}
    return json.dumps({"Version": "2012-10-17", **name, "Statement": [statement]})
