"""Looking at exchanges and queues for the command `status`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.exchange.control_ports import ControlPorts
from signalbox.exchange.naming import dead_letter_name
from signalbox.exchange.records import DeclaredQueue, Exchange, Place, QueueSize
from signalbox.exchange.status import HISTORY, WINDOW, Observed, exchange_condition, queue_condition
from signalbox.queues import QueueName


@dataclass(frozen=True, slots=True)
class Observing:
    """Tells how exchanges and queues are."""

    ports: ControlPorts

    def status(self, exchanges: Sequence[Exchange], queues: Sequence[DeclaredQueue]) -> object:
        """Return the result of `status`. Raises `UnavailableError`."""
        now = self.ports.now()
        places = [*(one.place for one in exchanges), *(one.place for one in queues)]
        names = [self.ports.names.queue(place.name) for place in places]
        sizes = self.ports.sqs.sizes([*names, *map(dead_letter_name, names)])
        seen_exchanges = ((one, self._seen(one.place, sizes, now)) for one in exchanges)
        seen_queues = ((one, self._measured(self._seen(one.place, sizes, now), one, now)) for one in queues)
        return {
            "exchanges": [exchange_condition(one, seen, now).as_document() for one, seen in seen_exchanges],
            "queues": [queue_condition(one, seen, now).as_document() for one, seen in seen_queues],
        }

    def _seen(self, place: Place, sizes: Mapping[QueueName, QueueSize], now: datetime) -> Observed:
        name = self.ports.names.queue(place.name)
        return Observed(
            minutes=self.ports.store.counters.since(place, now - HISTORY),
            size=sizes.get(name),
            dead_letters=sizes.get(dead_letter_name(name), QueueSize(0)).total,
        )

    def _measured(self, seen: Observed, queue: DeclaredQueue, now: datetime) -> Observed:
        activity = self.ports.metrics.activity(self.ports.names.queue(queue.name), since=now - WINDOW)
        return replace(seen, activity=activity)
