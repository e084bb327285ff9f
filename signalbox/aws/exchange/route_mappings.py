"""What has the router called with the messages of exchanges: an event source mapping for each of their queues."""

from dataclasses import dataclass

from signalbox.aws.shared.mappings import DELETING, EventSourceMappings
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.queues import QueueName

ENABLED = "Enabled"
OFF = ("Disabled", "Disabling")
# A mapping is only asked for after its queue was made, which SQS documents to take a second to be known everywhere.
NOT_YET_THERE = "NonExistentQueue"


@dataclass(frozen=True, slots=True)
class RouteMappings:
    """`Mappings` of the exchange."""

    mappings: EventSourceMappings

    def connect(self, name: QueueName) -> bool:
        """Have the router called with the messages of a queue; say whether that works already. May come twice.

        Raises `EffectRefused` and `EffectFailed`.
        """
        found = [mapping for mapping in self.mappings.of(name) if mapping["State"] != DELETING]
        if not found:
            self._create(name)
            found = list(self.mappings.of(name))
        for mapping in found:
            if mapping["State"] in OFF:  # by somebody who wanted to see what comes in
                self.mappings.enable(name, mapping, enabled=True)
        return any(mapping["State"] == ENABLED for mapping in found)

    def disconnect(self, name: QueueName) -> None:
        """Stop it; a queue that is not connected any more, or is about to be disconnected, is fine.

        Raises `EffectRefused` and `EffectFailed`.
        """
        self.mappings.remove(name)

    def _create(self, name: QueueName) -> None:
        try:
            self.mappings.create(name)
        except EffectRefused as error:
            if NOT_YET_THERE in str(error):
                raise EffectFailed(f"{name!r} is so new that Lambda does not find it yet: {error}") from error
            raise
