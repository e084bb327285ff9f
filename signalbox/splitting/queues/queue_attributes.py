"""The attributes and tags that a temporary queue copies from the original, with adapted policies."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from signalbox.queues import QueueName, allow_policy

# The attributes of CreateQueue that are copied; the two policies are adapted below. `RedriveAllowPolicy` is not copied:
# no queue may use a temporary queue as its dead-letter queue. Nor is `DelaySeconds`: the original has delayed messages.
# Nor is the retention: what a session does not consume is returned to the deployed consumer, however long that takes.
COPIED = (
    "VisibilityTimeout",
    "MaximumMessageSize",
    "ReceiveMessageWaitTimeSeconds",
    "KmsMasterKeyId",
    "KmsDataKeyReusePeriodSeconds",
    "SqsManagedSseEnabled",
    "FifoQueue",
    "ContentBasedDeduplication",
    "DeduplicationScope",
    "FifoThroughputLimit",
)
MAXIMUM_RETENTION = {"MessageRetentionPeriod": "1209600"}  # SQS, CreateQueue
MAXIMUM_TAGS = 50  # SQS, TagQueue
RESERVED_TAGS = "aws:"


@dataclass(frozen=True, slots=True)
class OriginalDeadLetterQueue:
    """The original's dead-letter queue: its `RedriveAllowPolicy`, or why that could not be read."""

    redrive_allow_policy: str | None = None
    unreadable: str | None = None


@dataclass(frozen=True, slots=True)
class Clone:
    """The attributes and tags of a temporary queue; `notes` explain what could not be copied."""

    attributes: Mapping[str, str]
    tags: Mapping[str, str]
    notes: tuple[str, ...]


def cloned(
    attributes: Mapping[str, str],
    tags: Mapping[str, str],
    *,
    original: QueueName,
    name: QueueName,
    dead_letter_queue: OriginalDeadLetterQueue,
    configured_tags: Mapping[str, str],
    own_tags: Mapping[str, str],
) -> Clone:
    """Return the settings of a temporary queue, from the attributes and tags of the original.

    For tags of the same name, Signalbox's override configured ones, which override the original's.
    """
    own = {**MAXIMUM_RETENTION, "RedriveAllowPolicy": allow_policy()}
    kept = {key: attributes[key] for key in COPIED if key in attributes} | own
    if "KmsMasterKeyId" in kept:
        kept.pop("SqsManagedSseEnabled", None)  # a queue has one of the two, but GetQueueAttributes returns both
    if attributes.get("Policy"):
        kept["Policy"] = cloned_policy(attributes["Policy"], original=original, name=name)
    refusal = redrive_refusal(attributes, name=name, dead_letter_queue=dead_letter_queue)
    if refusal is None and attributes.get("RedrivePolicy"):
        kept["RedrivePolicy"] = attributes["RedrivePolicy"]
    merged, dropped = _tags(tags, {**configured_tags, **own_tags})
    return Clone(kept, merged, tuple(note for note in (refusal, dropped) if note))


def cloned_policy(policy: str, *, original: QueueName, name: QueueName) -> str:
    """Return a resource policy that names the temporary queue wherever it named the original.

    Nothing else is changed, because the original's name may be part of a topic's or a role's name.
    """
    document = json.loads(policy)
    statements = document.get("Statement", [])
    for statement in statements if isinstance(statements, list) else [statements]:
        for element in ("Resource", "NotResource"):
            if element in statement:
                statement[element] = _renamed(statement[element], original, name)
    return json.dumps(document, separators=(",", ":"))


def _renamed(resource: object, original: QueueName, name: QueueName) -> object:
    if isinstance(resource, list):
        return [_renamed(one, original, name) for one in resource]
    if isinstance(resource, str):
        # An ARN, or the older form `/account/queue`.
        head, separator, tail = resource.rpartition("/" if resource.startswith("/") else ":")
        return f"{head}{separator}{name}" if tail == original else resource
    return resource


def redrive_refusal(
    attributes: Mapping[str, str], *, name: QueueName, dead_letter_queue: OriginalDeadLetterQueue
) -> str | None:
    """Return why a temporary queue cannot use the original's dead-letter queue; None if it can or there is none.

    CreateQueue fails when the `RedriveAllowPolicy` of the dead-letter queue excludes the source.
    """
    if not attributes.get("RedrivePolicy"):
        return None
    arn = str(json.loads(attributes["RedrivePolicy"])["deadLetterTargetArn"])
    if dead_letter_queue.unreadable:
        return (
            f"no dead-letter queue: the redrive allow policy of {arn} cannot be read ({dead_letter_queue.unreadable})"
        )
    allowed = json.loads(dead_letter_queue.redrive_allow_policy or "{}")
    permission = allowed.get("redrivePermission", "allowAll")
    source = attributes.get("QueueArn", "").rpartition(":")[0] + f":{name}"
    if permission == "allowAll" or source in allowed.get("sourceQueueArns", []):
        return None
    return (
        f"no dead-letter queue: {arn} does not accept messages from temporary queues (redrivePermission {permission})"
    )


def _tags(original: Mapping[str, str], winning: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    copied = {key: value for key, value in original.items() if not key.startswith(RESERVED_TAGS)}
    added = {key: value for key, value in copied.items() if key not in winning}
    room = max(MAXIMUM_TAGS - len(winning), 0)
    dropped = list(added)[room:]
    kept = dict(list(added.items())[:room])
    note = f"a queue has at most {MAXIMUM_TAGS} tags; left out: {', '.join(dropped)}" if dropped else None
    return {**kept, **winning}, note
