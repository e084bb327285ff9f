"""Forwarders: event source mappings from original queues to the function `split`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from signalbox.aws.shared.mappings import EventSourceMappings
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, QueueName
from signalbox.splitting.model.events import CAPABILITY
from signalbox.splitting.model.observed_state import Forwarder, ForwardingState

if TYPE_CHECKING:
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef

# A mapping that is being deleted may still forward what it has received.
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
    """`Forwarders` over event source mappings; one queue has at most `concurrency` concurrent calls.

    To stop one, neither this nor the stage is needed.
    """

    lambda_: "LambdaClient"
    function_arn: str
    queue_arn_prefix: str
    stage: str = ""
    concurrency: int = 0

    def observe(self, originals: Iterable[QueueName]) -> Mapping[QueueName, Forwarder]:
        """Return the state of each forwarder, without `unfinished`."""
        return {original: _observed(self._mappings.of(original)) for original in originals}

    def start(self, original: QueueName) -> None:
        """Create or enable a forwarder, in place of one to an earlier function of the stage.

        Raises `EffectRefused` and `EffectFailed`.
        """
        mappings = self._mappings.of(original)
        if any(_state(mapping) in (ForwardingState.ON, ForwardingState.STARTING) for mapping in mappings):
            return
        if mappings:
            self._mappings.enable(original, mappings[0], enabled=True)
        else:
            self._mappings.remove_earlier(original)
            self._mappings.create(original)

    def stop(self, original: QueueName) -> None:
        """Disable a forwarder."""
        for mapping in self._mappings.of(original):
            if _state(mapping) in (ForwardingState.ON, ForwardingState.STARTING):
                self._mappings.enable(original, mapping, enabled=False)

    def remove(self, original: QueueName) -> None:
        """Delete a forwarder; one that does not exist or is being deleted is ignored."""
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
    # The emulator returns whole seconds: the state may have begun as late as the end of that second.
    until = since.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
    return Forwarder(next(state for state in LIVELIEST_FIRST if state in states), until)


def _state(mapping: "EventSourceMappingConfigurationTypeDef") -> ForwardingState:
    return STATES[mapping["State"]]
