"""The declarations of a CDK app: an exchange with its bindings, and users. Each deployment applies their changes."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.control.app_bindings import AppBinding, AppBindings, read_bindings
from signalbox.exchange.control.command_reader import read_user
from signalbox.exchange.control.errors import NotPermitted
from signalbox.exchange.model.control_ports import ControlPorts
from signalbox.exchange.model.records import User
from signalbox.sarracenia.rights.names import ExchangeName, InvalidExchangeName, UserName, parse_exchange_name
from signalbox.sarracenia.rights.permissions import Ownership, Role

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
    """Applies the declarations of exchanges. Each call may be repeated, and its opposite takes it back."""

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
