"""The declarations of a CDK app: an exchange with its bindings, and users. Each deployment applies their changes."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.control.command_reader import read_user
from signalbox.exchange.control.errors import NotPermitted
from signalbox.exchange.model import events
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.connections import QueueMissing
from signalbox.exchange.model.control_ports import ChangedMeanwhile, ControlPorts
from signalbox.exchange.model.names import existing_queue
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.records import Binding, BindOutcome, DeclaredQueue, ResourceKind, ResourceRef, User
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, InvalidExchangeName, UserName, parse_exchange_name
from signalbox.sarracenia.rights.permissions import Ownership, Role

FIELDS = ("queue", "pattern", "key")
ALIAS = "alias/"
AWS_MANAGED = "alias/aws/"


class ForeignKey(RejectedError):
    """Raised when the messages of an existing queue are encrypted with a key that the router may not use."""


@dataclass(frozen=True, slots=True)
class AppBinding:
    """An existing queue of the account and a pattern; `key` is the ARN of the key that the app names for the queue."""

    queue: QueueName
    pattern: Pattern
    key: str | None = None

    def of(self, exchange: ExchangeName) -> Binding:
        """Return the binding from an exchange."""
        return Binding(exchange, ResourceRef(ResourceKind.QUEUE, existing_queue(self.queue)), self.pattern)


def read_bindings(section: Section, *, arn_prefix: str) -> tuple[AppBinding, ...]:
    """Read the field `bindings`: objects with the queue's ARN, a pattern and the ARN of the queue's key, or null."""
    return tuple(_bindings(section, arn_prefix))


def _bindings(section: Section, arn_prefix: str) -> Iterator[AppBinding]:
    for one in section.sections("bindings"):
        one.refuse_unknown(FIELDS)
        arn = one.required_text("queue")
        if not arn.startswith(arn_prefix):
            one.problem("queue", f"expected a queue of this account and region, {arn_prefix}…, not {arn!r}")
        text = one.text("pattern") or ""
        pattern = one.attempt("pattern", partial(Pattern.parse, text), default=Pattern(()))
        yield AppBinding(QueueName(arn.removeprefix(arn_prefix)), pattern, one.text("key"))


@dataclass(frozen=True, slots=True)
class AppBindings:
    """Binds existing queues, whose messages the exchange sends and whose settings it leaves alone.

    Each call may be repeated: a deployment that failed is rolled back by the opposite calls.
    """

    ports: ControlPorts

    def bind(self, exchange: ExchangeName, wanted: Sequence[AppBinding]) -> None:
        """Bind queues; none is bound unless all may be. Raises `ForeignKey`, `QueueMissing` and `UnavailableError`."""
        for queue, key in {one.queue: one.key for one in wanted}.items():
            self._check(queue, key)
        for one in wanted:
            self._bind(one.of(exchange))

    def unbind(self, exchange: ExchangeName, gone: Sequence[AppBinding]) -> None:
        """Remove bindings, and the records of queues that have none left. Raises `UnavailableError`."""
        for one in gone:
            binding = one.of(exchange)
            if self.ports.store.bindings.unbind(binding):
                self.ports.record([events.unbound(binding, user=None, at=self.ports.now())])
            if not self.ports.store.bindings.to(binding.target):
                self._forget(DeclaredName(binding.target.name))

    def _check(self, queue: QueueName, key: str | None) -> None:
        used = self.ports.sqs.key(queue)
        if used is None:
            raise QueueMissing(f"queue {queue!r} does not exist")
        is_open = not used or used.startswith(AWS_MANAGED)
        is_named = key is not None and (used.startswith(ALIAS) or key.endswith(used.rpartition("/")[2]))
        if not is_open and not is_named:
            raise ForeignKey(
                f"queue {queue!r} is encrypted with the key {used!r}, which the app does not name: import the queue "
                "with Queue.from_queue_attributes and its key_arn, and let the key's policy delegate its use to IAM"
            )

    def _bind(self, binding: Binding) -> None:
        store, now, name = self.ports.store, self.ports.now(), DeclaredName(binding.target.name)
        store.queues.create(DeclaredQueue(name, None, created_at=now, declared_at=now))
        outcome = store.bindings.bind(binding, at=now)
        if outcome is BindOutcome.REFUSED:
            raise ChangedMeanwhile.of(binding.target)
        if outcome is BindOutcome.BOUND:
            self.ports.record([events.bound(binding, user=None, at=now)])

    def _forget(self, name: DeclaredName) -> None:
        queue = self.ports.store.queues.find(name)
        if queue is not None and not self.ports.store.queues.forget(queue):
            raise ChangedMeanwhile.of(queue.resource)


Execute = Callable[[Mapping[str, object]], object]
"""Executes a command of the administrators, of which these are the fields."""


class InvalidDeclaration(RejectedError):
    """Raised when the declaration of an app is invalid."""


class MessagesWaiting(UnavailableError):
    """Raised when an exchange is not deleted because its messages would be lost."""


@dataclass(frozen=True, slots=True)
class AppExchange:
    """An exchange that an app declares; `live` are the live fields of `declare_exchange`.

    An exchange with waiting messages is kept when it is deleted, if `keeps`; else its deletion fails.
    """

    name: ExchangeName
    live: Mapping[str, object]
    bindings: tuple[AppBinding, ...]
    keeps: bool

    @classmethod
    def parse(cls, text: str, *, arn_prefix: str) -> "AppExchange":
        """Return the exchange of a JSON text. Raises `InvalidDeclaration`."""
        problems = Problems()
        section = Section.of(_document(text), "", problems)
        section.refuse_unknown(("exchange", "live", "bindings", "keeps"))
        bindings, keeps = read_bindings(section, arn_prefix=arn_prefix), section.flag("keeps")
        live = {} if section.fields.get("live") is None else section.section("live").fields
        name = section.required_text("exchange")
        problems.refuse(InvalidDeclaration)
        try:
            return cls(parse_exchange_name(name), live, bindings, keeps)
        except InvalidExchangeName as error:
            raise InvalidDeclaration(str(error)) from error


@dataclass(frozen=True, slots=True)
class AppExchanges:
    """Applies the declarations of exchanges. Each call may be repeated, and is undone by its opposite."""

    ports: ControlPorts
    execute: Execute

    def declare(self, wanted: AppExchange, *, before: AppExchange | None = None) -> None:
        """Declare an exchange and its bindings, then remove those that only `before` has.

        Raises `RejectedError` and `UnavailableError`.
        """
        is_same = before is not None and before.name == wanted.name
        live = wanted.live or ({"live": False} if is_same and before and before.live else {})
        self.execute({"command": "declare_exchange", "exchange": wanted.name, **live})
        bindings = AppBindings(self.ports)
        bindings.bind(wanted.name, wanted.bindings)
        if before is not None and is_same:
            kept = {one.of(wanted.name) for one in wanted.bindings}
            bindings.unbind(wanted.name, [one for one in before.bindings if one.of(wanted.name) not in kept])

    def delete(self, declared: AppExchange) -> None:
        """Delete an exchange and its bindings, unless messages wait. Raises `RejectedError` and `UnavailableError`.

        The mappings of the retry queues go with the last exchange: CloudFormation deletes the queues without them.
        """
        self._delete_exchange(declared)
        exchanges = self.ports.store.exchanges
        # The list may still have a deleted one.
        if all(exchanges.find(one.name) is None for one in exchanges.every()):
            for queue in self.ports.names.retry_queues:
                self.ports.mappings.disconnect(queue)

    def _delete_exchange(self, declared: AppExchange) -> None:
        queue = self.ports.names.queue(declared.name)
        size = self.ports.sqs.sizes([queue]).get(queue)
        if self.ports.store.exchanges.find(declared.name) is None and (size is None or not self._adopts(declared)):
            return
        if size is not None and size.total:
            if declared.keeps:
                return
            raise MessagesWaiting(
                f"exchange {str(declared.name)!r} holds about {size.total} messages: delete it when they are routed"
            )
        AppBindings(self.ports).unbind(declared.name, declared.bindings)
        self.execute({"command": "delete_exchange", "exchange": declared.name, "force": True})

    def _adopts(self, declared: AppExchange) -> bool:
        """Record an exchange of which only the queue was made; return whether the queue is this stage's."""
        try:
            self.execute({"command": "declare_exchange", "exchange": declared.name})
        except RejectedError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class AppUsers:
    """The users that an app declares: they only join realms. Calls may be repeated."""

    ports: ControlPorts
    execute: Execute

    def put(self, wanted: Mapping[UserName, Role], *, before: Mapping[UserName, Role]) -> None:
        """Add users or change their roles, and remove the others of `before`. Raises `NotPermitted`."""
        users = self.ports.store.users
        for name, role in wanted.items():
            known = users.find(name)
            if known is not None and not known.is_live_only:
                raise NotPermitted(f"user {str(name)!r} has access keys: remove the user by command first")
            created_at = known.created_at if known else self.ports.now()
            users.put(User(name, role, Ownership.STRICT, created_at, None))
        self.remove(name for name in before if name not in wanted)

    def remove(self, names: Iterable[UserName]) -> None:
        """Remove users with their sessions, rights and bindings; one that has got access keys stays."""
        for name in names:
            known = self.ports.store.users.find(name)
            if known is None or known.is_live_only:
                # While the record has the name, no token of it is accepted; then no late command stores a secret.
                self.execute({"command": "forget_user", "user": name})
                self.ports.store.users.remove(name)
                self.execute({"command": "forget_user", "user": name})
                self.execute({"command": "unbind_user", "user": name})


def read_users(text: str) -> Mapping[UserName, Role]:
    """Return the users of a JSON object of roles by name. Raises `InvalidDeclaration`."""
    problems = Problems()
    section = Section.of(_document(text), "", problems)
    found: dict[UserName, Role] = {}
    for name, role in section.fields.items():
        if role not in set(Role):
            section.problem(name, f"expected one of {', '.join(Role)}, not {shown(role)}")
        else:
            found[read_user(Section({"user": name}, "", problems))] = Role(str(role))
    problems.refuse(InvalidDeclaration)
    return found


def _document(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidDeclaration(f"the declaration is not JSON: {error}") from error
