"""What the exchange's control plane works with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.clock import Clock
from signalbox.errors import Contended
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.ports import (
    Bindings,
    Counters,
    ExchangeQueues,
    Exchanges,
    Mappings,
    Metrics,
    Queues,
    Sender,
    Users,
)
from signalbox.exchange.model.records import ResourceRef
from signalbox.exchange.model.routing_ports import ParallelMap, serial_map
from signalbox.history.event import HistoryEvent
from signalbox.queues import QueueName, QueueUrl


class ChangedMeanwhile(Contended):
    """Raised when an exchange or a queue is changed by somebody else at the same time."""

    @classmethod
    def of(cls, resource: ResourceRef) -> "ChangedMeanwhile":
        """Return the error for an exchange or a queue."""
        return cls(f"{resource} was changed by somebody else meanwhile: ask again")


@dataclass(frozen=True, slots=True)
class StageConfig:
    """What a stage is like; the times and the number of receives are those of the queues behind exchanges.

    `metrics_delay` is how late SQS's metrics may be: 5 minutes on AWS, and none where there are no metrics.
    """

    names: StageNames
    account: str
    region: str
    retention: timedelta = timedelta(days=4)
    visibility: timedelta = timedelta(seconds=180)
    maximum_receives: int = 5
    metrics_delay: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Store:
    """What is kept."""

    exchanges: Exchanges
    queues: Queues
    bindings: Bindings
    users: Users
    counters: Counters


@dataclass(frozen=True, slots=True)
class ControlPorts:
    """What the control plane works with; `record` takes history events, `parallel_map` has several looks at a time."""

    store: Store
    sqs: ExchangeQueues
    mappings: Mappings
    metrics: Metrics
    sender: Sender
    clock: Clock
    config: StageConfig
    queue_url: Callable[[QueueName], QueueUrl]
    record: Callable[[Sequence[HistoryEvent]], None]
    parallel_map: ParallelMap = serial_map

    @property
    def names(self) -> StageNames:
        """Return what things are called."""
        return self.config.names

    def now(self) -> datetime:
        """Return the current moment."""
        return self.clock.now()
