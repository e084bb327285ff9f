"""Calls for the tags of queues, paced: AWS documents five a second for an account.

https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ListQueueTags.html
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from signalbox.aws.shared.errors import is_retryable

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

PAUSE_SECONDS = 0.25  # four a second: other programs of the account have tags, too
TRIES = 20  # while those use the fifth call, and more


@dataclass(slots=True)
class TagCalls:
    """The pace of the calls of all threads of a process."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _free_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def tags(self, sqs: "SQSClient", queue_url: str) -> Mapping[str, str]:
        """Return a queue's tags, none if it does not exist. Raises botocore's errors; tries retryable ones again."""
        for _ in range(TRIES - 1):
            try:
                return self._tags(sqs, queue_url)
            except ClientError as error:
                if not is_retryable(error):
                    raise
        return self._tags(sqs, queue_url)

    def _tags(self, sqs: "SQSClient", queue_url: str) -> Mapping[str, str]:
        self._wait()
        try:
            return sqs.list_queue_tags(QueueUrl=queue_url).get("Tags", {})
        except sqs.exceptions.QueueDoesNotExist:
            return {}

    def _wait(self) -> None:
        with self._lock:
            now = self.clock()
            at = max(now, self._free_at)
            self._free_at = at + PAUSE_SECONDS
        if at > now:
            self.sleep(at - now)
