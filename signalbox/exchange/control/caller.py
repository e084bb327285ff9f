"""The caller of a control-plane command: a user or the administrators, with their rights."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import TypeVar

from signalbox.control.delivery import UnprovenSender
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.model.control_ports import ExchangeStore
from signalbox.exchange.model.events import ADMINISTRATOR
from signalbox.exchange.model.ports import Users
from signalbox.exchange.model.records import Binding, DeclaredQueue, ListedExchange, ResourceKind, ResourceRef, User
from signalbox.parallel import ParallelMap
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import (
    Ownership,
    Right,
    Role,
    is_permitted,
    permitted_beginnings,
    permitted_names,
    shortest,
)

WILDCARD = re.compile(r"[*?\[]")  # of fnmatch
Record = TypeVar("Record", ListedExchange, DeclaredQueue)


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a command, which its control queue identifies: a user, or an administrator (None)."""

    user: User | None

    @property
    def name(self) -> UserName | None:
        """Return the user's name, or None for administrators."""
        return self.user.name if self.user else None

    @property
    def role(self) -> Role:
        """Return the role, which is `admin` for administrators."""
        return self.user.role if self.user else Role.ADMIN

    @property
    def ownership(self) -> Ownership:
        """Return the rule by which a resource's name shows whether it belongs to the user."""
        return self.user.ownership if self.user else Ownership.STRICT

    def may(self, right: Right, resource: ResourceRef) -> bool:
        """Return whether the caller has a right."""
        if self.user is None:
            return True
        return is_permitted(self.user.name, self.role, right, name=resource.name, ownership=self.ownership)

    def beginnings(self, right: Right, kind: ResourceKind) -> list[str]:
        """Return beginnings of the names of a kind on which the caller has a right; `""` begins all names."""
        if self.user is None:
            return [""]
        every = permitted_beginnings(self.user.name, self.role, right, ownership=self.ownership)
        return [one for one in every if _may_begin(one, kind)]

    def require(self, *rights: tuple[Right, ResourceRef]) -> None:
        """Raise `NotPermitted` with all of these rights that the caller lacks."""
        denials = [
            _denial(self.user, right, resource)
            for right, resource in rights
            if self.user is not None and not self.may(right, resource)
        ]
        if denials:
            raise NotPermitted("\n".join(denials))


@dataclass(frozen=True, slots=True)
class PermittedRecords:
    """The exchanges and queues on which a caller has a right; only names with a permitted beginning are read."""

    store: ExchangeStore
    caller: Caller
    parallel_map: ParallelMap
    right: Right = Right.READ

    def exchanges(self, patterns: Sequence[str] = ()) -> list[ListedExchange]:
        """Return all exchanges, or at least those whose names match one of `patterns`."""
        return self._permitted(ResourceKind.EXCHANGE, patterns, self.store.exchanges.every)

    def queues(self, patterns: Sequence[str] = ()) -> list[DeclaredQueue]:
        """Return queues, as `exchanges` does."""
        return self._permitted(ResourceKind.QUEUE, patterns, self.store.queues.every)

    def resources(self) -> list[ResourceRef]:
        """Return all queues and exchanges."""
        return [*(one.resource for one in self.queues()), *(one.resource for one in self.exchanges())]

    def bindings(self, exchange: ExchangeName | None) -> list[Binding]:
        """Return the bindings, of an exchange or all, with the right on both ends, eventually consistent.

        `route` reads the items of a busy exchange all the time, so those of a user are read by their targets.
        """
        stored = self.store.bindings
        if self.caller.beginnings(self.right, ResourceKind.QUEUE) == [""]:
            sources = [one.name for one in self.exchanges()] if exchange is None else [exchange]
            found = self.parallel_map(lambda one: stored.of(one, is_consistent=False), sources)
        else:
            found = self.parallel_map(lambda one: stored.to(one, is_consistent=False), self.resources())
        permitted = filter(self._has, chain.from_iterable(found))
        of_exchange = [one for one in permitted if exchange in (None, one.exchange)]
        return sorted(of_exchange, key=lambda one: (one.exchange, str(one.pattern), one.target.name))

    def _has(self, binding: Binding) -> bool:
        source = ResourceRef(ResourceKind.EXCHANGE, binding.exchange)
        return self.caller.may(self.right, source) and self.caller.may(self.right, binding.target)

    def _permitted(
        self, kind: ResourceKind, patterns: Sequence[str], every: Callable[..., Sequence[Record]]
    ) -> list[Record]:
        asked = shortest(WILDCARD.split(pattern)[0] for pattern in patterns) or [""]
        permitted = self.caller.beginnings(self.right, kind)
        wanted = shortest(
            max(one, other, key=len)
            for one in permitted
            for other in asked
            if _may_begin(other, kind) and (one.startswith(other) or other.startswith(one))
        )
        found = self.parallel_map(lambda one: every(prefix=one), wanted)
        return [one for records in found for one in records if self.caller.may(self.right, one.resource)]


def _may_begin(beginning: str, kind: ResourceKind) -> bool:
    return not beginning or beginning.startswith("x") is (kind is ResourceKind.EXCHANGE)


def find_caller(users: Users, name: UserName | None) -> Caller:
    """Return a user, or the administrators for None, as the caller. Raises `NotFound`."""
    if name is None:
        return Caller(None)
    user = users.find(name)
    if user is None:
        raise NotFound(f"user {str(name)!r} does not exist: have an administrator add the user")
    return Caller(user)


def prove_sender(
    users: Users, name: UserName | None, *, sender_id: str, router_id: str, sent_at: datetime | None
) -> None:
    """Compare the SenderId of a command with the owner of its control queue, a user or the administrators for None.

    IAM already permits only the user to send there; this is a second proof. Raises `UnprovenSender`, also for a copy
    from the router, whose role has the id `router_id`.
    """
    if name is None:
        _prove_administrator(users, sender_id.partition(":")[0], router_id)
        return
    user = users.find(name)
    if user is None or user.user_id != sender_id:
        raise UnprovenSender(
            f"{sender_id!r} sent a command to the control queue of user {str(name)!r}, who has another id"
        )
    if user.commands_from is not None and (sent_at is None or sent_at < user.commands_from):
        rotated = f"when the keys of user {str(name)!r} were rotated"
        raise UnprovenSender(f"the command was sent before {user.commands_from.isoformat()}, {rotated}")


def _prove_administrator(users: Users, principal: str, router_id: str) -> None:
    """Note a new administrator, by whose id publications are those of administrators, too."""
    if principal == router_id:
        raise UnprovenSender("the router sent a publication to the administrators' control queue: remove its binding")
    known = users.find_sender(principal)
    if known not in (None, ADMINISTRATOR):
        raise UnprovenSender(f"user {str(known)!r} sent a command to the administrators' control queue")
    # The number of an account is not the id of one principal.
    if known is None and not principal.isdigit():
        users.note_administrator(principal)


def _denial(user: User, right: Right, resource: ResourceRef) -> str:
    patterns = permitted_names(user.name, user.role, right, ownership=user.ownership)
    kind = resource.kind
    initial = "x" if kind is ResourceKind.EXCHANGE else "q"
    names = ", ".join(pattern for pattern in patterns if pattern.startswith(initial))
    permitted = f"the role allows the {kind}s {names}" if names else f"the role allows no {kind}s to {right}"
    remedy = "use one of them, or have" if names else "have"
    return (
        f"user {str(user.name)!r} ({user.role}) may not {right} {resource}: {permitted}; "
        f"{remedy} an administrator give the user another role"
    )
