"""The handlers of commands about live. A command may be received twice: the second time it changes nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from signalbox.errors import Contended, RejectedError
from signalbox.exchange.control.caller import Caller, find_caller
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.model.records import ResourceKind, ResourceRef
from signalbox.live.admin import events
from signalbox.live.admin.commands import Command, ForgetSecret, GiveGrant, ListGrants, PutSecret, PutSecrets, TakeGrant
from signalbox.live.admin.grants import Grant
from signalbox.live.admin.ports import LiveAdminPorts, StoredGrants
from signalbox.live.session.state import RightsChanged
from signalbox.live.wamp.authentication import Credentials
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right, Role

MAXIMUM_GRANTS = 200  # of a user in a realm: all of them are read for each batch of events that is posted


class GrantsChanged(Contended):
    """Raised when another command changed the grants of the user at the same time."""


class TooManyGrants(RejectedError):
    """Raised when a user has the maximum number of grants in a realm."""


@dataclass(frozen=True, slots=True)
class LiveCommandHandlers:
    """The handlers of the commands of users, and of the stage's administrators."""

    ports: LiveAdminPorts

    def answer(self, user: UserName | None, command: Command) -> object:
        """Execute a command and return its result; `user` is None for the stage's administrators.

        Raises `RejectedError` and `UnavailableError`.
        """
        return _Execution(self.ports, find_caller(self.ports.users, user)).answer(command)


@dataclass(frozen=True, slots=True)
class _Execution:
    ports: LiveAdminPorts
    caller: Caller

    def answer(self, command: Command) -> object:
        handlers: dict[type, Callable[[Any], object]] = {
            GiveGrant: self._give,
            TakeGrant: self._take,
            ListGrants: self._grants,
            PutSecret: self._put_secret,
            PutSecrets: self._put_secrets,
            ForgetSecret: self._forget_secret,
        }
        return handlers[type(command)](command)

    def _give(self, command: GiveGrant) -> object:
        self._require(command.realm)
        self._check_realm(command.realm)
        self._check_user(command.user)
        stored = self.ports.grants.find(command.realm, command.user)
        is_new = command.grant not in stored.grants
        if is_new:
            if len(stored.grants) >= MAXIMUM_GRANTS:
                raise TooManyGrants(
                    f"user {str(command.user)!r} has {MAXIMUM_GRANTS} grants in {str(command.realm)!r}, which is the "
                    "maximum: grant a prefix instead of several topics"
                )
            self._save(command, (*stored.grants, command.grant), replacing=stored)
        return {**document(command.user, command.realm, command.grant), "granted": is_new}

    def _take(self, command: TakeGrant) -> object:
        self._require(command.realm)
        stored = self.ports.grants.find(command.realm, command.user)
        existed = command.grant in stored.grants
        if existed:
            left = tuple(grant for grant in stored.grants if grant != command.grant)
            self._save(command, left, replacing=stored)
        # Also for a grant that was gone: the function may have been killed before it notified the sessions.
        self._notify_sessions(command.realm, command.user)
        return {**document(command.user, command.realm, command.grant), "ungranted": existed}

    def _save(self, command: GiveGrant | TakeGrant, grants: Sequence[Grant], *, replacing: StoredGrants) -> None:
        if not self.ports.grants.save(command.realm, command.user, grants, replacing=replacing):
            raise GrantsChanged(f"another command changed the grants of user {str(command.user)!r}: send yours again")
        self.ports.record([events.changed(command, by=self.caller.name, at=self.ports.clock.now())])

    def _grants(self, command: ListGrants) -> object:
        realms = [command.realm] if command.realm else [one.name for one in self.ports.exchanges.every() if one.live]
        users = [command.user] if command.user else [one.name for one in self.ports.users.every()]
        visible = [(realm, user) for realm, user in product(realms, users) if self._may_see(realm, user)]
        found = self.ports.parallel_map(lambda pair: self.ports.grants.find(*pair).grants, visible)
        return [
            document(user, realm, grant)
            for (realm, user), grants in zip(visible, found, strict=True)
            for grant in grants
        ]

    def _put_secret(self, command: PutSecret) -> object:
        user = command.user or self.caller.name
        if user is None:
            raise NotFound("administrators have no secret: name a user with `user`")
        if user != self.caller.name and self.caller.role is not Role.ADMIN:
            raise NotPermitted(f"only administrators may replace the secret of user {str(user)!r}")
        return self._stored({user: command.credentials})[0]

    def _put_secrets(self, command: PutSecrets) -> object:
        if self.caller.role is not Role.ADMIN:
            raise NotPermitted("only administrators may replace the secrets of several users")
        return self._stored({one.user: one.credentials for one in command.secrets if one.user is not None})

    def _stored(self, secrets: Mapping[UserName, Credentials]) -> list[dict[str, object]]:
        """Store the credentials of users, and return the results. Raises `NotFound` before anything is stored."""
        known = self.ports.users.find_all(secrets)
        missing = [repr(str(user)) for user in secrets if user not in known]
        if missing:
            raise NotFound(f"there is no user {', '.join(missing)}: have an administrator add the user")
        self.ports.secrets.put(secrets)
        at = self.ports.clock.now()
        self.ports.record([events.secret_changed(user, by=self.caller.name, at=at) for user in secrets])
        return [
            {"user": user, "methods": sorted(method.value for method in credentials.methods)}
            for user, credentials in secrets.items()
        ]

    def _forget_secret(self, command: ForgetSecret) -> object:
        if self.caller.role is not Role.ADMIN:
            raise NotPermitted(f"only administrators may delete the secret of user {str(command.user)!r}")
        self.ports.secrets.remove(command.user)
        realms = [one.name for one in self.ports.exchanges.every() if one.live]
        return {"user": command.user, "told": sum(self._notify_sessions(realm, command.user) for realm in realms)}

    def _notify_sessions(self, realm: ExchangeName, user: UserName) -> int:
        """Send `RightsChanged` to a user's sessions in a realm; return their number."""
        connections = self.ports.realm_sessions.of_user(realm, user)
        moment = round(self.ports.clock.now().timestamp() * 1000)
        for connection in connections:
            self.ports.inbox.notify(connection, RightsChanged(), request=f"rights:{connection}:{moment}")
        return len(connections)

    def _require(self, realm: ExchangeName) -> None:
        self.caller.require((Right.CONFIGURE, ResourceRef(ResourceKind.EXCHANGE, realm)))

    def _may_see(self, realm: ExchangeName, user: UserName) -> bool:
        return user == self.caller.name or self.caller.may(Right.CONFIGURE, ResourceRef(ResourceKind.EXCHANGE, realm))

    def _check_realm(self, realm: ExchangeName) -> None:
        found = self.ports.exchanges.find(realm)
        if found is None or found.is_deleting or found.live is None:
            raise NotFound(f"exchange {str(realm)!r} is not a realm: declare it with `live` first")

    def _check_user(self, user: UserName) -> None:
        if self.ports.users.find(user) is None:
            raise NotFound(f"there is no user {str(user)!r}: have an administrator add the user")


def document(user: UserName, realm: ExchangeName, grant: Grant) -> dict[str, object]:
    """Return a grant as the fields of the command `grant`."""
    pattern = grant.pattern
    fields = {"right": grant.right.value, "match": pattern.match.value, "uri": pattern.uri}
    return {"user": user, "exchange": realm, **fields}
