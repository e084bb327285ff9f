"""The detours of a batch: which copies of an ordered exchange must follow earlier ones through the retry queue."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.ports import Heads
from signalbox.queues import QueueName


@dataclass(slots=True)
class Detours:
    """The last number of each detour of the batch's keys, stored in their heads. `read` are the detours when read."""

    heads: Heads
    read: Mapping[RoutingKey, Mapping[QueueName, int]]
    _last: dict[tuple[RoutingKey, QueueName], int] = field(init=False)

    def __post_init__(self) -> None:
        self._last = {(key, queue): last for key, detours in self.read.items() for queue, last in detours.items()}

    def start(self, copy: Copy) -> None:
        """Start a detour with a copy that its queue did not take, if the queue keeps the order of numbered copies."""
        if copy.sequence is not None and copy.keeps_order:
            self.heads.start_detour(copy.exchange, copy.key, copy.destination, last=copy.sequence)
            self._last[copy.key, copy.destination] = copy.sequence

    def has(self, copy: Copy) -> bool:
        """Return whether a copy would take a detour that existed when it was read."""
        return copy.sequence is not None and (copy.key, copy.destination) in self._last

    def extend(self, copy: Copy) -> bool:
        """Return whether copies for a queue take the detour over the retry queue; if so, extend it to this copy."""
        detour = copy.key, copy.destination
        if copy.sequence is None or detour not in self._last:
            return False
        last = max(copy.sequence, self._last[detour])
        if not self.heads.extend_detour(copy.exchange, copy.key, copy.destination, last=last):
            del self._last[detour]  # the detour ended: all of its messages were delivered
            return False
        self._last[detour] = last
        return True
