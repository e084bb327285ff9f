"""What the control plane answers to commands about live. Each may come twice: the second time it changes nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from signalbox.errors import Contended, RejectedError
from signalbox.exchange.control.caller import Caller, find_caller
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.model.records import ResourceKind, ResourceRef
from signalbox.live.admin import events
from signalbox.live.admin.commands import Command, ForgetSecret, GiveGrant, ListGrants, PutSecret, TakeGrant
from signalbox.live.admin.grants import Grant
from signalbox.live.admin.ports import GrantingPorts, KeptGrants
from signalbox.live.session.state import RightsChanged
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right, Role

MAXIMUM_GRANTS = 200  # of a user in a realm: all of them are read with every event that is posted


class GrantsChanged(Contended):
    """Raised when the grants of a user are changed by somebody else at the same time."""


class TooManyGrants(RejectedError):
    """Raised when a user has as many grants in a realm as there is room for."""


@dataclass(frozen=True, slots=True)
class LiveDesk:
    """Carries out commands of users, and of the stage's administrators."""

    ports: GrantingPorts

    def answer(self, user: UserName | None, command: Command) -> object:
        """Carry out a command of a user, or None for the administrators, and return its result.

        Raises `RejectedError` and `UnavailableError`.
        """
        return _Answering(self.ports, find_caller(self.ports.users, user)).answer(command)


@dataclass(frozen=True, slots=True)
class _Answering:
    ports: GrantingPorts
    caller: Caller

    def answer(self, command: Command) -> object:
        answers: dict[type, Callable[[Any], object]] = {
            GiveGrant: self._give,
            TakeGrant: self._take,
            ListGrants: self._grants,
            PutSecret: self._put_secret,
            ForgetSecret: self._forget_secret,
        }
        return answers[type(command)](command)

    def _give(self, command: GiveGrant) -> object:
        self._require(command.realm)
        self._check_realm(command.realm)
        self._check_user(command.user)
        kept = self.ports.grants.find(command.realm, command.user)
        is_new = command.grant not in kept.grants
        if is_new:
            if len(kept.grants) >= MAXIMUM_GRANTS:
                raise TooManyGrants(
                    f"user {str(command.user)!r} has {MAXIMUM_GRANTS} grants in {str(command.realm)!r}, and there is "
                    "room for no more: grant a prefix in the place of several"
                )
            self._save(command, (*kept.grants, command.grant), replacing=kept)
        return {**document(command.user, command.realm, command.grant), "granted": is_new}

    def _take(self, command: TakeGrant) -> object:
        self._require(command.realm)
        kept = self.ports.grants.find(command.realm, command.user)
        was_there = command.grant in kept.grants
        if was_there:
            left = tuple(grant for grant in kept.grants if grant != command.grant)
            self._save(command, left, replacing=kept)
        # Also for one that was gone: who took it away may have been killed before anybody was told.
        self._tell(command.realm, command.user)
        return {**document(command.user, command.realm, command.grant), "ungranted": was_there}

    def _save(self, command: GiveGrant | TakeGrant, grants: Sequence[Grant], *, replacing: KeptGrants) -> None:
        if not self.ports.grants.save(command.realm, command.user, grants, replacing=replacing):
            raise GrantsChanged(f"the grants of user {str(command.user)!r} were changed meanwhile: ask again")
        self.ports.record([events.changed(command, by=self.caller.name, at=self.ports.clock.now())])

    def _grants(self, command: ListGrants) -> object:
        realms = [command.realm] if command.realm else [one.name for one in self.ports.exchanges.every() if one.live]
        users = [command.user] if command.user else [one.name for one in self.ports.users.every()]
        seen = [(realm, user) for realm, user in product(realms, users) if self._may_see(realm, user)]
        found = self.ports.parallel_map(lambda pair: self.ports.grants.find(*pair).grants, seen)
        return [
            document(user, realm, grant) for (realm, user), grants in zip(seen, found, strict=True) for grant in grants
        ]

    def _put_secret(self, command: PutSecret) -> object:
        user = command.user or self.caller.name
        if user is None:
            raise NotFound("administrators have no secret: say whose it is to be, with `user`")
        if user != self.caller.name and self.caller.role is not Role.ADMIN:
            raise NotPermitted(f"only administrators may give user {str(user)!r} another secret")
        self._check_user(user)
        self.ports.secrets.put(user, command.credentials)
        self.ports.record([events.secret_changed(user, by=self.caller.name, at=self.ports.clock.now())])
        return {"user": user, "methods": sorted(method.value for method in command.credentials.methods)}

    def _forget_secret(self, command: ForgetSecret) -> object:
        if self.caller.role is not Role.ADMIN:
            raise NotPermitted(f"only administrators may take the secret of user {str(command.user)!r} away")
        self.ports.secrets.remove(command.user)
        realms = [one.name for one in self.ports.exchanges.every() if one.live]
        return {"user": command.user, "told": sum(self._tell(realm, command.user) for realm in realms)}

    def _tell(self, realm: ExchangeName, user: UserName) -> int:
        """Have a user's sessions look at what they may do; return how many there are."""
        connections = self.ports.roster.of_user(realm, user)
        moment = round(self.ports.clock.now().timestamp() * 1000)
        for connection in connections:
            self.ports.inbox.tell(connection, RightsChanged(), request=f"rights:{connection}:{moment}")
        return len(connections)

    def _require(self, realm: ExchangeName) -> None:
        self.caller.require((Right.CONFIGURE, ResourceRef(ResourceKind.EXCHANGE, realm)))

    def _may_see(self, realm: ExchangeName, user: UserName) -> bool:
        return user == self.caller.name or self.caller.may(Right.CONFIGURE, ResourceRef(ResourceKind.EXCHANGE, realm))

    def _check_realm(self, realm: ExchangeName) -> None:
        found = self.ports.exchanges.find(realm)
        if found is None or found.is_deleting or found.live is None:
            raise NotFound(f"exchange {str(realm)!r} cannot be joined: declare it with `live` first")

    def _check_user(self, user: UserName) -> None:
        if self.ports.users.find(user) is None:
            raise NotFound(f"there is no user {str(user)!r}: have an administrator add the user")


def document(user: UserName, realm: ExchangeName, grant: Grant) -> dict[str, object]:
    """Return a grant with the fields of the command that gives it."""
    pattern = grant.pattern
    told = {"right": grant.right.value, "match": pattern.match.value, "uri": pattern.uri}
    return {"user": user, "exchange": realm, **told}
