"""Looking at exchanges and queues for the command `status`."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from signalbox.exchange.control_ports import ControlPorts
from signalbox.exchange.naming import dead_letter_name
from signalbox.exchange.records import DeclaredQueue, Exchange, QueueActivity, QueueSize
from signalbox.exchange.status import HISTORY, WINDOW, Observed, exchange_condition, queue_condition


@dataclass(frozen=True, slots=True)
class Observing:
    """Tells how exchanges and queues are."""

    ports: ControlPorts

    def status(self, exchanges: Iterable[Exchange], queues: Iterable[DeclaredQueue]) -> object:
        """Return the result of `status`. Raises `UnavailableError`."""
        now = self.ports.now()
        return {
            "exchanges": [exchange_condition(one, self._seen(one, now), now).as_document() for one in exchanges],
            "queues": [queue_condition(one, self._seen(one, now), now).as_document() for one in queues],
        }

    def _seen(self, record: Exchange | DeclaredQueue, now: datetime) -> Observed:
        name = self.ports.names.queue(record.name)
        dead = dead_letter_name(name)
        sizes = self.ports.sqs.sizes([name, dead])
        measured = (
            self.ports.metrics.activity(name, since=now - WINDOW)
            if isinstance(record, DeclaredQueue)
            else QueueActivity()
        )
        return Observed(
            minutes=self.ports.store.counters.since(record.place, now - HISTORY),
            size=sizes.get(name),
            dead_letters=sizes.get(dead, QueueSize(0)).total,
            activity=measured,
        )
