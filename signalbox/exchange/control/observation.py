"""Looking at exchanges and queues for the command `status`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.errors import RejectedError
from signalbox.exchange.control.status import HISTORY, WINDOW, Observed, exchange_condition, queue_condition
from signalbox.exchange.model.control_ports import ControlPorts
from signalbox.exchange.model.naming import dead_letter_name
from signalbox.exchange.model.records import DeclaredQueue, Exchange, Place, QueueSize

# One reply tells of so many, whatever they are called, and one call of the function has the time to look at them.
MAXIMUM_OBSERVED = 500


class TooManyToObserve(RejectedError):
    """Raised when the status of more exchanges and queues is asked for than one reply holds."""


@dataclass(frozen=True, slots=True)
class Observing:
    """Tells how exchanges and queues are."""

    ports: ControlPorts

    def status(self, exchanges: Sequence[Exchange], queues: Sequence[DeclaredQueue]) -> object:
        """Return the result of `status`. Raises `TooManyToObserve` and `UnavailableError`."""
        count = len(exchanges) + len(queues)
        if count > MAXIMUM_OBSERVED:
            remedy = "give names, such as 'q_alice*', to ask for some of them"
            raise TooManyToObserve(
                f"{count} exchanges and queues are more than the {MAXIMUM_OBSERVED} that one reply tells of: {remedy}"
            )
        now = self.ports.now()
        told = self.ports.side_by_side
        return {
            "exchanges": list(told(lambda one: self._exchange(one, now), exchanges)),
            "queues": list(told(lambda one: self._queue(one, now), queues)),
        }

    def _exchange(self, exchange: Exchange, now: datetime) -> object:
        return exchange_condition(exchange, self._seen(exchange.place, now), now).as_document()

    def _queue(self, queue: DeclaredQueue, now: datetime) -> object:
        return queue_condition(queue, self._measured(self._seen(queue.place, now), queue, now), now).as_document()

    def _seen(self, place: Place, now: datetime) -> Observed:
        name = self.ports.names.queue(place.name)
        sizes = self.ports.sqs.sizes([name, dead_letter_name(name)])
        return Observed(
            minutes=self.ports.store.counters.since(place, now - HISTORY),
            size=sizes.get(name),
            dead_letters=sizes.get(dead_letter_name(name), QueueSize(0)).total,
        )

    def _measured(self, seen: Observed, queue: DeclaredQueue, now: datetime) -> Observed:
        activity = self.ports.metrics.activity(self.ports.names.queue(queue.name), since=now - WINDOW)
        return replace(seen, activity=activity)
