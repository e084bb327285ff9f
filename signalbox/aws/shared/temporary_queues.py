"""Temporary queues on SQS, as the sweeps list and delete them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox.queues import QueueName, QueueUrl, StrayQueue

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient


@dataclass(frozen=True, slots=True)
class SqsTemporaryQueues:
    """`TemporaryQueues` on SQS."""

    sqs: "SQSClient"

    def delete(self, queue_url: QueueUrl) -> None:
        """Delete a queue; do nothing when it does not exist."""
        try:
            self.sqs.delete_queue(QueueUrl=queue_url)
        except self.sqs.exceptions.QueueDoesNotExist:
            return

    def with_prefix(self, prefix: str) -> Iterator[StrayQueue]:
        """Yield every queue whose name starts with `prefix`, with its tags and time of last modification."""
        pages = self.sqs.get_paginator("list_queues").paginate(
            QueueNamePrefix=prefix, PaginationConfig={"PageSize": 1000}
        )
        for page in pages:
            for url in page.get("QueueUrls", []):
                yield from self._described(QueueUrl(url))

    def _described(self, queue_url: QueueUrl) -> Iterator[StrayQueue]:
        try:
            tags = self.sqs.list_queue_tags(QueueUrl=queue_url).get("Tags", {})
            page = self.sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=["LastModifiedTimestamp"])
        except self.sqs.exceptions.QueueDoesNotExist:
            return  # deleted since it was listed
        modified_at = datetime.fromtimestamp(float(page["Attributes"]["LastModifiedTimestamp"]), UTC)
        yield StrayQueue(QueueName(queue_url.rpartition("/")[2]), queue_url, tags, modified_at)
