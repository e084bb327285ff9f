"""Shared rules of the target kinds: original queues, target state and error translation."""

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from signalbox.aws.shared.errors import is_denied, translate_write_errors
from signalbox.errors import EffectRefused, RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import MissingReference, NoQueueName, UnresolvedQueue
from signalbox.splitting.consumers.registry import ConsumedQueue, RegisteredQueue, Registry
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.split import Split, Stage
from signalbox.splitting.model.target import Target

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType


# The settings of a stage that name what its functions may use.
TARGETS_SETTING, QUEUES_SETTING = "splittable_targets", "splittable_queues"


class NotSplittable(UnresolvedQueue):
    """Raised when a target's value names no queue that the stage may split.

    The text is the same whatever the value is, and does not quote it: it may be a secret.
    """

    def __init__(self, queue: RegisteredQueue) -> None:
        super().__init__(
            f"queue {queue.queue_id!r}: the target's value names no queue that this stage may split; it must exist in "
            f"this account and region and be in the setting {QUEUES_SETTING}"
        )


@contextmanager
def switch_errors(target: Target) -> Iterator[None]:
    """Raise `EffectRefused` or `EffectFailed` for any error in the block."""
    try:
        with translate_write_errors(str(target)):
            yield
    except EffectRefused:
        raise
    except RejectedError as error:
        raise EffectRefused(str(error)) from error


@contextmanager
def queues_of_split(target: Target, known: Container[QueueName]) -> Iterator[Callable[[Iterable[QueueName]], None]]:
    """Yield a check of the queues that a target reads; raise `UnresolvedQueue` for queues outside its split.

    The error is the same for a value without a queue's name, and quotes no value, since the value may be a secret.
    """
    refusal = UnresolvedQueue(
        f"{target} was changed and reads other queues than those of its split; the session can start when it reads "
        "these again"
    )

    def check(names: Iterable[QueueName]) -> None:
        if not all(name in known for name in names):
            raise refusal

    try:
        yield check
    except NoQueueName as error:
        raise refusal from error


@dataclass(frozen=True, slots=True)
class OriginalQueues:
    """Original queues, as SQS describes them."""

    sqs: "SQSClient"

    def found(
        self, registry: Registry, names_of: Callable[[RegisteredQueue], Iterable[QueueName]]
    ) -> tuple[ConsumedQueue, ...]:
        """Return the queues of a registry. Raises `UnresolvedQueue` and `EffectRefused`.

        A queue to which the target has no reference is left out, so that it does not block the others.
        """
        found: list[ConsumedQueue] = []
        missing: list[MissingReference] = []
        for queue in registry.queues:
            try:
                found += self._each(queue, names_of(queue))
            except MissingReference as error:
                missing.append(error)
            except NoQueueName as error:
                raise NotSplittable(queue) from error
        if missing and not found:
            raise missing[0]
        return tuple(found)

    def _each(self, queue: RegisteredQueue, names: Iterable[QueueName]) -> Iterable[ConsumedQueue]:
        """Return the queues of these names, each once.

        Each is looked up before the next value is read: the error of a later source would disclose what an earlier one
        found in a value that may be a secret.
        """
        found: dict[QueueName, ConsumedQueue] = {}
        for name in names:
            found[name] = found.get(name) or self._described(queue, name)
        return found.values()

    def _described(self, queue: RegisteredQueue, name: QueueName) -> ConsumedQueue:
        with translate_write_errors(f"queue {queue.queue_id!r}"):
            attributes = self._attributes(name)
        if attributes is None:
            raise NotSplittable(queue)
        redrive = attributes.get("RedrivePolicy")
        return ConsumedQueue(
            queue.queue_id,
            name,
            timedelta(seconds=int(attributes["VisibilityTimeout"])),
            queue.sns,
            tuple(queue.tags.items()),
            queue.s3_event,
            maximum_receives=int(json.loads(redrive)["maxReceiveCount"]) if redrive else None,
        )

    def _attributes(self, name: QueueName) -> "Mapping[QueueAttributeNameType, str] | None":
        try:
            url = self.sqs.get_queue_url(QueueName=name)["QueueUrl"]
            page = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout", "RedrivePolicy"])
        except self.sqs.exceptions.QueueDoesNotExist:
            return None
        except ClientError as error:
            if is_denied(error):
                return None
            raise
        return page["Attributes"]


def target_state(names: Iterable[QueueName], split: Split) -> TargetState:
    """Return the state of a target that reads these queues; queues outside the split are ignored."""
    found = set(names)
    if found.isdisjoint(queue.deployed for queue in split.queues):
        return TargetState.ORIGINAL
    is_mixed = not found.isdisjoint(queue.original for queue in split.queues)
    return TargetState.MIXED if is_mixed else TargetState.TEMPORARY


def is_switching(split: Split) -> bool:
    """Return whether the target should read its temporary queues.

    A requested state is reported only when it is reached everywhere, any other at once, so that a switch that never
    completes can be undone.
    """
    return split.stage in (Stage.STARTING, Stage.SPLIT)


def deployed_names(split: Split) -> dict[QueueName, QueueName]:
    """Return the temporary names by original."""
    return {queue.original: queue.deployed for queue in split.queues}


def original_names(split: Split) -> dict[QueueName, QueueName]:
    """Return the originals by temporary name."""
    return {queue.deployed: queue.original for queue in split.queues}
