"""Temporary queues on SQS, as the sweeps list and delete them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import translate_read_errors, translate_write_errors
from signalbox.aws.shared.tag_calls import TagCalls
from signalbox.queues import QueueUrl, queue_name

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

PAGE_SIZE = 1000  # SQS, ListQueues


@dataclass(frozen=True, slots=True)
class SqsTemporaryQueues:
    """`TemporaryQueues` on SQS."""

    sqs: "SQSClient"
    tag_calls: TagCalls

    def delete(self, queue_url: QueueUrl) -> None:
        """Delete a queue; do nothing when it does not exist. Raises `EffectRefused` or `EffectFailed`."""
        with translate_write_errors(queue_name(queue_url)):
            try:
                self.sqs.delete_queue(QueueUrl=queue_url)
            except self.sqs.exceptions.QueueDoesNotExist:
                return

    def listed(self, prefix: str) -> Iterator[QueueUrl]:
        """Yield the URL of every queue whose name starts with `prefix`."""
        pages = self.sqs.get_paginator("list_queues").paginate(
            QueueNamePrefix=prefix, PaginationConfig={"PageSize": PAGE_SIZE}
        )
        for page in pages:
            yield from map(QueueUrl, page.get("QueueUrls", []))

    def modified_at(self, queue_url: QueueUrl) -> datetime | None:
        """Return the time of a queue's last modification; None if it does not exist. Raises `EffectFailed`."""
        with translate_read_errors(queue_name(queue_url)):
            try:
                page = self.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["LastModifiedTimestamp"])
            except self.sqs.exceptions.QueueDoesNotExist:
                return None  # deleted since it was listed
        return datetime.fromtimestamp(float(page["Attributes"]["LastModifiedTimestamp"]), UTC)

    def tags(self, queue_url: QueueUrl) -> Mapping[str, str]:
        """Return a queue's tags, none if it does not exist. Raises `EffectFailed`."""
        with translate_read_errors(queue_name(queue_url)):
            return self.tag_calls.tags(self.sqs, queue_url)
