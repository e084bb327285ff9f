"""The stores, ports and settings of the exchange's control plane."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.errors import Contended, UnavailableError
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.ports import (
    Bindings,
    Counters,
    ExchangeQueues,
    Exchanges,
    Mappings,
    Metrics,
    Queues,
    Users,
)
from signalbox.exchange.model.records import ExchangeRecord, ResourceRef
from signalbox.history.event import HistoryEvent
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName, QueueUrl
from signalbox.sarracenia.rights.names import ExchangeName

CONNECTED_FOR = timedelta(minutes=1)  # that an instance does not look again
DELETING = timedelta(seconds=15)  # of the 30 seconds that the function has for a command


class ChangedMeanwhile(Contended):
    """Raised when an exchange or a queue was changed concurrently; the command can be retried."""

    @classmethod
    def of(cls, resource: ResourceRef) -> "ChangedMeanwhile":
        """Return the error for an exchange or a queue."""
        return cls(f"{resource} was changed by another command at the same time: retry")


class RealmLeft(UnavailableError):
    """Raised when a realm has more events than one command deletes; the command can be repeated."""


@dataclass(frozen=True, slots=True)
class StageConfig:
    """The settings of a stage. The times are those of the queues behind exchanges.

    `metrics_delay` is how late SQS's metrics may be: 20 minutes on AWS, zero on the local stage. `user_quota` is the
    number of queues that a source or subscriber may declare, who may declare a fifth as many exchanges.
    """

    names: StageNames
    account: str
    region: str
    retention: timedelta = timedelta(days=4)
    visibility: timedelta = timedelta(seconds=90)
    metrics_delay: timedelta = timedelta(minutes=20)
    user_quota: int = 100


@dataclass(frozen=True, slots=True)
class ExchangeStore:
    """The stored records. `left` are deleted exchanges and queues whose dead-letter queues have messages."""

    exchanges: Exchanges
    queues: Queues
    left: Queues
    bindings: Bindings
    users: Users


@dataclass(frozen=True, slots=True)
class ControlPorts:
    """The ports of the control plane. `record` writes history events; `parallel_map` runs independent reads.

    `end_realm` ends the sessions, rights and log of the realm of a name, and returns whether nothing is left of it.
    `connected` has the creation of each exchange that this instance found connected to the router, and when.
    """

    store: ExchangeStore
    counters: Counters
    sqs: ExchangeQueues
    mappings: Mappings
    metrics: Metrics
    now: Callable[[], datetime]
    config: StageConfig
    queue_url: Callable[[QueueName], QueueUrl]
    record: Callable[[Sequence[HistoryEvent]], None]
    end_realm: Callable[[ExchangeName], bool]
    parallel_map: ParallelMap = serial_map
    connected: dict[ExchangeName, tuple[datetime, datetime]] = field(default_factory=dict)

    @property
    def names(self) -> StageNames:
        """Return the names of the stage's resources."""
        return self.config.names

    def was_connected(self, exchange: ExchangeRecord, *, at: datetime) -> bool:
        """Return whether the instance has lately found the queue of an exchange connected to the router."""
        created_at, seen_at = self.connected.get(exchange.name, (None, at))
        return created_at == exchange.created_at and at - seen_at < CONNECTED_FOR

    def leave_nothing_of(self, exchange: ExchangeRecord) -> None:
        """Delete the data of an unused exchange, which a later exchange of its name must not have. Raises `RealmLeft`.

        The heads of an exchange that is not live end by themselves; a later exchange of its name continues the numbers.
        The deletion is repeated before an exchange is created: a router that began a batch before the first one may
        write the batch's events after it. SQS refuses a deleted queue's name for a minute, longer than a batch takes.
        """
        if not exchange.resource.is_ordered:
            return
        until, name = self.now() + DELETING, exchange.name
        is_empty = self.end_realm(name)
        if exchange.live is not None:
            is_empty &= self.store.exchanges.delete_heads(name, is_over=lambda: self.now() >= until)
        if not is_empty:
            raise RealmLeft(f"the events of {exchange.resource} are being deleted: send the command again")
