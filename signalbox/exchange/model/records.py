"""The stored records of exchanges, queues, bindings and users, and the counters of their messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.patterns import Pattern
from signalbox.queues import is_fifo
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role

DEFAULT_PREFETCH = 25  # the default of sr3
DEFAULT_MAXIMUM_RECEIVES = 5


class ResourceKind(StrEnum):
    """The kinds of resources that a binding connects."""

    EXCHANGE = "exchange"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """The kind and name of an exchange or a queue, whether or not it exists."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    @property
    def is_ordered(self) -> bool:
        """Return whether the resource keeps the order of its messages, as FIFO queues do."""
        return is_fifo(self.name)


@dataclass(frozen=True, slots=True)
class Retention:
    """How many events of a topic a live exchange keeps, and for how long; None is no limit."""

    count: int | None = None
    age: timedelta | None = None


class GroupBy(StrEnum):
    """The message groups of copies in a standard queue, among which SQS's fair queues divide its consumers."""

    PUBLISHER = "publisher"
    TOPIC = "topic"


class OrderBy(StrEnum):
    """The order that a live exchange keeps: of each routing key, each publisher or all messages.

    The order of a routing key is always kept. With `PUBLISHER`, which is WAMP's guarantee, a publisher chooses its
    message groups; those of sessions are their connections.
    """

    TOPIC = "topic"
    PUBLISHER = "publisher"
    EXCHANGE = "exchange"


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """The settings of an exchange that connections may join.

    `anonymous` is the user of connections without a secret; None refuses them. `rules` maps topic prefixes to their
    retention; `retention` is for all other topics. `issuers` are the identity providers whose users may join. With
    `arvados`, clients of Arvados join this realm of the stage; `arvados_api` is the URL of the cluster that verifies
    the tokens that it issued itself, or "". `earlier` has the longest age before the last change of retention: events
    of that time may still be in the logs.
    """

    order_by: OrderBy = OrderBy.PUBLISHER
    anonymous: UserName | None = None
    retention: Retention = Retention(count=1_000, age=timedelta(hours=24))
    rules: Mapping[str, Retention] = field(default_factory=dict, hash=False)
    issuers: tuple[Issuer, ...] = ()
    arvados: bool = False
    arvados_api: str = ""
    earlier: tuple[Retention, ...] = ()

    @property
    def longest_age(self) -> timedelta | None:
        """Return the age that no event of any log exceeds; None is no limit."""
        ages = [one.age for one in (self.retention, *self.rules.values(), *self.earlier)]
        limits = [age for age in ages if age is not None]
        return max(limits) if len(limits) == len(ages) else None


@dataclass(frozen=True, slots=True)
class ListedExchange:
    """What lists show of an exchange: without its settings, of which one user could fill the lists of all users."""

    name: ExchangeName
    created_by: UserName | None
    created_at: datetime
    alternate: ExchangeName | None = None
    is_deleting: bool = False
    is_live: bool = False

    @property
    def resource(self) -> ResourceRef:
        """Return the reference of the exchange."""
        return ResourceRef(ResourceKind.EXCHANGE, self.name)

    @property
    def owner(self) -> UserName | None:
        """Return the user whose quota has the exchange."""
        return self.created_by


@dataclass(frozen=True, slots=True)
class ExchangeRecord:
    """The stored record of an exchange.

    `version` grows with every change of the record and of the bindings from it and to it, so that a router detects
    changes. `created_by` is None for the stage's administrators. While `is_deleting` is set, no new binding can be
    made. With `live` set, the exchange is ordered and a WAMP realm; `earlier` is that of an exchange that was one.
    `changed_at` is when the newest of the commands that changed its settings was sent.
    """

    name: ExchangeName
    created_by: UserName | None
    created_at: datetime
    alternate: ExchangeName | None = None
    is_deleting: bool = False
    version: int = 1
    live: LiveSettings | None = None
    earlier: tuple[Retention, ...] = ()
    changed_at: datetime | None = None

    @property
    def resource(self) -> ResourceRef:
        """Return the reference of the exchange."""
        return ResourceRef(ResourceKind.EXCHANGE, self.name)

    @property
    def owner(self) -> UserName | None:
        """Return the user whose quota has the exchange."""
        return self.created_by

    @property
    def listed(self) -> ListedExchange:
        """Return the entry in lists."""
        is_live = self.live is not None
        return ListedExchange(
            self.name, self.created_by, self.created_at, self.alternate, self.is_deleting, is_live=is_live
        )

    @property
    def order_by(self) -> OrderBy | None:
        """Return the order that the exchange keeps, or None for a standard exchange."""
        if self.live is not None:
            return self.live.order_by
        return OrderBy.TOPIC if self.resource.is_ordered else None


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """The settings of a declared queue. For `keep` the router keeps its messages (`signalbox.kept.settings`)."""

    expires: timedelta | None = None
    message_ttl: timedelta | None = None
    prefetch: int = DEFAULT_PREFETCH
    maximum_receives: int = DEFAULT_MAXIMUM_RECEIVES
    keep: timedelta | None = None
    group_by: GroupBy = GroupBy.PUBLISHER


