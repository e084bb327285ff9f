"""What the exchange's control plane answers to commands. Each may come twice: the second time it changes nothing."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeVar

from signalbox.exchange.control.caller import Asker, asker
from signalbox.exchange.control.commands import (
    Bind,
    Command,
    Consuming,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeleteQueue,
    ListBindings,
    ListExchanges,
    ListQueues,
    Publish,
    Replay,
    Replayed,
    Status,
    Unbind,
    WhoAmI,
)
from signalbox.exchange.control.declaration import Declaring
from signalbox.exchange.control.deletion import Deleting
from signalbox.exchange.control.errors import NotThere
from signalbox.exchange.control.observation import Observing
from signalbox.exchange.control.presentation import Telling, binding
from signalbox.exchange.model import events
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.control_ports import ControlPorts
from signalbox.exchange.model.records import BindOutcome, Bound, DeclaredQueue, Exchange, Kind, OrderBy, Place
from signalbox.messages import Message
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right

Record = TypeVar("Record", Exchange, DeclaredQueue)


@dataclass(frozen=True, slots=True)
class ExchangeDesk:
    """Carries out commands of users, and of the stage's administrators."""

    ports: ControlPorts

    def answer(self, user: UserName | None, command: Command) -> object:
        """Carry out a command of a user, or None for the administrators, and return its result.

        Raises `RejectedError` and `UnavailableError`.
        """
        return _Answering(self.ports, asker(self.ports.store.users, user)).answer(command)


