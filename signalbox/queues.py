"""Names, leases and limits of temporary queues, shared by every capability that makes some."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NewType

from signalbox.errors import RejectedError

QueueUrl = NewType("QueueUrl", str)
QueueName = NewType("QueueName", str)

MAXIMUM_NAME_LENGTH = 80  # SQS, CreateQueue: letters, digits, hyphens and underscores
CAPABILITY_TAG = "signalbox:capability"
STAGE_TAG = "signalbox:stage"
EXPIRES_TAG = "signalbox:expires-at"
FIFO_SUFFIX = ".fifo"  # SQS, CreateQueue: the name of a FIFO queue ends so, and no other's


class InvalidQueueName(RejectedError):
    """Raised when a name cannot be the name of an SQS queue."""


def is_fifo(name: str) -> bool:
    """Say whether what is named so, a queue by its name or URL or an exchange, keeps the order of its groups."""
    return name.endswith(FIFO_SUFFIX)


@dataclass(frozen=True, slots=True)
class Lease:
    """A temporary queue and the moment from which it may be deleted."""

    queue_name: QueueName
    queue_url: QueueUrl
    capability: str
    due_at: datetime


@dataclass(frozen=True, slots=True)
class StrayQueue:
    """A queue found by its prefix: what decides whether it is ours to delete."""

    queue_name: QueueName
    queue_url: QueueUrl
    tags: Mapping[str, str]
    modified_at: datetime


def parse_queue_name(text: str) -> QueueName:
    """Return `text` as a standard queue's name, or raise `InvalidQueueName`."""
    if not 1 <= len(text) <= MAXIMUM_NAME_LENGTH:
        raise InvalidQueueName(f"queue name of {len(text)} characters; SQS allows 1 to {MAXIMUM_NAME_LENGTH}")
    if not all(c.isascii() and (c.isalnum() or c in "-_") for c in text):
        raise InvalidQueueName(f"queue name {text!r} has characters other than letters, digits, '-' and '_'")
    return QueueName(text)


def lease_tags(*, stage: str, capability: str, due_at: datetime) -> dict[str, str]:
    """Return the tags by which a temporary queue says whose it is and until when."""
    return {STAGE_TAG: stage, CAPABILITY_TAG: capability, EXPIRES_TAG: due_at.isoformat(timespec="seconds")}


def is_ours(tags: Mapping[str, str], *, stage: str, capability: str) -> bool:
    """Say whether a queue's tags name this stage and capability."""
    return tags.get(STAGE_TAG) == stage and tags.get(CAPABILITY_TAG) == capability
