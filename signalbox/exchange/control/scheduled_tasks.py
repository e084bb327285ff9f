"""Scheduled tasks: the oldest message, unused queues and mappings, orphan queues, and permitted sources of queues."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.control.orphan_queues import STRAY_AGE, FoundQueues, OrphanQueues
from signalbox.exchange.control.caller import Caller
from signalbox.exchange.control.deletion import DeletionService
from signalbox.exchange.model.control_ports import ChangedMeanwhile, ControlPorts
from signalbox.exchange.model.events import CAPABILITY
from signalbox.exchange.model.names import dead_letter_name, is_existing
from signalbox.exchange.model.records import DeclaredQueue, latest
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName, QueueUrl, queue_name
from signalbox.sarracenia.rights.names import ExchangeName
from signalbox.task_time import TaskTime

# SQS publishes a value each minute, some minutes late.
WINDOW = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class BacklogService:
    """Measures the queues of exchanges and the control queues of users."""

    ports: ControlPorts

    def oldest(self, time: TaskTime) -> timedelta | None:
        """Return the age of the oldest waiting message, or None if none waits. Raises `UnavailableError`.

        CloudWatch bills each metric that is read, so that only queues with waiting messages are looked up there.
        """
        ages: list[timedelta | None] = []
        for part in time.parts(self._queues()):
            waiting = [queue for queue in self.ports.parallel_map(self._if_waiting, part) if queue is not None]
            ages += self.ports.parallel_map(self._age, waiting)
        return max((age for age in ages if age is not None), default=None)

    def _queues(self) -> Iterator[QueueName]:
        for exchange in self.ports.store.exchanges.every():
            yield self.ports.names.queue(exchange.name)
        for user in self.ports.store.users.every():
            yield self.ports.names.control_queue(user.name)

    def _if_waiting(self, queue: QueueName) -> QueueName | None:
        size = self.ports.sqs.sizes([queue]).get(queue)
        return queue if size is not None and size.waiting else None

    def _age(self, queue: QueueName) -> timedelta | None:
        return self.ports.metrics.activity(queue, since=self.ports.now() - WINDOW).oldest


REASON = "nobody consumed from it for as long as it was to stay without"


def expired(queues: Iterable[DeclaredQueue], now: datetime, *, delay: timedelta) -> Sequence[DeclaredQueue]:
    """Return the queues that were neither declared nor consumed from for the time that `expires` sets.

    The times of use in `queues` may be late by `delay`, so that this much more time must have passed.
    """
    return [queue for queue in queues if queue.settings.expires is not None and _expires_at(queue) + delay <= now]


def _expires_at(queue: DeclaredQueue) -> datetime:
    used_at = max(queue.declared_at, queue.consumed_at or queue.declared_at)
    return used_at + (queue.settings.expires or timedelta.max)


@dataclass(frozen=True, slots=True)
class ExpiryService:
    """Deletes expired queues."""

    ports: ControlPorts

    def delete_expired(self, time: TaskTime) -> Iterator[DeclaredQueue]:
        """Delete expired queues and yield them. Raises `UnavailableError`."""
        now, delay = self.ports.now(), self.ports.config.metrics_delay
        late = expired(self.ports.store.queues.every(), now, delay=delay)
        # A look costs calls, so only queues without another heartbeat are looked at.
        for part in time.parts(late):
            are_unused = self.ports.parallel_map(lambda queue: self._is_unused(queue, now, delay=delay), part)
            unused = [queue for queue, is_unused in zip(part, are_unused, strict=True) if is_unused]
            yield from filter(self._is_deleted, unused)

    def _is_unused(self, queue: DeclaredQueue, now: datetime, *, delay: timedelta) -> bool:
        name = self.ports.names.queue(queue.name)
        # This read also makes the queue active, so that SQS begins to publish its metrics.
        size = self.ports.sqs.sizes([name]).get(name)
        if size is not None and size.in_flight:
            return False
        activity = self.ports.metrics.activity(name, since=now - delay - (queue.settings.expires or delay))
        if size is not None and not activity.is_measured:
            return False
        measured = replace(queue, consumed_at=latest(queue.consumed_at, activity.received_at))
        is_unused = bool(expired([measured], now, delay=delay))
        if not is_unused:
            # It is looked at again when this use is as old: CloudWatch bills each look.
            self.ports.store.queues.save(measured, replacing=queue)
        return is_unused

    def _is_deleted(self, queue: DeclaredQueue) -> bool:
        try:
            DeletionService(self.ports, Caller(None)).delete(queue, reason=REASON)
        except ChangedMeanwhile:
            return False  # a consumer used it since it was read, so it has not expired
        return True


FAMILIES = ("x", "q_")  # prefixes of the names of exchanges and of queues


@dataclass(frozen=True, slots=True)
class ExchangeQueueSweeper:
    """Deletes orphan queues. It never deletes a queue without this stage's tags."""

    ports: ControlPorts
    queues: FoundQueues
    parallel_map: ParallelMap = serial_map

    def delete_strays(self, time: TaskTime) -> Iterator[QueueName]:
        """Delete the empty queues that belong to no record, and yield their names.

        Queues with messages are kept, and so are the dead letters of deleted resources until they are consumed or
        expire. Only a queue that is on no record at all costs a call for its tags.
        """
        now = self.ports.now()
        left = [one for one in self.ports.store.left.every() if now - one.created_at >= STRAY_AGE]
        for some in time.half().parts(left):
            yield from filter(None, self.ports.parallel_map(self._without_left, some))
        listed = [url for family in FAMILIES for url in self._strays.listed(prefix=self.ports.names.prefix + family)]
        # Read after the queues were listed, so that a queue that was declared since then is kept.
        known = set(self._known())
        for part in time.parts(url for url in listed if queue_name(url) not in known):
            yield from self._deleted(part)

    def _without_left(self, left: DeclaredQueue) -> QueueName | None:
        """Delete the dead-letter queue of a deleted resource if it is empty, and return its name."""
        store, dead = self.ports.store, dead_letter_name(self.ports.names.queue(left.name))
        is_declared_again = store.queues.find(left.name) or store.exchanges.find(ExchangeName(left.name))
        if not is_declared_again:
            if any(size.total for size in self.ports.sqs.sizes([dead]).values()):
                return None
            self.ports.sqs.delete(dead)
        store.left.forget(left)
        return None if is_declared_again else dead

    def _deleted(self, unknown: Sequence[QueueUrl]) -> Iterator[QueueName]:
        strays = list(self._strays.old(unknown, now=self.ports.now()))
        sizes = self.ports.sqs.sizes(map(queue_name, strays))
        empty = {name for name, size in sizes.items() if not size.total}
        ours = self._strays.ours(url for url in strays if queue_name(url) in empty)
        for url in ours:
            if self.ports.names.exchange_of(queue_name(url)):
                self.ports.mappings.disconnect(queue_name(url))
        yield from self._strays.delete(ours)

    @property
    def _strays(self) -> OrphanQueues:
        return OrphanQueues(self.queues, self.ports.names.stage, CAPABILITY, self.parallel_map)

    def _known(self) -> Iterator[QueueName]:
        store = self.ports.store
        names: list[str] = [one.name for one in store.exchanges.every()]
        for name in [*names, *(one.name for queues in (store.queues, store.left) for one in queues.every())]:
            queue = self.ports.names.queue(name)
            yield from (queue, dead_letter_name(queue))


def disconnect_unused_retries(ports: ControlPorts) -> None:
    """Delete the mappings of the empty retry queues that no exchange uses, since an idle queue costs polls."""
    used = {ports.names.retry_queue(one.name) for one in ports.store.exchanges.every()}
    unused = [queue for queue in ports.names.retry_queues if queue not in used]
    for queue, size in ports.sqs.sizes(unused).items():
        if not size.total:
            ports.mappings.disconnect(queue)


def queue_sources(ports: ControlPorts) -> Mapping[QueueName, Sequence[QueueName]]:
    """Return the sources of every queue: of exchanges, declared queues and users."""
    found: dict[QueueName, Sequence[QueueName]] = {}
    names = [str(one.name) for one in ports.store.exchanges.every()]
    own = [one.name for one in ports.store.queues.every() if not is_existing(one.name)]
    for queue in map(ports.names.queue, [*names, *own]):
        found |= {queue: (), dead_letter_name(queue): (queue,)}
    for user in ports.store.users.every():
        found |= {ports.names.control_queue(user.name): (), ports.names.reply_queue(user.name): ()}
    return found
