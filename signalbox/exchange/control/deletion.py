"""The deletion of exchanges and queues, with their bindings and SQS queues.

First the record is marked as being deleted, on condition that its version is unchanged: from then on no binding to it
or from it can be made, so that the bindings found are complete. The record is removed last, so that a repeated command
completes an interrupted deletion.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from signalbox.control.delivery import ONCE, CommandDelivery
from signalbox.control.pages import listed
from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.control.caller import Caller, PermittedRecords
from signalbox.exchange.control.commands import DeleteExchange, DeleteQueue, UnbindUser
from signalbox.exchange.control.errors import NotPermitted
from signalbox.exchange.control.presentation import Presenter, binding_document
from signalbox.exchange.model import events
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.control_ports import ChangedMeanwhile, ControlPorts
from signalbox.exchange.model.names import dead_letter_name
from signalbox.exchange.model.records import (
    Binding,
    DeclaredQueue,
    ExchangeRecord,
    ListedExchange,
    QueueSize,
    ResourceKind,
    ResourceRef,
    User,
)
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName
from signalbox.sarracenia.rights.permissions import Right, Role, is_permitted

SHOWN_BINDINGS = 5
REMOVED_AT_ONCE = 48  # in a transaction of 100 writes with the versions of up to four exchanges
UNBINDING = timedelta(seconds=20)  # of the 30 seconds that a function has for a command


class BindingsLeft(UnavailableError):
    """Raised when more bindings are to be removed than one command has time for; the command can be repeated."""


class ResourceInUse(RejectedError):
    """Raised when an exchange or a queue is not deleted because messages or bindings would be lost."""


@dataclass(frozen=True, slots=True)
class DeletionService:
    """Deletes exchanges and queues for a caller."""

    ports: ControlPorts
    caller: Caller
    delivery: CommandDelivery = ONCE

    def exchange(self, command: DeleteExchange) -> object:
        """Delete an exchange; return the result document. Raises `RejectedError` and `UnavailableError`."""
        resource = ResourceRef(ResourceKind.EXCHANGE, command.exchange)
        self.caller.require((Right.CONFIGURE, resource))
        stored = self.ports.store.exchanges.find(command.exchange)
        if stored is None:
            return _nothing(resource)
        self.delivery.refuse_overtaken(stored.created_at, resource)
        if not stored.is_deleting:
            if not command.force:
                self._refuse_use(stored)
            leaving = self.ports.store.exchanges.save(replace(stored, is_deleting=True), replacing=stored)
            if leaving is None:
                raise ChangedMeanwhile.of(resource)
        self.ports.mappings.disconnect(self.ports.names.queue(resource.name))
        return self._delete(stored)

    def queue(self, command: DeleteQueue) -> object:
        """Delete a queue; return the result document. Raises `RejectedError` and `UnavailableError`."""
        resource = ResourceRef(ResourceKind.QUEUE, command.queue)
        self.caller.require((Right.CONFIGURE, resource))
        stored = self.ports.store.queues.find(command.queue)
        if stored is None:
            return _nothing(resource)
        self.delivery.refuse_overtaken(stored.declared_at, resource)
        if command.if_empty and not stored.is_deleting:
            self._refuse_messages(resource, "take them first, or delete it without if_empty")
        return self.delete(stored)

    def bindings_of(self, command: UnbindUser) -> object:
        """Remove the bindings to a user's exchanges and queues; return the result document. Raises `NotPermitted`."""
        if self.caller.role is not Role.ADMIN:
            raise NotPermitted(f"only administrators may remove the bindings of user {str(command.user)!r}")
        store = self.ports.store
        # A source configures what has its name and nothing else.
        source = Caller(User(command.user, Role.SOURCE, command.ownership, self.ports.now(), None))
        own = PermittedRecords(store, source, self.ports.parallel_map, Right.CONFIGURE).resources()
        ended = self._ended_reading(command)
        unbound = self._unbind([one for target in own for one in store.bindings.to(target) if ended(one.exchange)])
        return {
            "user": command.user,
            **listed(
                queues=[one.name for one in own if one.kind is ResourceKind.QUEUE],
                exchanges=[one.name for one in own if one.kind is ResourceKind.EXCHANGE],
                unbound=[binding_document(binding) for binding in unbound],
            ),
        }

    def _ended_reading(self, command: UnbindUser) -> Callable[[ExchangeName], bool]:
        """Return whether a user may not read an exchange any more: a removed user none, others by the earlier role."""
        user = self.ports.store.users.find(command.user)
        if user is None:
            return lambda _exchange: True
        may_now = partial(is_permitted, user.name, user.role, Right.READ, ownership=user.ownership)
        might = partial(is_permitted, user.name, command.role, Right.READ, ownership=command.ownership)
        return lambda exchange: might(name=exchange) and not may_now(name=exchange)

    def delete(self, queue: DeclaredQueue, *, reason: str | None = None) -> dict[str, object]:
        """Delete a queue. Raises `ChangedMeanwhile` if its record has changed since it was read."""
        if not queue.is_deleting:
            leaving = self.ports.store.queues.save(replace(queue, is_deleting=True), replacing=queue)
            if leaving is None:
                raise ChangedMeanwhile.of(queue.resource)
        return self._delete(queue, reason=reason)

    def _delete(self, record: ExchangeRecord | DeclaredQueue, *, reason: str | None = None) -> dict[str, object]:
        resource, name = record.resource, self.ports.names.queue(record.name)
        unbound = self._unbind(self._bindings(resource))
        self._end_use(resource)
        lost = self._size(name).total
        self.ports.sqs.delete(name)
        dead_letters = self._without_dead_letters(record)
        self._forget(record)
        self.ports.record([events.deleted(record, user=self.caller.name, at=self.ports.now(), reason=reason)])
        return {
            **_named(resource),
            "deleted": True,
            **listed(unbound=[binding_document(binding) for binding in unbound]),
            "lost": lost,
            "dead_letters": dead_letters,
        }

    def _refuse_use(self, exchange: ExchangeRecord) -> None:
        resource = exchange.resource
        bindings = self._bindings(resource)
        if bindings:
            more = f" and {len(bindings) - SHOWN_BINDINGS} more" if len(bindings) > SHOWN_BINDINGS else ""
            shown = (
                ", ".join(f"{one.exchange} to {one.target.name} by {one.pattern}" for one in bindings[:SHOWN_BINDINGS])
                + more
            )
            raise ResourceInUse(f"{resource} is bound ({shown}): unbind it first, or delete with force")
        users = self._users_of(resource)
        if users:
            names = ", ".join(one.name for one in users)
            raise ResourceInUse(f"{resource} is the alternate of {names}: change that first, or delete with force")
        self._refuse_messages(resource, "wait until they are routed, or delete with force and lose them")

    def _refuse_messages(self, resource: ResourceRef, remedy: str) -> None:
        count = self._size(self.ports.names.queue(resource.name)).total
        if count:
            raise ResourceInUse(f"{resource} holds about {count} messages: {remedy}")

    def _bindings(self, resource: ResourceRef) -> Sequence[Binding]:
        found = self.ports.store.bindings
        of = found.of(ExchangeName(resource.name)) if resource.kind is ResourceKind.EXCHANGE else ()
        return list(dict.fromkeys([*of, *found.to(resource)]))  # an exchange may be bound to itself

    def _users_of(self, alternate: ResourceRef) -> Sequence[ListedExchange]:
        if alternate.kind is ResourceKind.QUEUE:
            return ()
        return [one for one in self.ports.store.exchanges.every() if one.alternate == alternate.name]

    def _end_use(self, alternate: ResourceRef) -> None:
        """Remove an alternate from its users: the next exchange of its name must not get their messages."""
        exchanges = self.ports.store.exchanges
        for one in self._users_of(alternate):
            stored = exchanges.find(one.name)  # read again: each binding raises its version
            if stored is None or stored.alternate != alternate.name:
                continue
            saved = exchanges.save(replace(stored, alternate=None), replacing=stored)
            if saved is None:
                raise ChangedMeanwhile.of(stored.resource)
            self.ports.record([events.declared(saved, user=self.caller.name, at=self.ports.now())])

    def _unbind(self, bindings: Sequence[Binding]) -> Sequence[Binding]:
        unbound, until = list[Binding](), self.ports.now() + UNBINDING
        for start in range(0, len(bindings), REMOVED_AT_ONCE):
            now = self.ports.now()
            if now > until:
                left = f"{len(bindings) - start} of {len(bindings)} bindings"
                raise BindingsLeft(f"{left} are left: send the command again")
            for some in self.ports.store.bindings.unbind_all(bindings[start : start + REMOVED_AT_ONCE]):
                # Before the next ones: a killed command has recorded what it removed.
                self.ports.record([events.unbound(binding, user=self.caller.name, at=now) for binding in some])
                unbound += some
        return unbound

    def _size(self, name: QueueName) -> QueueSize:
        return self.ports.sqs.sizes([name]).get(name, QueueSize(0))

    def _without_dead_letters(self, record: ExchangeRecord | DeclaredQueue) -> dict[str, object] | None:
        """Delete the dead-letter queue if it is empty; otherwise return its document, for a user to inspect it.

        One that stays counts as a queue of its owner, until the sweep finds it empty.
        """
        dead = dead_letter_name(self.ports.names.queue(record.name))
        count = self._size(dead).total
        if count:
            now = self.ports.now()
            self.ports.store.left.create(DeclaredQueue(DeclaredName(record.name), record.owner, now, now))
            document = Presenter(self.ports.names, self.ports.queue_url).queue_in_sqs(dead)
            return {**document, "waiting": count}
        self.ports.sqs.delete(dead)
        return None

    def _forget(self, record: ExchangeRecord | DeclaredQueue) -> None:
        # Read again: removing its bindings has changed its version.
        store = self.ports.store
        if isinstance(record, ExchangeRecord):
            self.ports.leave_nothing_of(record)
            exchange = store.exchanges.find(record.name)
            is_gone = exchange is None or store.exchanges.forget(exchange)
        else:
            queue = store.queues.find(record.name)
            is_gone = queue is None or store.queues.forget(queue)
        if not is_gone:
            raise ChangedMeanwhile.of(record.resource)


def _named(resource: ResourceRef) -> dict[str, object]:
    return {resource.kind.value: resource.name}


def _nothing(resource: ResourceRef) -> dict[str, object]:
    return {**_named(resource), "deleted": False, **listed(unbound=[]), "lost": 0, "dead_letters": None}
