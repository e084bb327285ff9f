"""Making exchanges and queues, or giving those that are there other settings.

The queue in SQS comes first and the record second: what is on record is there, and a function that is killed in
between leaves a queue that the same declaration finds again. An exchange is connected to the router last: until then
messages wait, and the router would not know what to do with them before there is a record.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.control.caller import Caller
from signalbox.exchange.control.commands import DeclareExchange, DeclareQueue
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.control.live_settings import LiveSettingsPatch
from signalbox.exchange.control.presentation import Presenter
from signalbox.exchange.model import events
from signalbox.exchange.model.control_ports import ChangedMeanwhile, ControlPorts
from signalbox.exchange.model.names import dead_letter_problem, exchange_name_problem
from signalbox.exchange.model.records import (
    DeclaredQueue,
    Exchange,
    QueueSettings,
    QueueSpec,
    ResourceKind,
    ResourceRef,
)
from signalbox.sarracenia.rights.names import ExchangeName
from signalbox.sarracenia.rights.permissions import Right, Role

MINIMUM_RETENTION = timedelta(seconds=60)  # SQS
MAXIMUM_RETENTION = timedelta(days=14)  # SQS
# As long as a consumer may hold a batch; one that needs longer asks for it with each receive.
QUEUE_VISIBILITY = timedelta(seconds=60)


class NameNotAllowed(RejectedError):
    """Raised when an exchange or a queue may not have the name that it is to have."""


class BeingDeleted(UnavailableError):
    """Raised when an exchange or a queue is to be declared while it is being deleted."""


@dataclass(frozen=True, slots=True)
class DeclarationService:
    """Declares for somebody."""

    ports: ControlPorts
    caller: Caller

    def exchange(self, command: DeclareExchange) -> object:
        """Declare an exchange. Raises `RejectedError` and `UnavailableError`."""
        resource = ResourceRef(ResourceKind.EXCHANGE, command.exchange)
        self._check_exchange(command, resource)
        stored = self.ports.store.exchanges.find(command.exchange)
        _refuse_deleting(stored)
        wanted = exchange_queue_spec(command.exchange, self.ports)
        self.ports.sqs.make(wanted)
        stored = self._stored_exchange(command, stored)
        is_connected = self.ports.mappings.connect(wanted.name)
        if self._is_deleting(command.exchange):
            # It was deleted since the record was read, perhaps just before it was connected.
            self.ports.mappings.disconnect(wanted.name)
            raise BeingDeleted(f"{resource} was deleted while it was declared: ask again")
        document = Presenter(self.ports.names, self.ports.queue_url).exchange(stored)
        return {**document, "connected": is_connected}

    def queue(self, command: DeclareQueue) -> object:
        """Declare a queue. Raises `RejectedError` and `UnavailableError`."""
        resource = ResourceRef(ResourceKind.QUEUE, command.queue)
        self.caller.require((Right.CONFIGURE, resource))
        _refuse_name(resource, dead_letter_problem(resource.name))
        stored = self.ports.store.queues.find(command.queue)
        _refuse_deleting(stored)
        settings = command.patch.apply_to(stored.settings if stored else QueueSettings())
        self.ports.sqs.make(declared_queue_spec(resource, settings, self.ports))
        queue = self._stored_queue(command, stored, settings)
        return Presenter(self.ports.names, self.ports.queue_url).queue(queue)

    def _check_exchange(self, command: DeclareExchange, resource: ResourceRef) -> None:
        if command.alternate is None:
            self.caller.require((Right.CONFIGURE, resource))
        else:  # as RabbitMQ has it: what is not routed is read here, and written there
            alternate = ResourceRef(ResourceKind.EXCHANGE, command.alternate)
            self.caller.require((Right.CONFIGURE, resource), (Right.READ, resource), (Right.WRITE, alternate))
            if self._is_deleting(command.alternate):
                raise NotFound(f"{alternate} is not there: declare it before it becomes an alternate")
        if command.live is not None:
            self._check_anonymous(command.live)
        _refuse_name(resource, exchange_name_problem(command.exchange, prefix=self.ports.names.prefix))

    def _check_anonymous(self, live: LiveSettingsPatch) -> None:
        if not live.anonymous:
            return
        # Whoever joins so has all the rights of that user there, and no owner of an exchange may lend them.
        if self.caller.role is not Role.ADMIN:
            raise NotPermitted(f"only administrators may let anybody join as user {str(live.anonymous)!r}")
        if self.ports.store.users.find(live.anonymous) is None:
            raise NotFound(f"there is no user {str(live.anonymous)!r} to join as: have an administrator add the user")

    def _is_deleting(self, name: ExchangeName) -> bool:
        found = self.ports.store.exchanges.find(name)
        return found is None or found.is_deleting

    def _stored_exchange(self, command: DeclareExchange, stored: Exchange | None) -> Exchange:
        exchanges, now = self.ports.store.exchanges, self._now()
        if stored is None:
            live = command.live.apply_to(None) if command.live else None
            new = Exchange(command.exchange, self.caller.name, now, command.alternate, live=live)
            if not exchanges.create(new):
                raise ChangedMeanwhile.of(new.resource)
            self.ports.record([events.declared(new, user=self.caller.name, at=now)])
            return new
        keeps = command.alternate is None and not command.removes_alternate
        alternate = stored.alternate if keeps else command.alternate
        live = stored.live if command.live is None else command.live.apply_to(stored.live)
        if (alternate, live) == (stored.alternate, stored.live):
            return stored
        saved = exchanges.save(replace(stored, alternate=alternate, live=live), replacing=stored)
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
        """Return the moment to the millisecond, as it is kept: who declares first is document what everybody is later."""
        now = self.ports.now()
        return now.replace(microsecond=now.microsecond // 1000 * 1000)


def exchange_queue_spec(name: ExchangeName, ports: ControlPorts) -> QueueSpec:
    """Return the queue in SQS that messages wait in until they are routed."""
    config = ports.config
    return QueueSpec(
        name=ports.names.queue(name),
        resource=ResourceRef(ResourceKind.EXCHANGE, name),
        retention=config.retention,
        visibility=config.visibility,
        maximum_receives=config.maximum_receives,
    )


def declared_queue_spec(resource: ResourceRef, settings: QueueSettings, ports: ControlPorts) -> QueueSpec:
    """Return the queue in SQS that consumers of a queue receive from."""
    # SQS keeps messages for a minute at least; consumers drop those that are too old before that.
    retention = MAXIMUM_RETENTION if settings.message_ttl is None else max(MINIMUM_RETENTION, settings.message_ttl)
    return QueueSpec(
        name=ports.names.queue(resource.name),
        resource=resource,
        retention=retention,
        visibility=QUEUE_VISIBILITY,
        maximum_receives=settings.maximum_receives,
    )


def _refuse_deleting(stored: Exchange | DeclaredQueue | None) -> None:
    if stored is not None and stored.is_deleting:
        raise BeingDeleted(
            f"{stored.resource} is being deleted: ask again when it is gone, or delete it again if it stays"
        )


def _refuse_name(resource: ResourceRef, problem: str | None) -> None:
    if problem:
        raise NameNotAllowed(f"{resource} {problem}")
