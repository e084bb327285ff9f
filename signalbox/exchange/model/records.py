"""What the stage keeps of exchanges, queues, bindings and users, and what it counts of their messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.patterns import Pattern
from signalbox.queues import QueueName, QueueUrl, is_fifo
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role

DEFAULT_PREFETCH = 25  # sr3's
DEFAULT_MAXIMUM_RECEIVES = 5


class ResourceKind(StrEnum):
    """What messages can be bound from and to."""

    EXCHANGE = "exchange"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True)
class ResourceRef:
    """An exchange or a queue, by name; one that there is or not."""

    kind: ResourceKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r}"

    @property
    def is_ordered(self) -> bool:
        """Say whether its messages keep their order."""
        return is_fifo(self.name)


@dataclass(frozen=True, slots=True)
class Retention:
    """How many events of a topic are kept, and for how long; None is no limit."""

    count: int | None = None
    age: timedelta | None = None


class OrderBy(StrEnum):
    """What keeps its order on a live exchange, beside each routing key: a publisher's messages, or all of them."""

    TOPIC = "topic"
    PUBLISHER = "publisher"
    EXCHANGE = "exchange"


@dataclass(frozen=True, slots=True)
class LiveSettings:
    """What is said of an exchange that connections may join.

    `anonymous` is the user as whom is joined without a secret, if that is allowed. `rules` are for the topics that
    begin so; `retention` is for the rest.
    """

    order_by: OrderBy = OrderBy.TOPIC
    anonymous: UserName | None = None
    retention: Retention = Retention(count=1_000, age=timedelta(hours=24))
    rules: Mapping[str, Retention] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Exchange:
    """An exchange as it is stored.

    `version` grows with every change of the record and of the bindings from it and to it, so that a router sees by it
    whether to read them again. `created_by` is None for the stage's administrators. One that `is_deleting` is being
    deleted and can be bound no more. With `live` it is a realm of WAMP, and ordered.
    """

    name: ExchangeName
    created_by: UserName | None
    created_at: datetime
    alternate: ExchangeName | None = None
    is_deleting: bool = False
    version: int = 1
    live: LiveSettings | None = None

    @property
    def resource(self) -> ResourceRef:
        """Return the exchange as something that can be bound."""
        return ResourceRef(ResourceKind.EXCHANGE, self.name)

    @property
    def order_by(self) -> OrderBy | None:
        """Return what keeps its order, or None when nothing does."""
        if self.live is not None:
            return self.live.order_by
        return OrderBy.TOPIC if self.resource.is_ordered else None


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """What may be said of a queue when it is declared."""

    expires: timedelta | None = None
    message_ttl: timedelta | None = None
    prefetch: int = DEFAULT_PREFETCH
    maximum_receives: int = DEFAULT_MAXIMUM_RECEIVES


@dataclass(frozen=True, slots=True)
class DeclaredQueue:
    """A queue as it is stored. `owner` is None for the stage's administrators; `version` grows with every change.

    `declared_at` is when it was declared last, `consumed_at` when a consumer gave its last sign of life.
    """

    name: DeclaredName
    owner: UserName | None
    created_at: datetime
    declared_at: datetime
    consumed_at: datetime | None = None
    settings: QueueSettings = field(default_factory=QueueSettings)
    is_deleting: bool = False
    version: int = 1

    @property
    def resource(self) -> ResourceRef:
        """Return the queue as something that can be bound."""
        return ResourceRef(ResourceKind.QUEUE, self.name)


@dataclass(frozen=True, slots=True)
class Binding:
    """A binding: what is published to `exchange` under a key that matches goes to `target`, too."""

    exchange: ExchangeName
    target: ResourceRef
    pattern: Pattern


class BindOutcome(StrEnum):
    """What came of a wish to bind."""

    BOUND = "bound"
    ALREADY_BOUND = "already bound"
    REFUSED = "refused"  # one of its ends does not exist or is being deleted


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with an identity in IAM; `user_id` begins what SQS has as the SenderId of messages."""

    name: UserName
    role: Role
    ownership: Ownership
    created_at: datetime
    user_id: str


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """How a queue in SQS is to be; `resource` is what it stands behind, and stands in its tags."""

    name: QueueName
    resource: ResourceRef
    retention: timedelta
    visibility: timedelta
    maximum_receives: int


@dataclass(frozen=True, slots=True)
class CreatedQueue:
    """A queue as SQS has it."""

    name: QueueName
    url: QueueUrl


@dataclass(frozen=True, slots=True)
class QueueSize:
    """How many messages a queue in SQS holds, about: SQS counts within a minute or so."""

    waiting: int
    in_flight: int = 0
    delayed: int = 0

    @property
    def total(self) -> int:
        """Return how many messages would be lost with the queue."""
        return self.waiting + self.in_flight + self.delayed


@dataclass(frozen=True, slots=True)
class QueueActivity:
    """What consumers did with a queue in SQS lately, as its metrics tell: late, and not at all on some stages.

    `received_at` is when somebody last asked for messages, `removed` how many were deleted, `oldest` how long the one
    that waits longest has waited.
    """

    received_at: datetime | None = None
    removed: int | None = None
    oldest: timedelta | None = None


@dataclass(frozen=True, slots=True)
class MinuteCounts:
    """What was counted of an exchange or a queue in one minute; a queue's `received` is what was put into it."""

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
    """Return the last of the moments that are known, or None."""
    return max((moment for moment in moments if moment is not None), default=None)
