"""Commands to the exchange's control queues. The docstring of each says its fields and its result, both JSON."""

from dataclasses import dataclass
from datetime import timedelta

from signalbox.exchange.control.live_settings import LiveSettingsPatch
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import Binding, QueueSettings
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName


@dataclass(frozen=True, slots=True)
class DeclareExchange:
    """`declare_exchange {exchange, alternate?, live?, order_by?, anonymous?, retention?, rules?}`.

    Left out, `alternate` stays as it is, and "" takes it away. With `live`, connections may join an ordered exchange:
    `order_by` is topic, publisher or exchange, `anonymous` whom anybody joins as ("": nobody), `retention` {count?,
    age_seconds?} how long the events of a topic are kept (0: for ever), and `rules` are retentions by the beginning of
    topics. What is left out stays, or has its default (topic, nobody, 1,000 events of 24 h, none).
    Result: {exchange, ordered, alternate, created_by, created_at, live: {order_by, anonymous, retention, rules} or
    null, sqs_name, url, connected}. Until it is `connected` to the router, messages wait.
    """

    exchange: ExchangeName
    alternate: ExchangeName | None
    removes_alternate: bool = False
    live: LiveSettingsPatch | None = None


@dataclass(frozen=True, slots=True)
class DeleteExchange:
    """`delete_exchange {exchange, force?}`: refused while it is bound, holds messages or is an alternate.

    Result: {exchange, deleted, unbound: [binding], lost, dead_letters: {sqs_name, url, waiting} or null}. `deleted` is
    false if there was none. `lost` is how many messages went with it, about; a dead-letter queue that holds some stays.
    """

    exchange: ExchangeName
    force: bool


@dataclass(frozen=True, slots=True)
class QueueSettingsPatch:
    """Settings as a command has them: what is None stays as it is, and a time of 0 takes the setting away."""

    expires: timedelta | None = None
    message_ttl: timedelta | None = None
    prefetch: int | None = None
    maximum_receives: int | None = None

    def apply_to(self, settings: QueueSettings) -> QueueSettings:
        """Return settings with what is wished."""
        return QueueSettings(
            expires=_patched(self.expires, settings.expires),
            message_ttl=_patched(self.message_ttl, settings.message_ttl),
            prefetch=self.prefetch or settings.prefetch,
            maximum_receives=self.maximum_receives or settings.maximum_receives,
        )


@dataclass(frozen=True, slots=True)
class DeclareQueue:
    """`declare_queue {queue, expires_seconds?, message_ttl_seconds?, prefetch?, maximum_receives?}`.

    What is left out stays as it is, or has its default in a new queue (never, never, 25, 5); 0 seconds are never.
    Result: {queue, sqs_name, url, ordered, owner, created_at, consumed_at, expires_seconds, message_ttl_seconds,
    prefetch, maximum_receives}, with null for never.
    """

    queue: DeclaredName
    patch: QueueSettingsPatch


@dataclass(frozen=True, slots=True)
class DeleteQueue:
    """`delete_queue {queue, if_empty?}`: its bindings and its messages go with it.

    Result: {queue, deleted, unbound: [binding], lost, dead_letters}, as of an exchange.
    """

    queue: DeclaredName
    if_empty: bool


@dataclass(frozen=True, slots=True)
class Bind:
    """`bind {exchange, queue or destination, pattern}`; `destination` is another exchange.

    Result: {exchange, queue or destination, pattern, bound: true}.
    """

    binding: Binding


@dataclass(frozen=True, slots=True)
class Unbind:
    """`unbind`, with the fields of `bind`. Result: the binding, and `unbound`: whether it was there."""

    binding: Binding


@dataclass(frozen=True, slots=True)
class ListExchanges:
    """`exchanges {}`. Result: what the user may read, each as declared; `connected` is left out."""


@dataclass(frozen=True, slots=True)
class ListQueues:
    """`queues {}`. Result: what the user may read, each as declared."""


@dataclass(frozen=True, slots=True)
class ListBindings:
    """`bindings {exchange?}`. Result: [{exchange, queue or destination, pattern}] between what the user may read."""

    exchange: ExchangeName | None


@dataclass(frozen=True, slots=True)
class Publish:
    """`publish {exchange, routing_key, body, headers?}`. Result: {exchange, routing_key, message_id}.

    On an ordered exchange, the same user's command of the same `id` is published once.
    """

    exchange: ExchangeName
    properties: MessageProperties
    request_id: str


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeat:
    """`consuming {queue}`: a consumer's sign of life. Result: as declared."""

    queue: DeclaredName


@dataclass(frozen=True, slots=True)
class WhoAmI:
    """`whoami {}`. Result: {user, role, ownership, stage, exchange_prefix, account, region} (null: administrator)."""


@dataclass(frozen=True, slots=True)
class ReplayedMessage:
    """A message that was published before, as it was then; without a publisher, it is who replays it."""

    exchange: ExchangeName
    properties: MessageProperties
    message_id: MessageId
    publisher: str | None
    published_at: int


@dataclass(frozen=True, slots=True)
class Replay:
    """`replay {queue, messages: [{exchange, routing_key, body, headers?, message_id, publisher?, published_at}]}`.

    The messages, 100 at most, are put into the queue as if they were routed there; `published_at` is in milliseconds.
    Result: {queue, delivered, failed: [message_id]}, the latter to be asked for again.
    """

    queue: DeclaredName
    messages: tuple[ReplayedMessage, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """`status {names?}`: of all that the user may read, or of what has one of the names; `q_a*` begins many.

    Result: {exchanges: […], queues: […]}, see `signalbox.exchange.control.status`; refused for more than 500 in all.
    """

    names: tuple[str, ...] = ()


Command = (
    DeclareExchange
    | DeleteExchange
    | DeclareQueue
    | DeleteQueue
    | Bind
    | Unbind
    | ListExchanges
    | ListQueues
    | ListBindings
    | Publish
    | ConsumerHeartbeat
    | WhoAmI
    | Replay
    | Status
)


def _patched(patch: timedelta | None, found: timedelta | None) -> timedelta | None:
    return found if patch is None else patch or None
