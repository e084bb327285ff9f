"""Event source mappings of Lambda: the queues whose messages a function receives."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import translate_read_errors, translate_write_errors
from signalbox.new_queues import QueueTooNew, found_late, when_usable
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef

DELETING = "Deleting"
NOT_YET_THERE = "NonExistentQueue"  # in the text of the error


@dataclass(frozen=True, slots=True)
class EventSourceMappings:
    """The mappings from queues to one function; `queue_arn_prefix` is the ARN of a queue up to its name.

    Lambda does not slow down for functions that report single messages as failed, so at most `concurrency` of them run
    at once for a queue.
    """

    functions: "LambdaClient"
    function_arn: str
    queue_arn_prefix: str
    concurrency: int
    tags: Mapping[str, str] = field(default_factory=dict)
    batch_size: int = MAXIMUM_ENTRIES
    sleep: Callable[[float], None] = time.sleep

    def of(self, queue: str) -> Sequence["EventSourceMappingConfigurationTypeDef"]:
        """Return the mappings of a queue, including those in deletion. Raises `EffectFailed`."""
        # AWS allows one mapping for a queue and a function; of two concurrent creations one fails.
        with translate_read_errors(_subject(queue)):
            pages = self.functions.get_paginator("list_event_source_mappings").paginate(
                EventSourceArn=self.queue_arn_prefix + queue, FunctionName=self.function_arn
            )
            return [mapping for page in pages for mapping in page["EventSourceMappings"]]

    def create(self, queue: str) -> None:
        """Create the mapping of a queue, which may be new. Raises `EffectRefused` and `EffectFailed`."""
        when_usable(lambda: self._create(queue), missing=QueueTooNew, sleep=self.sleep)

    def _create(self, queue: str) -> None:
        with found_late(NOT_YET_THERE), translate_write_errors(_subject(queue)):
            self.functions.create_event_source_mapping(
                EventSourceArn=self.queue_arn_prefix + queue,
                FunctionName=self.function_arn,
                BatchSize=self.batch_size,
                FunctionResponseTypes=["ReportBatchItemFailures"],
                ScalingConfig={"MaximumConcurrency": self.concurrency},
                Tags=self.tags,
            )

    def enable(self, queue: str, mapping: "EventSourceMappingConfigurationTypeDef", *, enabled: bool) -> None:
        """Enable or disable a mapping. Raises `EffectRefused` and `EffectFailed`."""
        with translate_write_errors(_subject(queue)):
            self.functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)

    def remove(self, queue: str) -> None:
        """Delete the mappings of a queue, except those already in deletion.

        Raises `EffectRefused` and `EffectFailed`.
        """
        for mapping in self.of(queue):
            if mapping["State"] == DELETING:
                continue
            with translate_write_errors(_subject(queue)):
                try:
                    self.functions.delete_event_source_mapping(UUID=mapping["UUID"])
                except self.functions.exceptions.ResourceNotFoundException:
                    continue

    def remove_earlier(self, queue: str) -> None:
        """Delete the mappings of a queue to earlier functions of the stage, known by their tags; others stay.

        Raises `EffectRefused` and `EffectFailed`.
        """
        with translate_write_errors(_subject(queue)):
            pages = self.functions.get_paginator("list_event_source_mappings").paginate(
                EventSourceArn=self.queue_arn_prefix + queue
            )
            for mapping in [one for page in pages for one in page["EventSourceMappings"]]:
                if mapping["FunctionArn"] != self.function_arn and mapping["State"] != DELETING:
                    delete_tagged(self.functions, mapping["UUID"], self.queue_arn_prefix, self.tags)


def delete_tagged(functions: "LambdaClient", mapping_id: str, queue_arn_prefix: str, tags: Mapping[str, str]) -> bool:
    """Delete a mapping with these tags; return False, and keep it, if it has others. Raises AWS's errors."""
    arn = queue_arn_prefix.replace(":sqs:", ":lambda:") + f"event-source-mapping:{mapping_id}"
    with suppress(functions.exceptions.ResourceNotFoundException):
        if not tags.items() <= functions.list_tags(Resource=arn).get("Tags", {}).items():
            return False
        functions.delete_event_source_mapping(UUID=mapping_id)
    return True


def _subject(queue: str) -> str:
    return f"event source mapping of queue {queue!r}"
