"""The execution of the exchange's control commands. Each is idempotent."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from signalbox.control.delivery import ONCE, CommandDelivery
from signalbox.exchange.control import commands
from signalbox.exchange.control.caller import Caller, PermittedRecords, find_caller
from signalbox.exchange.control.declaration import DeclarationService
from signalbox.exchange.control.deletion import DeletionService
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.control.presentation import Presenter, binding_document
from signalbox.exchange.control.quotas import refuse_binding
from signalbox.exchange.control.status_service import StatusService
from signalbox.exchange.messages.publications import reserved_problem
from signalbox.exchange.model import events
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.control_ports import ControlPorts
from signalbox.exchange.model.denies import Denies, DenyReader
from signalbox.exchange.model.ports import Sender
from signalbox.exchange.model.records import (
    Binding,
    BindOutcome,
    DeclaredQueue,
    ExchangeRecord,
    OrderBy,
    ResourceKind,
    ResourceRef,
)
from signalbox.exchange.model.topics import is_reserved, shown
from signalbox.messages import Message
from signalbox.nearest import suggestion
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right, Role

Record = TypeVar("Record", ExchangeRecord, DeclaredQueue)


@dataclass(frozen=True, slots=True)
class ExchangeService:
    """Executes commands of users and of the stage's administrators."""

    ports: ControlPorts
    sender: Sender
    denies: DenyReader

    def answer(self, user: UserName | None, command: commands.Command, *, delivery: CommandDelivery = ONCE) -> object:
        """Execute a command of a user, or of the administrators for None, and return its result.

        Raises `RejectedError` and `UnavailableError`.
        """
        return _CommandHandler(self, self.ports, find_caller(self.ports.store.users, user), delivery).answer(command)


