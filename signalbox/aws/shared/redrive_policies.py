"""The redrive allow policies of queues in SQS."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import translate_read_errors, translate_write_errors
from signalbox.queues import QueueName

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

ATTRIBUTE: "QueueAttributeNameType" = "RedriveAllowPolicy"


@dataclass(frozen=True, slots=True)
class SqsRedrivePolicies:
    """`RedrivePolicies`; `url_prefix` and `arn_prefix` are a queue's URL and ARN up to its name."""

    sqs: "SQSClient"
    url_prefix: str
    arn_prefix: str

    def arn(self, name: QueueName) -> str:
        """Return the ARN of a queue."""
        return self.arn_prefix + name

    def policy(self, name: QueueName) -> str | None:
        """Return a queue's policy, an empty text if it has none, or None if the queue does not exist.

        Raises `EffectFailed`.
        """
        with translate_read_errors(_subject(name)):
            try:
                # Some stand-ins for SQS refuse this name, and return the attribute with all others.
                page = self.sqs.get_queue_attributes(QueueUrl=self.url_prefix + name, AttributeNames=["All"])
            except self.sqs.exceptions.QueueDoesNotExist:
                return None
        return page.get("Attributes", {}).get(ATTRIBUTE, "")

    def sources(self, name: QueueName) -> Sequence[str]:
        """Return the ARNs of the queues that name a queue as their dead-letter queue. Raises `EffectFailed`."""
        with translate_read_errors(f"the sources of {_subject(name)}"):
            return [self.arn_prefix + url.rpartition("/")[2] for url in self._source_urls(name)]

    def set_policy(self, name: QueueName, policy: str) -> None:
        """Set a queue's policy. Raises `EffectRefused` and `EffectFailed`."""
        with translate_write_errors(_subject(name)):
            self.sqs.set_queue_attributes(QueueUrl=self.url_prefix + name, Attributes={ATTRIBUTE: policy})

    def _source_urls(self, name: QueueName) -> Iterator[str]:
        pages = self.sqs.get_paginator("list_dead_letter_source_queues")
        for page in pages.paginate(QueueUrl=self.url_prefix + name):
            yield from page.get("queueUrls", [])


def _subject(name: QueueName) -> str:
    return f"queue {name!r}"
