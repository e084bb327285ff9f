"""The declaration of exchanges and queues: creates them, or changes their settings.

The SQS queue is created before the record, so that every record has its queue; the queue of an interrupted declaration
is found by the next one. An exchange is connected to the router last: messages wait until then, since the router cannot
route without a record. Who declares it again within a minute causes no call of SQS or Lambda, which has 15 a second
for such calls of a whole account.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.control.delivery import ONCE, CommandDelivery
from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.control.caller import Caller
from signalbox.exchange.control.commands import DeclareExchange, DeclareQueue
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.control.live_settings import LiveSettingsPatch
from signalbox.exchange.control.presentation import Presenter
from signalbox.exchange.control.quotas import refuse_declaration
from signalbox.exchange.model import events
from signalbox.exchange.model.control_ports import ChangedMeanwhile, ControlPorts
from signalbox.exchange.model.names import dead_letter_problem, exchange_name_problem
from signalbox.exchange.model.ports import QueueSpec
from signalbox.exchange.model.records import (
    DeclaredQueue,
    ExchangeRecord,
    QueueSettings,
    ResourceKind,
    ResourceRef,
    Retention,
    latest,
)
from signalbox.sarracenia.rights.names import ExchangeName
from signalbox.sarracenia.rights.permissions import Right, Role

MINIMUM_RETENTION = timedelta(seconds=60)  # SQS
MAXIMUM_RETENTION = timedelta(days=14)  # SQS
# The time for which a consumer holds a batch, unless it sets another with its receive call.
QUEUE_VISIBILITY = timedelta(seconds=60)


class NameNotAllowed(RejectedError):
    """Raised when the name of a new exchange or queue is reserved or too long."""


class ArvadosRealmTaken(RejectedError):
    """Raised when a second exchange of a stage is declared as the realm of Arvados' clients."""


class BeingDeleted(UnavailableError):
    """Raised when an exchange or a queue is declared while it is being deleted."""


