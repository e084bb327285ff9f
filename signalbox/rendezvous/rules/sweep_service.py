"""The sweep of client queues: it deletes queues whose lease has ended, and orphans without a lease."""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import islice
from string import ascii_letters, digits
from typing import TYPE_CHECKING, TypeVar

from signalbox.errors import EffectFailed, EffectRefused
from signalbox.history.event import HistoryEvent
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import Lease, QueueName, QueueUrl, is_ours, queue_name
from signalbox.rendezvous.reporting import events

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.control.orphan_queues import FoundQueues
    from signalbox.rendezvous.ports import Cursor, Leases, QueueLeases

# Queues between two looks at the clock.
PART = 100
# The first characters of a ClientID, in which the search for orphans proceeds; its cursor is an index of this text.
FIRST_CHARACTERS = f"{digits}{ascii_letters}-_"

EPOCH, MILLISECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(milliseconds=1)

Value = TypeVar("Value")
NeededQueues = Callable[[], AbstractSet[QueueName]]


@dataclass(frozen=True, slots=True)
class SweptPart:
    """The result of some queues: an event for each deleted one, and the reason for each that could not be deleted."""

    events: tuple[HistoryEvent, ...]
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parts:
    """Splits the work of a run into parts, whose queues are handled several at a time."""

    clock: "Clock"
    parallel_map: ParallelMap = serial_map

    def now(self) -> datetime:
        """Return the current time."""
        return self.clock.now()

    def each(self, values: Iterable[Value], *, until: datetime) -> Iterator[list[Value]]:
        """Yield the parts of values that begin before `until`."""
        iterator = iter(values)
        while (part := list(islice(iterator, PART))) and self.now() < until:
            yield part

    def swept(self, step: Callable[[Value], HistoryEvent | None], values: Iterable[Value]) -> SweptPart:
        """Return the result of a step for each value."""

        def attempted(value: Value) -> HistoryEvent | EffectFailed | EffectRefused | None:
            try:
                return step(value)
            except (EffectFailed, EffectRefused) as problem:
                return problem  # one queue must not hinder the others

        results = list(self.parallel_map(attempted, values))
        return SweptPart(
            events=tuple(one for one in results if isinstance(one, HistoryEvent)),
            failures=tuple(str(one) for one in results if isinstance(one, Exception)),
        )


@dataclass(frozen=True, slots=True)
class LeaseSweep:
    """Deletes the client queues whose lease has ended, oldest first; the next run continues after the last one."""

    leases: "Leases"
    queue_leases: "QueueLeases"
    queues: "FoundQueues"
    swept_until: "Cursor"  # in milliseconds since 1970
    parts: Parts

    def end_leases(self, *, until: datetime) -> Iterator[SweptPart]:
        """Delete the queues, one call each; yield the results in parts, which begin before `until`."""
        now = self.parts.now()
        # A client that came again with its ClientID uses the queue of its former offer.
        needed = cache(lambda: self.queue_leases.needed(now=now))
        for part in self.parts.each(self.leases.due(events.CAPABILITY, now=now), until=until):
            yield self.parts.swept(partial(self._end, needed=needed), part)
        yield from self._end_ended(needed, until=until)

    def _end_ended(self, needed: NeededQueues, *, until: datetime) -> Iterator[SweptPart]:
        """Delete the queues whose offer is long over; no write marks an offer, a cursor keeps the place."""
        since, now = EPOCH + MILLISECOND * (self.swept_until.position() or 0), self.parts.now()
        for part in self.parts.each(self.queue_leases.between(since, now), until=until):
            yield self.parts.swept(self._delete_ended, [lease for lease in part if lease.queue_name not in needed()])
            # The next run begins after the last lease. Another one that ends in the same millisecond and is in the next
            # part is read by this run, or its queue is deleted as a stray.
            self.swept_until.save((part[-1].due_at - EPOCH) // MILLISECOND + 1)

    def _delete_ended(self, lease: Lease) -> HistoryEvent:
        try:
            self.queues.delete(lease.queue_url)
        except (EffectFailed, EffectRefused):
            self.leases.put(replace(lease, due_at=self.parts.now()))  # the next run tries again
            raise
        return events.queue(lease.queue_name, "deleted", at=self.parts.now())

    def _end(self, lease: Lease, *, needed: NeededQueues) -> HistoryEvent | None:
        if lease.queue_name in needed():
            self.leases.end(lease)
            return None
        self.queues.delete(lease.queue_url)
        self.leases.end(lease)
        return events.queue(lease.queue_name, "deleted", at=self.parts.now())


@dataclass(frozen=True, slots=True)
class OrphanSweep:
    """Deletes client queues that a crash left without a lease, if they have the tags of this stage."""

    queue_leases: "QueueLeases"
    queues: "FoundQueues"
    cursor: "Cursor"
    parts: Parts
    stage: str

    def start(self) -> None:
        """Begin the search for orphans, or let the current one continue."""
        if self.cursor.position() is None:
            self.cursor.save(0)

    def delete_strays(self, *, prefix: str, age: timedelta, until: datetime) -> Iterator[SweptPart]:
        """Delete orphans, from the place of the search on, until `until`; do nothing if no search has begun."""
        position = self.cursor.position()
        if position is None:
            return
        for start in range(position, len(FIRST_CHARACTERS)):
            if self.parts.now() >= until:
                return
            self.cursor.save(start)
            for part in self.parts.each(self.queues.listed(prefix + FIRST_CHARACTERS[start]), until=until):
                # Read once a part, if a queue of it looks like an orphan.
                needed = cache(lambda: self.queue_leases.needed(now=self.parts.now()))
                step = partial(self._delete_stray, age=age, needed=needed, until=until)
                yield self.parts.swept(step, part)
        if self.parts.now() < until:
            self.cursor.clear()

    def _delete_stray(
        self,
        queue_url: QueueUrl,
        *,
        age: timedelta,
        needed: NeededQueues,
        until: datetime,
    ) -> HistoryEvent | None:
        name, modified_at, now = queue_name(queue_url), self.queues.modified_at(queue_url), self.parts.now()
        # The paced calls of a part can take longer than the function has; the next run repeats the part.
        if modified_at is None or now - modified_at < age or now >= until:
            return None
        if name in needed():
            return None  # the queue is old, but its client uses it again, or for longer than `age`
        if not is_ours(self.queues.tags(queue_url), stage=self.stage, capability=events.CAPABILITY):
            return None
        self.queues.delete(queue_url)
        return events.queue(name, "stray_deleted", at=self.parts.now())
