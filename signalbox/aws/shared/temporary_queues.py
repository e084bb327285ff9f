"""Temporary queues on SQS, as the sweeps list and delete them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import effect, look
from signalbox.queues import QueueUrl, StrayQueue, queue_name

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

PAGE_SIZE = 1000  # SQS, ListQueues


@dataclass(frozen=True, slots=True)
class SqsTemporaryQueues:
    """`TemporaryQueues` on SQS."""

    sqs: "SQSClient"

    def delete(self, queue_url: QueueUrl) -> None:
        """Delete a queue; do nothing when it does not exist. Raises `EffectRefused` or `EffectFailed`."""
        with effect(queue_name(queue_url)):
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

    def described(self, queue_url: QueueUrl) -> StrayQueue | None:
        """Return a queue's tags and time of last modification; None if it does not exist. Raises `EffectFailed`."""
        with look(queue_name(queue_url)):
            try:
                tags = self.sqs.list_queue_tags(QueueUrl=queue_url).get("Tags", {})
                page = self.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["LastModifiedTimestamp"])
            except self.sqs.exceptions.QueueDoesNotExist:
                return None  # deleted since it was listed
        modified_at = datetime.fromtimestamp(float(page["Attributes"]["LastModifiedTimestamp"]), UTC)
        return StrayQueue(queue_name(queue_url), queue_url, tags, modified_at)