@dataclass(frozen=True, slots=True)
class _Answering:
    ports: ControlPorts
    asker: Asker

    def answer(self, command: Command) -> object:
        declaring, deleting = Declaring(self.ports, self.asker), Deleting(self.ports, self.asker)
        answers: dict[type, Callable[[Any], object]] = {
            DeclareExchange: declaring.exchange,
            DeleteExchange: deleting.exchange,
            DeclareQueue: declaring.queue,
            DeleteQueue: deleting.queue,
            Bind: self._bind,
            Unbind: self._unbind,
            ListExchanges: self._exchanges,
            ListQueues: self._queues,
            ListBindings: self._bindings,
            Publish: self._publish,
            Consuming: self._consuming,
            WhoAmI: self._who_am_i,
            Replay: self._replay,
            Status: self._status,
        }
        return answers[type(command)](command)

    def _bind(self, command: Bind) -> object:
        bound = self._permitted(command.bound)
        outcome = self.ports.store.bindings.bind(bound)
        if outcome is BindOutcome.NOT_BOUND:
            self._existing(Place(Kind.EXCHANGE, bound.exchange))
            self._existing(bound.target)
            raise NotThere(f"{bound.target} or exchange {str(bound.exchange)!r} was not there a moment ago: ask again")
        if outcome is BindOutcome.MADE:
            self.ports.record([events.bound(bound, user=self.asker.name, at=self.ports.now())])
        return {**binding(bound), "bound": True}

    def _unbind(self, command: Unbind) -> object:
        bound = self._permitted(command.bound)
        was_there = self.ports.store.bindings.unbind(bound)
        if was_there:
            self.ports.record([events.unbound(bound, user=self.asker.name, at=self.ports.now())])
        return {**binding(bound), "unbound": was_there}

    def _permitted(self, bound: Bound) -> Bound:
        self.asker.require((Right.READ, Place(Kind.EXCHANGE, bound.exchange)), (Right.WRITE, bound.target))
        return bound

    def _existing(self, place: Place) -> None:
        if place.kind is Kind.QUEUE:
            self._queue(place)
        else:
            _refuse_missing(place, self.ports.store.exchanges.find(ExchangeName(place.name)))

    def _queue(self, place: Place) -> DeclaredQueue:
        return _refuse_missing(place, self.ports.store.queues.find(DeclaredName(place.name)))

    def _exchanges(self, _command: ListExchanges) -> object:
        return [self._telling.exchange(one) for one in self.ports.store.exchanges.every() if self._may_read(one.place)]

    def _queues(self, _command: ListQueues) -> object:
        return [self._telling.queue(one) for one in self.ports.store.queues.every() if self._may_read(one.place)]

    def _bindings(self, command: ListBindings) -> object:
        if command.exchange is None:
            exchanges = [one.name for one in self.ports.store.exchanges.every() if self._may_read(one.place)]
        else:
            place = Place(Kind.EXCHANGE, command.exchange)
            self.asker.require((Right.READ, place))
            self._existing(place)
            exchanges = [command.exchange]
        found = (bound for exchange in exchanges for bound in self.ports.store.bindings.of(exchange))
        return [binding(bound) for bound in found if self._may_read(bound.target)]

    def _publish(self, command: Publish) -> object:
        place = Place(Kind.EXCHANGE, command.exchange)
        self.asker.require((Right.WRITE, place))
        exchange = _refuse_missing(place, self.ports.store.exchanges.find(command.exchange))
        # Two users may have the same ids, and one command that comes twice must be one message.
        asked = f"{self.asker.name or ''}:{command.request_id}"
        deduplication_id = hashlib.sha256(asked.encode()).hexdigest() if place.is_ordered else None
        publisher = self.asker.name or events.ADMINISTRATOR
        message = command.envelope.published(
            publisher=publisher, deduplication_id=deduplication_id, order_by=exchange.order_by or OrderBy.TOPIC
        )
        message_id = self.ports.sender.send(self.ports.names.queue(place.name), message)
        return {"exchange": place.name, "routing_key": command.envelope.key, "message_id": message_id}

    def _consuming(self, command: Consuming) -> object:
        place = Place(Kind.QUEUE, command.queue)
        self.asker.require((Right.READ, place))
        self._existing(place)
        queue = self.ports.store.queues.consumed(command.queue, now=self.ports.now())
        if queue is None:
            raise NotThere(f"{place} is not there any more")
        return self._telling.queue(queue)

    def _who_am_i(self, _command: WhoAmI) -> object:
        setup = self.ports.setup
        return {
            "user": self.asker.name,
            "role": self.asker.role.value,
            "ownership": self.asker.ownership.value,
            "stage": setup.names.stage,
            "exchange_prefix": setup.names.prefix,
            "account": setup.account,
            "region": setup.region,
        }

    def _replay(self, command: Replay) -> object:
        place = Place(Kind.QUEUE, command.queue)
        self.asker.require((Right.WRITE, place))
        queue = self._queue(place)
        now = self.ports.now()
        ttl = queue.settings.message_ttl
        expires_at = None if ttl is None else now + ttl
        messages = [self._again(one, expires_at=expires_at, is_fifo=place.is_ordered) for one in command.messages]
        failed = self.ports.sender.deliver(self.ports.names.queue(place.name), messages)
        ids = [message.message_id for message in failed]
        return {"queue": place.name, "delivered": len(messages) - len(ids), "failed": ids}

    def _again(self, old: Replayed, *, expires_at: datetime | None, is_fifo: bool) -> Message:
        published = Message(old.message_id, old.envelope.body, {}, {"SentTimestamp": str(old.published_at)}, {})
        return old.envelope.delivered(
            published,
            exchange=old.exchange,
            publisher=old.publisher or self.asker.name or events.ADMINISTRATOR,
            sequence=None,
            expires_at=expires_at,
            is_fifo=is_fifo,
        )

    def _status(self, command: Status) -> object:
        store, is_meant = self.ports.store, partial(_is_meant, names=command.names)
        exchanges = [one for one in store.exchanges.every() if is_meant(one.name) and self._may_read(one.place)]
        queues = [one for one in store.queues.every() if is_meant(one.name) and self._may_read(one.place)]
        return Observing(self.ports).status(exchanges, queues)

    @property
    def _telling(self) -> Telling:
        return Telling(self.ports.names, self.ports.queue_url)

    def _may_read(self, place: Place) -> bool:
        return self.asker.may(Right.READ, place)


def _is_meant(name: str, names: Sequence[str]) -> bool:
    return not names or any(fnmatchcase(name, pattern) for pattern in names)


def _refuse_missing(place: Place, found: Record | None) -> Record:
    if found is None:
        raise NotThere(f"{place} is not there: declare it first")
    if found.is_leaving:
        raise NotThere(f"{place} is being deleted")
    return found
