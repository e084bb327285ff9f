"""Queues that are made while a stage runs: made once, told from everybody else's by their tags, and TLS only."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from signalbox.aws.shared.errors import effect
from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

# What no queue can be given later; that it is the same is all that is left to find out.
NEVER_CHANGED = ("FifoQueue",)


class ForeignQueue(RejectedError):
    """Raised when a queue is to be made under a name that somebody else's queue has."""


@dataclass(frozen=True, slots=True)
class OwnQueues:
    """Makes, changes and deletes queues; `url_prefix` and `arn_prefix` are a queue's URL and ARN up to its name."""

    sqs: "SQSClient"
    url_prefix: str
    arn_prefix: str

    def url(self, name: str) -> str:
        """Return a queue's URL."""
        return self.url_prefix + name

    def arn(self, name: str) -> str:
        """Return a queue's ARN."""
        return self.arn_prefix + name

    def make(self, name: str, attributes: Mapping[str, str], tags: Mapping[str, str]) -> None:
        """Make a queue, or give the one of these tags these attributes.

        Raises `ForeignQueue`, `EffectRefused` and `EffectFailed`.
        """
        # The attributes are those of CreateQueue, by whoever asks for them.
        told = cast(
            "dict[QueueAttributeNameType, str]", {**attributes, "Policy": json.dumps(_tls_only(self.arn(name)))}
        )
        with effect(_queue(name)):
            try:
                self.sqs.create_queue(QueueName=name, Attributes=told, tags=tags)
            except self.sqs.exceptions.QueueNameExists as error:
                found = self.sqs.list_queue_tags(QueueUrl=self.url(name)).get("Tags", {})
                if any(found.get(key) != value for key, value in tags.items()):
                    raise ForeignQueue(f"{_queue(name)} is there already and is something else: {found}") from error
                changed = {key: value for key, value in told.items() if key not in NEVER_CHANGED}
                self.sqs.set_queue_attributes(QueueUrl=self.url(name), Attributes=changed)

    def delete(self, name: str) -> None:
        """Delete a queue; one that is gone already is fine. Raises `EffectRefused` and `EffectFailed`."""
        with effect(_queue(name)):
            try:
                self.sqs.delete_queue(QueueUrl=self.url(name))
            except self.sqs.exceptions.QueueDoesNotExist:
                return


def _tls_only(arn: str) -> dict[str, object]:
    """Return the policy that CDK writes for queues of which TLS is enforced."""
    statement = {
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": "sqs:*",
        "Resource": arn,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


def _queue(name: str) -> str:
    return f"queue {name!r}"
