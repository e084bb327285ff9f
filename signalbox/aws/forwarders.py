"""What forwards messages of an original queue: an event source mapping to the function `split`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from signalbox.aws.effects import effect, look
from signalbox.aws.split_queues import CAPABILITY
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, QueueName
from signalbox.sending import MAXIMUM_ENTRIES
from signalbox.splitting.world import Forwarder, ForwardingState

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef

# One that is being deleted may still forward what it has received.
STATES = {
    "Creating": ForwardingState.STARTING,
    "Enabling": ForwardingState.STARTING,
    "Updating": ForwardingState.STARTING,
    "Enabled": ForwardingState.ON,
    "Disabling": ForwardingState.STOPPING,
    "Deleting": ForwardingState.STOPPING,
    "Disabled": ForwardingState.OFF,
}
LIVELIEST_FIRST = (ForwardingState.ON, ForwardingState.STARTING, ForwardingState.STOPPING, ForwardingState.OFF)


@dataclass(frozen=True, slots=True)
class LambdaForwarders:
    """`Forwarders`; `queue_arn_prefix` is the ARN of a queue up to its name.

    Who reports single messages as failed switches off Lambda's own slowing-down: for a queue, at most `concurrency`
    functions run at once.
    """

    lambda_: "LambdaClient"
    function_arn: str
    queue_arn_prefix: str
    stage: str
    concurrency: int

    def observe(self, originals: Iterable[QueueName]) -> Mapping[QueueName, Forwarder]:
        """Return the state of each, without `unfinished`."""
        return {original: _observed(self._mappings(original)) for original in originals}

    def start(self, original: QueueName) -> None:
        """Make or enable what forwards. Raises `EffectRefused` and `EffectFailed`."""
        mappings = self._mappings(original)
        if any(_state(mapping) in (ForwardingState.ON, ForwardingState.STARTING) for mapping in mappings):
            return
        if mappings:
            self._enable(original, mappings[0], enabled=True)
        else:
            self._create(original)

    def stop(self, original: QueueName) -> None:
        """Disable it."""
        for mapping in self._mappings(original):
            if _state(mapping) in (ForwardingState.ON, ForwardingState.STARTING):
                self._enable(original, mapping, enabled=False)

    def remove(self, original: QueueName) -> None:
        """Take it away; what is gone or being deleted already is fine."""
        for mapping in self._mappings(original):
            if mapping["State"] == "Deleting":
                continue
            with effect(_subject(original)):
                try:
                    self.lambda_.delete_event_source_mapping(UUID=mapping["UUID"])
                except self.lambda_.exceptions.ResourceNotFoundException:
                    continue

    def _mappings(self, original: QueueName) -> Sequence["EventSourceMappingConfigurationTypeDef"]:
        # AWS allows one of a queue and a function; two that are made at the same moment are one too many elsewhere.
        with look(_subject(original)):
            pages = self.lambda_.get_paginator("list_event_source_mappings").paginate(
                EventSourceArn=self._arn(original), FunctionName=self.function_arn
            )
            return [mapping for page in pages for mapping in page["EventSourceMappings"]]

    def _create(self, original: QueueName) -> None:
        with effect(_subject(original)):
            self.lambda_.create_event_source_mapping(
                EventSourceArn=self._arn(original),
                FunctionName=self.function_arn,
                BatchSize=MAXIMUM_ENTRIES,
                FunctionResponseTypes=["ReportBatchItemFailures"],
                ScalingConfig={"MaximumConcurrency": self.concurrency},
                Tags={STAGE_TAG: self.stage, CAPABILITY_TAG: CAPABILITY},
            )

    def _enable(self, original: QueueName, mapping: "EventSourceMappingConfigurationTypeDef", *, enabled: bool) -> None:
        with effect(_subject(original)):
            self.lambda_.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)

    def _arn(self, original: QueueName) -> str:
        return f"{self.queue_arn_prefix}{original}"


def _observed(mappings: Sequence["EventSourceMappingConfigurationTypeDef"]) -> Forwarder:
    if not mappings:
        return Forwarder()
    states = {_state(mapping) for mapping in mappings}
    since = max(mapping["LastModified"] for mapping in mappings)
    # The emulator tells whole seconds: it may have come into this state as late as the end of that one.
    until = since.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
    return Forwarder(next(state for state in LIVELIEST_FIRST if state in states), until)


def _state(mapping: "EventSourceMappingConfigurationTypeDef") -> ForwardingState:
    return STATES[mapping["State"]]


def _subject(original: QueueName) -> str:
    return f"event source mapping of queue {original!r}"