@dataclass(frozen=True, slots=True)
class DeclaredQueue:
    """The stored record of a queue. `owner` is None for the administrators; `version` grows with every change.

    `declared_at` is the time of the last declaration, `consumed_at` that of the last consumer heartbeat, and
    `dead_letters` the number when they were last recorded in the history.
    """

    name: DeclaredName
    owner: UserName | None
    created_at: datetime
    declared_at: datetime
    consumed_at: datetime | None = None
    settings: QueueSettings = field(default_factory=QueueSettings)
    is_deleting: bool = False
    version: int = 1
    dead_letters: int = 0

    @property
    def resource(self) -> ResourceRef:
        """Return the reference of the queue."""
        return ResourceRef(ResourceKind.QUEUE, self.name)


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding: `target` gets the messages of `exchange` whose routing keys match `pattern`."""

    exchange: ExchangeName
    target: ResourceRef
    pattern: Pattern


class BindOutcome(StrEnum):
    """The result of storing a binding."""

    BOUND = "bound"
    ALREADY_BOUND = "already bound"
    REFUSED = "refused"  # an end of the binding does not exist or is being deleted


@dataclass(frozen=True, slots=True)
class User:
    """A user; the SenderId of the user's SQS messages begins with `user_id`, the unique id of the IAM identity.

    A live-only user has neither an IAM identity nor a control queue, and only joins realms. Commands that were sent
    before `commands_from`, the last rotation, are refused: SQS delivers them up to 15 minutes after a key is deleted.
    """

    name: UserName
    role: Role
    ownership: Ownership
    created_at: datetime
    user_id: str | None
    commands_from: datetime | None = None

    @property
    def is_live_only(self) -> bool:
        """Return whether the user only joins realms."""
        return self.user_id is None


@dataclass(frozen=True, slots=True)
class QueueSize:
    """The approximate number of messages in an SQS queue, which SQS counts with a delay of about a minute."""

    waiting: int
    in_flight: int = 0
    delayed: int = 0

    @property
    def total(self) -> int:
        """Return the number of messages that deleting the queue would lose."""
        return self.waiting + self.in_flight + self.delayed


@dataclass(frozen=True, slots=True)
class QueueActivity:
    """The activity of consumers by SQS's CloudWatch metrics, which are late and missing at first.

    `received_at` is the last time that a consumer polled, `removed` the number of deleted messages, `oldest` the age of
    the oldest waiting message.
    """

    received_at: datetime | None = None
    removed: int | None = None
    oldest: timedelta | None = None

    @property
    def is_measured(self) -> bool:
        """Return whether SQS has published any value; it may publish none for the first minutes of a queue's use."""
        return self.removed is not None or self.oldest is not None


@dataclass(frozen=True, slots=True)
class MinuteCounts:
    """The counters of an exchange or a queue in one minute; a queue's `received` counts the copies sent to it."""

    begins_at: datetime
    received: int = 0
    routed: int = 0
    dropped: int = 0
    alternate: int = 0
    rejected: int = 0
    retried: int = 0
    dead: int = 0
    redelivered: int = 0
    size_bytes: int = 0
    last_at: datetime | None = None


def latest(*moments: datetime | None) -> datetime | None:
    """Return the latest of the given moments that are not None, or None."""
    return max((moment for moment in moments if moment is not None), default=None)
