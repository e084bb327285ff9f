"""Queues that a stage creates at run time: idempotent creation, identified by tags, TLS only, restricted sources."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from signalbox.aws.shared.errors import translate_write_errors
from signalbox.aws.shared.redrive_policies import ATTRIBUTE, SqsRedrivePolicies
from signalbox.errors import RejectedError
from signalbox.new_queues import QueueTooNew, found_late, when_usable
from signalbox.queues import QueueName, allow_policy, tls_only
from signalbox.redrive import RedriveGuard

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

# Attributes that SQS never changes after CreateQueue, and the one that the guard changes: they are only compared.
NOT_SET_AGAIN = ("FifoQueue", ATTRIBUTE)
NOT_YET_THERE = "Dead letter target does not exist"


class ForeignQueue(RejectedError):
    """Raised when a queue of this name exists and is not managed by this stage."""


@dataclass(frozen=True, slots=True)
class OwnQueues:
    """Creates, changes and deletes queues; `url_prefix` and `arn_prefix` are a queue's URL and ARN up to its name."""

    sqs: "SQSClient"
    url_prefix: str
    arn_prefix: str
    sleep: Callable[[float], None] = time.sleep

    def url(self, name: str) -> str:
        """Return a queue's URL."""
        return self.url_prefix + name

    def arn(self, name: str) -> str:
        """Return a queue's ARN."""
        return self.arn_prefix + name

    def make(
        self,
        name: str,
        attributes: Mapping[str, str],
        tags: Mapping[str, str],
        *,
        sources: Sequence[QueueName] = (),
        is_ours: bool = False,
    ) -> None:
        """Create a queue, or set the attributes of the existing queue with the same tags.

        It takes the dead letters of `sources`, and of no other queue. Its own dead-letter queue may be new. With
        `is_ours`, no tags are read: AWS allows few such calls. Raises `ForeignQueue`, `EffectRefused` and
        `EffectFailed`.
        """
        # Callers give attributes of CreateQueue.
        policies = {
            "Policy": tls_only(self.arn(name)),
            ATTRIBUTE: allow_policy([self.arn(source) for source in sources]),
        }
        queue_attributes = cast("dict[QueueAttributeNameType, str]", {**attributes, **policies})

        def make() -> None:
            with found_late(NOT_YET_THERE), translate_write_errors(_queue(name)):
                try:
                    self.sqs.create_queue(QueueName=name, Attributes=queue_attributes, tags=tags)
                except self.sqs.exceptions.QueueNameExists:
                    if not is_ours:
                        self._check_tags(name, tags)
                    changed = {key: value for key, value in queue_attributes.items() if key not in NOT_SET_AGAIN}
                    self.sqs.set_queue_attributes(QueueUrl=self.url(name), Attributes=changed)
                    self._guard.restrict(QueueName(name), sources=sources)

        when_usable(make, missing=QueueTooNew, sleep=self.sleep)

    def _check_tags(self, name: str, tags: Mapping[str, str]) -> None:
        found = self.sqs.list_queue_tags(QueueUrl=self.url(name)).get("Tags", {})
        if any(found.get(key) != value for key, value in tags.items()):
            raise ForeignQueue(f"{_queue(name)} exists and is not managed by this stage: {found}")

    @property
    def _guard(self) -> RedriveGuard:
        return RedriveGuard(SqsRedrivePolicies(self.sqs, self.url_prefix, self.arn_prefix))

    def delete(self, name: str) -> None:
        """Delete a queue; do nothing when it does not exist. Raises `EffectRefused` and `EffectFailed`."""
        with translate_write_errors(_queue(name)):
            try:
                self.sqs.delete_queue(QueueUrl=self.url(name))
            except self.sqs.exceptions.QueueDoesNotExist:
                return


def _queue(name: str) -> str:
    return f"queue {name!r}"