@dataclass(frozen=True, slots=True)
class _CommandHandler:
    service: ExchangeService
    ports: ControlPorts
    caller: Caller
    delivery: CommandDelivery

    def answer(self, command: commands.Command) -> object:
        declaring = DeclarationService(self.ports, self.caller, self.delivery)
        deleting = DeletionService(self.ports, self.caller, self.delivery)
        answers: dict[type, Callable[[Any], object]] = {
            commands.DeclareExchange: declaring.exchange,
            commands.DeleteExchange: deleting.exchange,
            commands.DeclareQueue: declaring.queue,
            commands.DeleteQueue: deleting.queue,
            commands.Bind: self._bind,
            commands.Unbind: self._unbind,
            commands.UnbindUser: deleting.bindings_of,
            commands.ListExchanges: self._exchanges,
            commands.ListQueues: self._queues,
            commands.ListBindings: self._bindings,
            commands.PublishMessage: self._publish,
            commands.ConsumerHeartbeat: self._consuming,
            commands.WhoAmI: self._who_am_i,
            commands.ReplayMessages: self._replay,
            commands.Status: self._status,
        }
        try:
            return answers[type(command)](command)
        except NotFound as error:
            if error.undeclared is None:
                raise
            is_exchange = error.undeclared.kind is ResourceKind.EXCHANGE
            known = self._readable.exchanges() if is_exchange else self._readable.queues()
            raise NotFound(f"{error}{suggestion(error.undeclared.name, (one.name for one in known))}") from error

    def _bind(self, command: commands.Bind) -> object:
        binding = self._permitted(command.binding)
        self._refuse_denied_binding(binding)
        refuse_binding(self.caller, binding, self.ports)
        outcome = self.ports.store.bindings.bind(binding, at=self.delivery.sent_at)
        if outcome is BindOutcome.REFUSED:
            self._existing(ResourceRef(ResourceKind.EXCHANGE, binding.exchange))
            self._existing(binding.target)
            raise NotFound(f"{binding.target} or exchange {str(binding.exchange)!r} did not exist a moment ago: retry")
        if outcome is BindOutcome.BOUND:
            self.ports.record([events.bound(binding, user=self.caller.name, at=self.ports.now())])
        return {**binding_document(binding), "bound": True, "was_bound": outcome is BindOutcome.ALREADY_BOUND}

    def _unbind(self, command: commands.Unbind) -> object:
        binding = self._permitted(command.binding)
        if self.delivery.is_repeated:
            self.delivery.refuse_overtaken(self.ports.store.bindings.bound_at(binding), "the binding")
        was_there = self.ports.store.bindings.unbind(binding)
        if was_there:
            self.ports.record([events.unbound(binding, user=self.caller.name, at=self.ports.now())])
        return {**binding_document(binding), "unbound": was_there}

    def _permitted(self, binding: Binding) -> Binding:
        self.caller.require(
            (Right.READ, ResourceRef(ResourceKind.EXCHANGE, binding.exchange)), (Right.WRITE, binding.target)
        )
        return binding

    def _refuse_denied_binding(self, binding: Binding) -> None:
        """Refuse a binding of which a deny leaves nothing; the router leaves single denied topics out."""
        target = binding.target
        ways = [(Right.READ, binding.exchange)]
        ways += [(Right.WRITE, ExchangeName(target.name))] if target.kind is ResourceKind.EXCHANGE else []
        for right, realm in ways:
            denies = self._denies(realm)
            if denies is not None and denies.cover(right, binding.pattern):
                raise self._denied(right, realm, str(binding.pattern))

    def _denies(self, realm: ExchangeName) -> Denies | None:
        """Return the caller's denies in an exchange; only realms have any, and administrators have none."""
        if self.caller.name is None:
            return None
        asked = realm, self.caller.name
        return self.service.denies.of([asked]).get(asked)

    def _denied(self, right: Right, realm: ExchangeName, topic: str) -> NotPermitted:
        return NotPermitted(
            f"user {str(self.caller.name)!r} may not {right} {shown(topic)} of exchange {str(realm)!r}: a deny takes "
            "the right away"
        )

    def _existing(self, resource: ResourceRef) -> None:
        if resource.kind is ResourceKind.QUEUE:
            self._queue(resource)
        else:
            _refuse_missing(resource, self.ports.store.exchanges.find(ExchangeName(resource.name)))

    def _queue(self, resource: ResourceRef) -> DeclaredQueue:
        return _refuse_missing(resource, self.ports.store.queues.find(DeclaredName(resource.name)))

    def _exchanges(self, command: commands.ListExchanges) -> object:
        if command.exchange is not None:
            return [self._presenter.exchange(self._exchange(command.exchange, Right.READ))]
        return list(map(self._presenter.listed, self._readable.exchanges()))

    def _queues(self, _command: commands.ListQueues) -> object:
        return list(map(self._presenter.queue, self._readable.queues()))

    def _bindings(self, command: commands.ListBindings) -> object:
        if command.exchange is not None:
            self._exchange(command.exchange, Right.READ)
        return list(map(binding_document, self._readable.bindings(command.exchange)))

    def _exchange(self, name: ExchangeName, right: Right) -> ExchangeRecord:
        resource = ResourceRef(ResourceKind.EXCHANGE, name)
        self.caller.require((right, resource))
        return _refuse_missing(resource, self.ports.store.exchanges.find(name))

    def _publish(self, command: commands.PublishMessage) -> object:
        exchange = self._exchange(command.exchange, Right.WRITE)
        key = command.properties.key
        if is_reserved(key):
            raise NotPermitted(reserved_problem(key))
        denies = self._denies(command.exchange)
        if denies is not None and denies.match(Right.WRITE, key):
            raise self._denied(Right.WRITE, command.exchange, key)
        # Ids are unique only for each user, and a redelivered command must publish one message.
        asked = f"{self.caller.name or ''}:{command.request_id}"
        deduplication_id = hashlib.sha256(asked.encode()).hexdigest() if exchange.resource.is_ordered else None
        publisher = self.caller.name or events.ADMINISTRATOR
        message = command.properties.published(
            publisher=publisher, deduplication_id=deduplication_id, order_by=exchange.order_by or OrderBy.TOPIC
        )
        message_id = self.service.sender.send(self.ports.names.queue(exchange.name), message)
        return {"exchange": exchange.name, "routing_key": key, "message_id": message_id}

    def _consuming(self, command: commands.ConsumerHeartbeat) -> object:
        resource = ResourceRef(ResourceKind.QUEUE, command.queue)
        self.caller.require((Right.READ, resource))
        self._existing(resource)
        queue = self.ports.store.queues.record_heartbeat(command.queue, now=self.ports.now())
        if queue is None:
            raise NotFound(f"{resource} does not exist any more")
        return self._presenter.queue(queue)

    def _who_am_i(self, _command: commands.WhoAmI) -> object:
        config = self.ports.config
        return {
            "user": self.caller.name,
            "role": self.caller.role.value,
            "ownership": self.caller.ownership.value,
            "stage": config.names.stage,
            "exchange_prefix": config.names.prefix,
            "account": config.account,
            "region": config.region,
        }

    def _replay(self, command: commands.ReplayMessages) -> object:
        resource = ResourceRef(ResourceKind.QUEUE, command.queue)
        self.caller.require((Right.WRITE, resource))
        queue = self._queue(resource)
        reserved = [one.properties.key for one in command.messages if is_reserved(one.properties.key)]
        if reserved and self.caller.role is not Role.ADMIN:
            raise NotPermitted(reserved_problem(reserved[0]))
        now = self.ports.now()
        ttl = queue.settings.message_ttl
        expires_at = None if ttl is None else now + ttl
        messages = [self._again(one, queue, expires_at=expires_at) for one in command.messages]
        failed = self.service.sender.deliver(self.ports.names.queue(resource.name), messages)
        ids = [message.message_id for message in failed]
        return {"queue": resource.name, "delivered": len(messages) - len(ids), "failed": ids}

    def _again(self, old: commands.ReplayedMessage, queue: DeclaredQueue, *, expires_at: datetime | None) -> Message:
        published = Message(old.message_id, old.properties.body, {}, {"SentTimestamp": str(old.published_at)})
        return old.properties.delivered(
            published,
            exchange=old.exchange,
            publisher=self._publisher_of(old),
            sequence=None,
            expires_at=expires_at,
            is_fifo=queue.resource.is_ordered,
            group_by=queue.settings.group_by,
        )

    def _publisher_of(self, old: commands.ReplayedMessage) -> str:
        """Return the publisher that only administrators name: a user who replays a message is its publisher."""
        named = old.publisher if self.caller.role is Role.ADMIN else None
        return named or self.caller.name or events.ADMINISTRATOR

    def _status(self, command: commands.Status) -> object:
        return StatusService(self.ports).status(self._readable, names=command.names)

    @property
    def _presenter(self) -> Presenter:
        return Presenter(self.ports.names, self.ports.queue_url)

    @property
    def _readable(self) -> PermittedRecords:
        return PermittedRecords(self.ports.store, self.caller, self.ports.parallel_map)


def _refuse_missing(resource: ResourceRef, found: Record | None) -> Record:
    if found is None:
        raise NotFound(f"{resource} does not exist: declare it first", resource)
    if found.is_deleting:
        raise NotFound(f"{resource} is being deleted")
    return found
