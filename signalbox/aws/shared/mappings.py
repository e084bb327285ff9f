"""Event source mappings of Lambda: which function is called with the messages of which queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signalbox.aws.shared.errors import effect, look
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef

DELETING = "Deleting"


@dataclass(frozen=True, slots=True)
class EventSourceMappings:
    """The mappings from queues to one function; `queue_arn_prefix` is the ARN of a queue up to its name.

    Who reports single messages as failed switches off Lambda's own slowing-down: for a queue, at most `concurrency`
    functions run at once.
    """

    functions: "LambdaClient"
    function_arn: str
    queue_arn_prefix: str
    concurrency: int
    tags: Mapping[str, str] = field(default_factory=dict)
    batch_size: int = MAXIMUM_ENTRIES

    def of(self, queue: str) -> Sequence["EventSourceMappingConfigurationTypeDef"]:
        """Return those of a queue, with those that are being deleted. Raises `EffectFailed`."""
        # AWS allows one of a queue and a function; two that are made at the same moment are one too many elsewhere.
        with look(_subject(queue)):
            pages = self.functions.get_paginator("list_event_source_mappings").paginate(
                EventSourceArn=self.queue_arn_prefix + queue, FunctionName=self.function_arn
            )
            return [mapping for page in pages for mapping in page["EventSourceMappings"]]

    def create(self, queue: str) -> None:
        """Have the function called with the messages of a queue. Raises `EffectRefused` and `EffectFailed`."""
        with effect(_subject(queue)):
            self.functions.create_event_source_mapping(
                EventSourceArn=self.queue_arn_prefix + queue,
                FunctionName=self.function_arn,
                BatchSize=self.batch_size,
                FunctionResponseTypes=["ReportBatchItemFailures"],
                ScalingConfig={"MaximumConcurrency": self.concurrency},
                Tags=self.tags,
            )

    def enable(self, queue: str, mapping: "EventSourceMappingConfigurationTypeDef", *, enabled: bool) -> None:
        """Switch a mapping on or off. Raises `EffectRefused` and `EffectFailed`."""
        with effect(_subject(queue)):
            self.functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)

    def remove(self, queue: str) -> None:
        """Take away those of a queue; what is gone or being deleted already is fine.

        Raises `EffectRefused` and `EffectFailed`.
        """
        for mapping in self.of(queue):
            if mapping["State"] == DELETING:
                continue
            with effect(_subject(queue)):
                try:
                    self.functions.delete_event_source_mapping(UUID=mapping["UUID"])
                except self.functions.exceptions.ResourceNotFoundException:
                    continue


def _subject(queue: str) -> str:
    return f"event source mapping of queue {queue!r}"
