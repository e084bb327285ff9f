"""The event source mappings that call the router with the messages of exchanges."""

from dataclasses import dataclass

from signalbox.aws.shared.mappings import DELETING, EventSourceMappings
from signalbox.queues import QueueName

ENABLED = "Enabled"
OFF = ("Disabled", "Disabling")


@dataclass(frozen=True, slots=True)
class RouteMappings:
    """`Mappings` of the exchange."""

    mappings: EventSourceMappings

    def connect(self, name: QueueName) -> bool:
        """Map a queue to the router; return whether the mapping is enabled already. Idempotent.

        Raises `EffectRefused` and `EffectFailed`.
        """
        found = [mapping for mapping in self.mappings.of(name) if mapping["State"] != DELETING]
        if not found:
            self.mappings.create(name)
            found = list(self.mappings.of(name))
        for mapping in found:
            if mapping["State"] in OFF:  # an operator disabled it to inspect the messages
                self.mappings.enable(name, mapping, enabled=True)
        return any(mapping["State"] == ENABLED for mapping in found)

    def disconnect(self, name: QueueName) -> None:
        """Delete a queue's mapping. A mapping that is missing or being deleted is left as it is.

        Raises `EffectRefused` and `EffectFailed`.
        """
        self.mappings.remove(name)