@dataclass(frozen=True, slots=True)
class DeclarationService:
    """Declares exchanges and queues for a caller."""

    ports: ControlPorts
    caller: Caller
    delivery: CommandDelivery = ONCE

    def exchange(self, command: DeclareExchange) -> object:
        """Declare an exchange; return its document. Raises `RejectedError` and `UnavailableError`."""
        resource = ResourceRef(ResourceKind.EXCHANGE, command.exchange)
        self._check_exchange(command, resource)
        stored = self.ports.store.exchanges.find(command.exchange)
        _refuse_deleting(stored)
        if command.live is not None and command.live.arvados:
            self._make_arvados_realm(command.exchange)
        if stored is None:
            refuse_declaration(self.caller, resource, self.ports)
        if stored is not None and self.ports.was_connected(stored, at=self.ports.now()):
            return self._exchange_document(self._stored_exchange(command, stored), is_connected=True)
        wanted = replace(exchange_queue_spec(command.exchange, self.ports), is_on_record=stored is not None)
        self.ports.sqs.make(wanted)
        if stored is None:  # before the record, so that every exchange on record has its retry queue
            self.ports.mappings.connect(self.ports.names.retry_queue(command.exchange))
        stored = self._stored_exchange(command, stored)
        is_connected = self.ports.mappings.connect(wanted.name)
        if self._is_deleting(command.exchange):
            # It was deleted since the record was read, perhaps just before it was connected.
            self.ports.mappings.disconnect(wanted.name)
            raise BeingDeleted(f"{resource} was deleted while it was declared: retry")
        if is_connected:
            self.ports.connected[stored.name] = stored.created_at, self.ports.now()
        return self._exchange_document(stored, is_connected=is_connected)

    def _exchange_document(self, stored: ExchangeRecord, *, is_connected: bool) -> object:
        document = Presenter(self.ports.names, self.ports.queue_url).exchange(stored)
        return {**document, "connected": is_connected}

    def queue(self, command: DeclareQueue) -> object:
        """Declare a queue; return its document. Raises `RejectedError` and `UnavailableError`."""
        resource = ResourceRef(ResourceKind.QUEUE, command.queue)
        self.caller.require((Right.CONFIGURE, resource))
        _refuse_name(resource, dead_letter_problem(resource.name))
        stored = self.ports.store.queues.find(command.queue)
        _refuse_deleting(stored)
        if stored is None:
            refuse_declaration(self.caller, resource, self.ports)
        settings = command.patch.apply_to(stored.settings if stored else QueueSettings())
        wanted = declared_queue_spec(resource, settings, self.ports)
        self.ports.sqs.make(replace(wanted, is_on_record=stored is not None))
        queue = self._stored_queue(command, stored, settings)
        return Presenter(self.ports.names, self.ports.queue_url).queue(queue)

    def _check_exchange(self, command: DeclareExchange, resource: ResourceRef) -> None:
        if command.alternate is None:
            self.caller.require((Right.CONFIGURE, resource))
        else:  # as in RabbitMQ, where unrouted messages are read from the exchange and written to its alternate
            alternate = ResourceRef(ResourceKind.EXCHANGE, command.alternate)
            self.caller.require((Right.CONFIGURE, resource), (Right.READ, resource), (Right.WRITE, alternate))
            if self._is_deleting(command.alternate):
                raise NotFound(f"{alternate} does not exist: declare it before it becomes an alternate", alternate)
        if command.live is not None:
            self._check_anonymous(command.live)
            self._check_issuers(command.live)
            self._check_arvados(command.live)
        _refuse_name(resource, exchange_name_problem(command.exchange, prefix=self.ports.names.prefix))

    def _check_anonymous(self, live: LiveSettingsPatch) -> None:
        if not live.anonymous:
            return
        # An anonymous connection has all rights of that user, which the owner of an exchange cannot grant.
        if self.caller.role is not Role.ADMIN:
            raise NotPermitted(f"only administrators may set 'anonymous' to user {str(live.anonymous)!r}")
        if self.ports.store.users.find(live.anonymous) is None:
            raise NotFound(
                f"user {str(live.anonymous)!r} of 'anonymous' does not exist: have an administrator add the user"
            )

    def _check_issuers(self, live: LiveSettingsPatch) -> None:
        # A function of the stage fetches an issuer's keys, and its users join without being users of the stage.
        if live.issuers and self.caller.role is not Role.ADMIN:
            raise NotPermitted("only administrators may set 'issuers'")

    def _check_arvados(self, live: LiveSettingsPatch) -> None:
        # All clients of Arvados join one realm, so its owner would decide what they receive.
        if live.arvados is not None and self.caller.role is not Role.ADMIN:
            raise NotPermitted("only administrators may set 'arvados'")
        # A function of the stage sends tokens to this URL, and its users join without being users of the stage.
        if live.arvados_api is not None and self.caller.role is not Role.ADMIN:
            raise NotPermitted("only administrators may set 'arvados_api'")

    def _make_arvados_realm(self, exchange: ExchangeName) -> None:
        """Make an exchange the realm of Arvados' clients, unless another exchange is. Raises `RejectedError`."""
        exchanges = self.ports.store.exchanges
        name = exchanges.arvados_realm()
        other = exchanges.find(name) if name and name != exchange else None
        if other is not None and other.live is not None and other.live.arvados:
            raise ArvadosRealmTaken(
                f"exchange {str(name)!r} is the realm of Arvados' clients: declare that one with arvados = false first"
            )
        if name != exchange and not exchanges.make_arvados_realm(exchange, replacing=name):
            raise ChangedMeanwhile.of(ResourceRef(ResourceKind.EXCHANGE, exchange))

    def _is_deleting(self, name: ExchangeName) -> bool:
        found = self.ports.store.exchanges.find(name)
        return found is None or found.is_deleting

    def _stored_exchange(self, command: DeclareExchange, stored: ExchangeRecord | None) -> ExchangeRecord:
        exchanges, now = self.ports.store.exchanges, self._now()
        if stored is None:
            live = command.live.apply_to(None) if command.live else None
            new = ExchangeRecord(
                command.exchange, self.caller.name, now, command.alternate, live=live, changed_at=self.delivery.sent_at
            )
            self.ports.leave_nothing_of(new)
            if not exchanges.create(new):
                raise ChangedMeanwhile.of(new.resource)
            self.ports.record([events.declared(new, user=self.caller.name, at=now)])
            return new
        # Each binding raises the version: without this read, subscribers who bind all the time would prevent a change.
        stored = exchanges.find(stored.name)
        if stored is None:
            raise ChangedMeanwhile.of(ResourceRef(ResourceKind.EXCHANGE, command.exchange))
        _refuse_deleting(stored)
        self.delivery.refuse_overtaken(stored.changed_at, stored.resource)
        keeps = command.alternate is None and not command.removes_alternate
        alternate = stored.alternate if keeps else command.alternate
        live = stored.live if command.live is None else command.live.apply_to(stored.live, stored.earlier)
        if (alternate, live) == (stored.alternate, stored.live):
            return stored
        ended = stored.live if live is None else None
        earlier = (Retention(age=ended.longest_age),) if ended else stored.earlier
        sent_at = latest(self.delivery.sent_at, stored.changed_at)
        changed = replace(stored, alternate=alternate, live=live, earlier=earlier, changed_at=sent_at)
        saved = exchanges.save(changed, replacing=stored)
        if saved is None:
            raise ChangedMeanwhile.of(stored.resource)
        self.ports.record([events.declared(saved, user=self.caller.name, at=now)])
        return saved

    def _stored_queue(
        self, command: DeclareQueue, stored: DeclaredQueue | None, settings: QueueSettings
    ) -> DeclaredQueue:
        queues, now = self.ports.store.queues, self._now()
        if stored is None:
            new = DeclaredQueue(command.queue, self.caller.name, created_at=now, declared_at=now, settings=settings)
            saved = new if queues.create(new) else None
        else:
            saved = queues.save(replace(stored, declared_at=now, settings=settings), replacing=stored)
        if saved is None:
            raise ChangedMeanwhile.of(ResourceRef(ResourceKind.QUEUE, command.queue))
        if stored is None or stored.settings != settings:
            self.ports.record([events.declared(saved, user=self.caller.name, at=now)])
        return saved

    def _now(self) -> datetime:
        """Return the time in whole milliseconds, as it is stored, so that all replies show the same time."""
        now = self.ports.now()
        return now.replace(microsecond=now.microsecond // 1000 * 1000)


def exchange_queue_spec(name: ExchangeName, ports: ControlPorts) -> QueueSpec:
    """Return the spec of the SQS queue that holds an exchange's unrouted messages."""
    config = ports.config
    return QueueSpec(
        name=ports.names.queue(name),
        resource=ResourceRef(ResourceKind.EXCHANGE, name),
        retention=config.retention,
        visibility=config.visibility,
    )


def declared_queue_spec(resource: ResourceRef, settings: QueueSettings, ports: ControlPorts) -> QueueSpec:
    """Return the spec of the SQS queue that a declared queue's consumers receive from."""
    # SQS keeps messages for at least a minute; consumers drop messages that exceed a shorter TTL.
    retention = MAXIMUM_RETENTION if settings.message_ttl is None else max(MINIMUM_RETENTION, settings.message_ttl)
    return QueueSpec(
        name=ports.names.queue(resource.name),
        resource=resource,
        retention=retention,
        visibility=QUEUE_VISIBILITY,
        maximum_receives=settings.maximum_receives,
    )


def _refuse_deleting(stored: ExchangeRecord | DeclaredQueue | None) -> None:
    if stored is not None and stored.is_deleting:
        raise BeingDeleted(f"{stored.resource} is being deleted: retry later, or delete it again if this lasts")


def _refuse_name(resource: ResourceRef, problem: str | None) -> None:
    if problem:
        raise NameNotAllowed(f"{resource} {problem}")
