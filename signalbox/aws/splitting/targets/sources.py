"""What the kinds of targets share: the queues that they name, from where they read, and what keeps them there."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import effect
from signalbox.errors import EffectRefused, RejectedError
from signalbox.queues import FIFO_SUFFIX, InvalidQueueName, QueueName, parse_queue_name
from signalbox.splitting.consumers.environment import UnresolvedQueue
from signalbox.splitting.consumers.registry import RegisteredQueue
from signalbox.splitting.control.admission import FoundQueue
from signalbox.splitting.model.split import Split, Stage
from signalbox.splitting.model.target import Target
from signalbox.splitting.model.world import TargetState

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient


@contextmanager
def switching(target: Target) -> Iterator[None]:
    """Turn whatever keeps a target from being switched into `EffectRefused` and `EffectFailed`."""
    try:
        with effect(str(target)):
            yield
    except EffectRefused:
        raise
    except RejectedError as error:
        raise EffectRefused(str(error)) from error


@dataclass(frozen=True, slots=True)
class Originals:
    """The queues that targets name, as SQS describes them."""

    sqs: "SQSClient"

    def described(self, queue: RegisteredQueue, names: Iterable[QueueName]) -> tuple[FoundQueue, ...]:
        """Return the queues of one queue id. Raises `UnresolvedQueue` and `EffectRefused`."""
        return tuple(self._described(queue, name) for name in names)

    def _described(self, queue: RegisteredQueue, name: QueueName) -> FoundQueue:
        try:
            parse_queue_name(name.removesuffix(FIFO_SUFFIX))
        except InvalidQueueName as error:
            # Not quoted: it may be a secret that the registry takes for a queue's name by mistake.
            raise UnresolvedQueue(f"queue {queue.queue_id!r}: what the target has there is no queue's name") from error
        with effect(f"queue {name!r}"):
            visibility = self._visibility(name)
        if visibility is None:
            raise UnresolvedQueue(f"queue {queue.queue_id!r}: SQS has no queue {name!r} in this region")
        return FoundQueue(queue.queue_id, name, visibility, queue.sns, tuple(queue.tags.items()))

    def _visibility(self, name: QueueName) -> timedelta | None:
        try:
            url = self.sqs.get_queue_url(QueueName=name)["QueueUrl"]
            page = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
        except self.sqs.exceptions.QueueDoesNotExist:
            return None
        return timedelta(seconds=int(page["Attributes"]["VisibilityTimeout"]))


def reads_from(names: Iterable[QueueName], split: Split) -> TargetState:
    """Return from where one reads who reads the queues of these names; names that are not the split's do not count."""
    found = set(names)
    if found.isdisjoint(queue.deployed for queue in split.queues):
        return TargetState.ORIGINAL
    is_mixed = not found.isdisjoint(queue.original for queue in split.queues)
    return TargetState.MIXED if is_mixed else TargetState.TEMPORARY


def is_switching(split: Split) -> bool:
    """Say whether the target is to read its temporary queues; otherwise it is to come back, now or soon.

    What is wanted is said only when it is so everywhere; what is not wanted is said at once, so that a switch that
    never comes to its end can be taken back.
    """
    return split.stage in (Stage.STARTING, Stage.SPLIT)


def deployed_names(split: Split) -> dict[QueueName, QueueName]:
    """Return the names that the target is to read instead of the originals."""
    return {queue.original: queue.deployed for queue in split.queues}


def original_names(split: Split) -> dict[QueueName, QueueName]:
    """Return the originals by the names that the target reads instead."""
    return {queue.deployed: queue.original for queue in split.queues}
