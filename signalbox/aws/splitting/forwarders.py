"""What forwards messages of an original queue: an event source mapping to the function `split`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from signalbox.aws.shared.mappings import EventSourceMappings
from signalbox.aws.splitting.queues import CAPABILITY
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, QueueName
from signalbox.splitting.model.world import Forwarder, ForwardingState

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
    """`Forwarders`; for one queue, at most `concurrency` functions run at once."""

    lambda_: "LambdaClient"
    function_arn: str
    queue_arn_prefix: str
    stage: str
    concurrency: int

    def observe(self, originals: Iterable[QueueName]) -> Mapping[QueueName, Forwarder]:
        """Return the state of each, without `unfinished`."""
        return {original: _observed(self._mappings.of(original)) for original in originals}

    def start(self, original: QueueName) -> None:
        """Make or enable what forwards. Raises `EffectRefused` and `EffectFailed`."""
        mappings = self._mappings.of(original)
        if any(_state(mapping) in (ForwardingState.ON, ForwardingState.STARTING) for mapping in mappings):
            return
        if mappings:
            self._mappings.enable(original, mappings[0], enabled=True)
        else:
            self._mappings.create(original)

    def stop(self, original: QueueName) -> None:
        """Disable it."""
        for mapping in self._mappings.of(original):
            if _state(mapping) in (ForwardingState.ON, ForwardingState.STARTING):
                self._mappings.enable(original, mapping, enabled=False)

    def remove(self, original: QueueName) -> None:
        """Take it away; what is gone or being deleted already is fine."""
        self._mappings.remove(original)

    @property
    def _mappings(self) -> EventSourceMappings:
        tags = {STAGE_TAG: self.stage, CAPABILITY_TAG: CAPABILITY}
        return EventSourceMappings(self.lambda_, self.function_arn, self.queue_arn_prefix, self.concurrency, tags)


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
