"""Commands to the exchange's control queues. Each docstring states the JSON fields and the JSON result."""

from dataclasses import dataclass
from datetime import timedelta

from signalbox.exchange.control.live_settings import LiveSettingsPatch
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import Binding, GroupBy, QueueSettings
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role


class Command:
    """A command to a control queue of the exchange."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class DeclareExchange(Command):
    """`declare_exchange {exchange, alternate?, live?}`, and for a live exchange the fields below, all optional.

    Without `alternate` the alternate stays unchanged; "" removes it. With `live`, connections may join an ordered
    exchange: `order_by` is topic, publisher or exchange; `anonymous` is the user of connections without a secret (""
    refuses them); `retention` {count?, age_seconds?} limits the events of a topic (0: no limit); `rules` maps topic
    prefixes to retentions; `issuers` are up to five {url, audience, label?, name_claim?, role_claim?, groups_claim?,
    skew_seconds?, client_id?, origins?}; `arvados` makes the exchange the stage's realm of Arvados' clients, and
    `arvados_api` is the URL of the cluster that verifies its own tokens ("" accepts none). Missing fields stay
    unchanged, or get their defaults (topic, "", 1,000 events of 24 h, none, none, false, ""). Result: {exchange,
    ordered, alternate, created_by, created_at, live: {order_by, anonymous, retention, rules, issuers, arvados,
    arvados_api} or null, sqs_name, url, connected}. Messages wait until the exchange is `connected` to the router.
    """

    exchange: ExchangeName
    alternate: ExchangeName | None
    removes_alternate: bool = False
    live: LiveSettingsPatch | None = None


@dataclass(frozen=True, slots=True)
class DeleteExchange(Command):
    """`delete_exchange {exchange, force?}`: refused while it is bound, holds messages or is an alternate.

    Result: {exchange, deleted, unbound: [binding], lost, dead_letters: {sqs_name, url, waiting} or null}. `deleted` is
    false if it did not exist. `lost` is the approximate number of lost messages. A dead-letter queue with messages is
    kept and is `dead_letters`.
    """

    exchange: ExchangeName
    force: bool


@dataclass(frozen=True, slots=True)
class QueueSettingsPatch:
    """Changes of a queue's settings: None keeps a setting, and a time of 0 removes it."""

    expires: timedelta | None = None
    message_ttl: timedelta | None = None
    prefetch: int | None = None
    maximum_receives: int | None = None
    group_by: GroupBy | None = None

    def apply_to(self, settings: QueueSettings) -> QueueSettings:
        """Return settings with these changes."""
        return QueueSettings(
            expires=_patched(self.expires, settings.expires),
            message_ttl=_patched(self.message_ttl, settings.message_ttl),
            prefetch=self.prefetch or settings.prefetch,
            maximum_receives=self.maximum_receives or settings.maximum_receives,
            keep=settings.keep,
            group_by=self.group_by or settings.group_by,
        )


@dataclass(frozen=True, slots=True)
class DeclareQueue(Command):
    """`declare_queue {queue, expires_seconds?, message_ttl_seconds?, prefetch?, maximum_receives?, group_by?}`.

    Missing fields stay unchanged, or get their defaults in a new queue (never, never, 25, 5, publisher); 0 seconds is
    never.
    Result: {queue, sqs_name, url, ordered, owner, created_at, consumed_at, expires_seconds, message_ttl_seconds,
    prefetch, maximum_receives, group_by}, with null for never.
    """

    queue: DeclaredName
    patch: QueueSettingsPatch


@dataclass(frozen=True, slots=True)
class DeleteQueue(Command):
    """`delete_queue {queue, if_empty?}`: deletes a queue with its bindings and messages.

    Result: {queue, deleted, unbound: [binding], lost, dead_letters}, as for an exchange.
    """

    queue: DeclaredName
    if_empty: bool


@dataclass(frozen=True, slots=True)
class Bind(Command):
    """`bind {exchange, queue or destination, pattern}`; `destination` is another exchange.

    Result: {exchange, queue or destination, pattern, bound: true}.
    """

    binding: Binding


@dataclass(frozen=True, slots=True)
class Unbind(Command):
    """`unbind`, with the fields of `bind`. Result: the binding, and in `unbound` whether it existed."""

    binding: Binding


@dataclass(frozen=True, slots=True)
class UnbindUser(Command):
    """`unbind_user {user, role?, ownership?}`, for administrators: remove bindings to a user's queues and exchanges.

    The names of queues and exchanges state their user. If the user was removed, all bindings are removed; otherwise
    those from exchanges that the user could read with the earlier `role` and `ownership` and cannot read now. Result:
    {user, unbound: [binding], queues, exchanges}, with the queues and exchanges that stay.
    """

    user: UserName
    role: Role = Role.SUBSCRIBER
    ownership: Ownership = Ownership.STRICT


@dataclass(frozen=True, slots=True)
class ListExchanges(Command):
    """`exchanges {exchange?}`. Result: the exchanges that the user may read, or one of them with its live settings."""

    exchange: ExchangeName | None = None


@dataclass(frozen=True, slots=True)
class ListQueues(Command):
    """`queues {}`. Result: the queues that the user may read, each as declared."""


@dataclass(frozen=True, slots=True)
class ListBindings(Command):
    """`bindings {exchange?}`. Result: [{exchange, queue or destination, pattern}] of resources the user may read."""

    exchange: ExchangeName | None


@dataclass(frozen=True, slots=True)
class PublishMessage(Command):
    """`publish {exchange, routing_key, body, headers?}`. Result: {exchange, routing_key, message_id}.

    An ordered exchange publishes repeated commands of a user with the same `id` once.
    """

    exchange: ExchangeName
    properties: MessageProperties
    request_id: str


@dataclass(frozen=True, slots=True)
class ConsumerHeartbeat(Command):
    """`consuming {queue}`: a consumer's heartbeat. Result: the queue, as declared."""

    queue: DeclaredName


@dataclass(frozen=True, slots=True)
class WhoAmI(Command):
    """`whoami {}`. Result: {user, role, ownership, stage, exchange_prefix, account, region}; null: no user."""


@dataclass(frozen=True, slots=True)
class ReplayedMessage:
    """An earlier published message. Administrators may name the `publisher`; otherwise it is the caller."""

    exchange: ExchangeName
    properties: MessageProperties
    message_id: MessageId
    publisher: str | None
    published_at: int


@dataclass(frozen=True, slots=True)
class ReplayMessages(Command):
    """`replay {queue, messages: [{exchange, routing_key, body, headers?, message_id, publisher?, published_at}]}`.

    Sends up to 100 messages to the queue as if they were routed there; `published_at` is in milliseconds since 1970.
    Result: {queue, delivered, failed: [message_id]}; the failed ones can be sent again.
    """

    queue: DeclaredName
    messages: tuple[ReplayedMessage, ...]


@dataclass(frozen=True, slots=True)
class Status(Command):
    """`status {names?}`: of all resources that the user may read, or of those that match a name; `q_a*` is a prefix.

    Result: {exchanges: […], queues: […]}, see `signalbox.exchange.control.status`; refused for more than 500 in all.
    """

    names: tuple[str, ...] = ()


def _patched(patch: timedelta | None, found: timedelta | None) -> timedelta | None:
    return found if patch is None else patch or None
