"""The status of exchanges and queues, with the states of `sr3 status`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from signalbox.exchange.control.presentation import time_text
from signalbox.exchange.model.records import (
    DeclaredQueue,
    ListedExchange,
    MinuteCounts,
    QueueActivity,
    QueueSize,
    ResourceRef,
    latest,
)

# The window of rates, rejects and retries, like sr3's between two housekeeping runs.
WINDOW = timedelta(minutes=5)
# The window in which the newest messages of a backlog are counted; counters are kept no longer.
HISTORY = timedelta(hours=2)
MINUTE = timedelta(minutes=1)
# sr3 3.3.1: runStateThreshold_…
LAGGING = timedelta(seconds=30)
IDLE = timedelta(seconds=900)
HUNG = timedelta(seconds=450)
REJECTED_SHARE = 0.8
RETRIES = 1000


class ResourceState(StrEnum):
    """The states of sr3 that a broker can observe. The first state that applies is reported."""

    MISSING = "missing"
    SHUTDOWN = "shutdown"
    HUNG = "hung"
    RETRY = "retry"
    LAGGING = "lagging"
    REJECT = "reject"
    IDLE = "idle"
    RUNNING = "running"


@dataclass(frozen=True, slots=True)
class Observation:
    """The observed data of an exchange or a queue: counters, oldest first, and SQS size, None without an SQS queue."""

    minutes: Sequence[MinuteCounts]
    size: QueueSize | None
    dead_letters: int = 0
    activity: QueueActivity = field(default_factory=QueueActivity)


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """The state, backlog and rates of an exchange or a queue."""

    resource: ResourceRef
    state: ResourceState
    size: QueueSize
    lag: timedelta
    rate_in: float
    rate_out: float | None
    total: MinuteCounts
    dead_letters: int
    last_activity: datetime | None
    last_consumer: datetime | None = None

    def as_document(self) -> dict[str, object]:
        """Return the result document of `status`: rates in messages a second, counts of the last five minutes."""
        return {
            "name": self.resource.name,
            "state": self.state.value,
            "ordered": self.resource.is_ordered,
            "queued": self.size.waiting + self.size.delayed,
            "in_flight": self.size.in_flight,
            "lag_seconds": round(self.lag.total_seconds(), 1),
            "rate_in": round(self.rate_in, 3),
            "rate_out": None if self.rate_out is None else round(self.rate_out, 3),
            "bytes_in": round(self.total.size_bytes / WINDOW.total_seconds(), 1),
            "rejects": self.total.rejected + self.total.dead,
            "retries": self.total.retried,
            "redelivered": self.total.redelivered,
            "dropped": self.total.dropped,
            "alternate": self.total.alternate,
            "dead_letters": self.dead_letters,
            "last_activity": time_text(self.last_activity),
            "last_consumer": time_text(self.last_consumer),
        }


def exchange_status(exchange: ListedExchange, seen: Observation, now: datetime) -> ResourceStatus:
    """Return the status of an exchange; its backlog is the messages that are not routed yet."""
    total, size = _total(seen.minutes, now), seen.size or QueueSize(0)
    lag = _routing_lag(exchange, seen, total, now)
    is_hung = size.waiting > 0 and not size.in_flight and lag > HUNG
    is_rejecting = _is_most(total.rejected, total.received)
    state = _state(exchange, seen, total, is_hung=is_hung, is_rejecting=is_rejecting, lag=lag, now=now)
    return _status(exchange, state, seen, total, lag=lag, rate_out=_rate(total.routed))


def queue_status(queue: DeclaredQueue, seen: Observation, now: datetime) -> ResourceStatus:
    """Return the status of a queue; its consumers' activity is known from heartbeats and SQS's metrics only."""
    total, size, removed = _total(seen.minutes, now), seen.size or QueueSize(0), seen.activity.removed
    lag = seen.activity.oldest or backlog_lag(seen.minutes, size.waiting, now)
    last_consumer = latest(queue.consumed_at, seen.activity.received_at)
    since_consumer = now - (last_consumer or queue.declared_at)
    # A message in flight proves a consumer, and a new message may wait for one that sends no heartbeats.
    is_hung = size.waiting > 0 and not size.in_flight and since_consumer > HUNG and lag > HUNG
    is_rejecting = _is_most(total.dead, total.received + total.dead)
    state = _state(queue, seen, total, is_hung=is_hung, is_rejecting=is_rejecting, lag=lag, now=now)
    rate_out = None if removed is None else _rate(removed)
    return _status(queue, state, seen, total, lag=lag, rate_out=rate_out, last_consumer=last_consumer)


def _status(
    record: ListedExchange | DeclaredQueue,
    state: ResourceState,
    seen: Observation,
    total: MinuteCounts,
    *,
    lag: timedelta,
    rate_out: float | None,
    last_consumer: datetime | None = None,
) -> ResourceStatus:
    return ResourceStatus(
        resource=record.resource,
        state=state,
        size=seen.size or QueueSize(0),
        lag=lag,
        rate_in=_rate(total.received),
        rate_out=rate_out,
        total=total,
        dead_letters=seen.dead_letters,
        last_activity=_last_activity(seen.minutes),
        last_consumer=last_consumer,
    )


def backlog_lag(minutes: Sequence[MinuteCounts], waiting: int, now: datetime) -> timedelta:
    """Estimate the age of the oldest waiting message, assuming that the newest received messages are waiting.

    Messages are assumed to arrive evenly within a minute. A backlog larger than the counted messages is reported as old
    as the counters.
    """
    if waiting <= 0:
        return timedelta(0)
    left = waiting
    for minute in reversed(minutes):
        if left <= minute.received:
            last_at = minute.last_at or minute.begins_at + MINUTE
            return max(timedelta(0), now - last_at + (left - 1) / minute.received * (last_at - minute.begins_at))
        left -= minute.received
    return HISTORY


def _routing_lag(exchange: ListedExchange, seen: Observation, total: MinuteCounts, now: datetime) -> timedelta:
    """Estimate the age of an exchange's oldest message: the backlog divided by the routing rate.

    Waiting messages are not counted until they are routed, so the counters do not show their age. If nothing is routed,
    they are assumed to wait since the last routed message.
    """
    waiting = seen.size.waiting if seen.size else 0
    if waiting == 0:
        return timedelta(0)
    if total.received:
        return waiting / total.received * WINDOW
    return now - (_last_activity(seen.minutes) or exchange.created_at)


def _state(
    record: ListedExchange | DeclaredQueue,
    seen: Observation,
    total: MinuteCounts,
    *,
    is_hung: bool,
    is_rejecting: bool,
    lag: timedelta,
    now: datetime,
) -> ResourceState:
    """Return the first state that applies, in the order of sr3."""
    last_activity = _last_activity(seen.minutes)
    applies = {
        ResourceState.SHUTDOWN: record.is_deleting,
        ResourceState.MISSING: seen.size is None,
        ResourceState.HUNG: is_hung,
        ResourceState.RETRY: total.retried > RETRIES,
        ResourceState.LAGGING: lag > LAGGING,
        ResourceState.REJECT: is_rejecting,
        ResourceState.IDLE: last_activity is None or now - last_activity > IDLE,
    }
    return next((state for state, is_so in applies.items() if is_so), ResourceState.RUNNING)


def _total(minutes: Iterable[MinuteCounts], now: datetime) -> MinuteCounts:
    recent = [minute for minute in minutes if minute.begins_at > now - WINDOW]
    return MinuteCounts(
        begins_at=now - WINDOW,
        received=sum(minute.received for minute in recent),
        routed=sum(minute.routed for minute in recent),
        dropped=sum(minute.dropped for minute in recent),
        alternate=sum(minute.alternate for minute in recent),
        rejected=sum(minute.rejected for minute in recent),
        retried=sum(minute.retried for minute in recent),
        dead=sum(minute.dead for minute in recent),
        redelivered=sum(minute.redelivered for minute in recent),
        size_bytes=sum(minute.size_bytes for minute in recent),
    )


def _rate(count: int) -> float:
    return count / WINDOW.total_seconds()


def _last_activity(minutes: Iterable[MinuteCounts]) -> datetime | None:
    return latest(*(minute.last_at for minute in minutes))


def _is_most(rejected: int, count: int) -> bool:
    return rejected > 0 and rejected >= REJECTED_SHARE * count
