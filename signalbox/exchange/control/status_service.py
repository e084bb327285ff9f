"""The service behind the command `status`, which observes exchanges and queues."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase

from signalbox.errors import RejectedError
from signalbox.exchange.control.caller import PermittedRecords
from signalbox.exchange.control.errors import NotFound
from signalbox.exchange.control.status import HISTORY, WINDOW, Observation, exchange_status, queue_status
from signalbox.exchange.model.control_ports import ControlPorts
from signalbox.exchange.model.names import dead_letter_name, is_existing
from signalbox.exchange.model.records import DeclaredQueue, ListedExchange, QueueSize, ResourceRef
from signalbox.nearest import suggestion

# The number that fits into one reply with names of any length, and into the time of one function call.
MAXIMUM_OBSERVED = 500


class TooManyResources(RejectedError):
    """Raised when more exchanges and queues match `status` than one reply can hold."""


@dataclass(frozen=True, slots=True)
class StatusService:
    """Observes exchanges and queues and reports their status."""

    ports: ControlPorts

    def status(self, readable: PermittedRecords, *, names: Sequence[str]) -> object:
        """Return the result of `status` for those with these names, or all. `*` in a name matches any text.

        Raises `NotFound`, `TooManyResources` and `UnavailableError`.
        """
        exchanges = [one for one in readable.exchanges(names) if _is_meant(one.name, names)]
        queues = [one for one in readable.queues(names) if _is_meant(one.name, names)]
        found = [*(str(one.name) for one in exchanges), *(str(one.name) for one in queues)]
        unknown = [name for name in names if not any(_is_meant(one, [name]) for one in found)]
        if unknown:
            raise NotFound(_missing(unknown, [one.name for one in readable.resources()]))
        count = len(exchanges) + len(queues)
        if count > MAXIMUM_OBSERVED:
            remedy = "give names, such as 'q_alice*'"
            raise TooManyResources(
                f"{count} exchanges and queues match, more than the maximum of {MAXIMUM_OBSERVED}: {remedy}"
            )
        now = self.ports.now()
        parallel_map = self.ports.parallel_map
        return {
            "exchanges": list(parallel_map(lambda one: self._exchange(one, now), exchanges)),
            "queues": list(parallel_map(lambda one: self._queue(one, now), queues)),
        }

    def _exchange(self, exchange: ListedExchange, now: datetime) -> object:
        return exchange_status(exchange, self._seen(exchange.resource, now), now).as_document()

    def _queue(self, queue: DeclaredQueue, now: datetime) -> object:
        return queue_status(queue, self._measured(self._seen(queue.resource, now), queue, now), now).as_document()

    def _seen(self, resource: ResourceRef, now: datetime) -> Observation:
        name = self.ports.names.queue(resource.name)
        # Copies that cannot be put into an existing queue go to the stage's dead-letter queue.
        sizes = self.ports.sqs.sizes([name] if is_existing(resource.name) else [name, dead_letter_name(name)])
        return Observation(
            minutes=self.ports.counters.since(resource, now - HISTORY),
            size=sizes.get(name),
            dead_letters=sizes.get(dead_letter_name(name), QueueSize(0)).total,
        )

    def _measured(self, seen: Observation, queue: DeclaredQueue, now: datetime) -> Observation:
        activity = self.ports.metrics.activity(self.ports.names.queue(queue.name), since=now - WINDOW)
        return replace(seen, activity=activity)


def _is_meant(name: str, names: Sequence[str]) -> bool:
    return not names or name in names or any(fnmatchcase(name, pattern) for pattern in names)


def _missing(unknown: Sequence[str], readable: Sequence[str]) -> str:
    hints = ((name, suggestion(name, readable)) for name in unknown)
    return "\n".join(f"there is no exchange or queue {name!r} that you may read{hint}" for name, hint in hints)
