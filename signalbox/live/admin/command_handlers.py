"""The handlers of commands about live. A command may be received twice: the second time it changes nothing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from signalbox.control.delivery import ONCE, CommandDelivery
from signalbox.exchange.control.caller import Caller, find_caller
from signalbox.exchange.control.errors import NotFound, NotPermitted
from signalbox.exchange.model.records import LiveSettings, ResourceKind, ResourceRef
from signalbox.history.event import HistoryEvent
from signalbox.live.admin import commands, events
from signalbox.live.admin.concerned_sessions import RightsNotices
from signalbox.live.admin.explanation import explanation
from signalbox.live.admin.ports import LiveAdminStore
from signalbox.live.admin.rights_changes import RightsChanges, listed_grant
from signalbox.live.admin.rights_sources import RightsSources, RightsSourcesReader
from signalbox.live.rights.grants import GrantSet
from signalbox.live.rights.principals import EVERYONE, PrincipalName, group_of, principal_of, user_of
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.nearest import suggestion
from signalbox.parallel import ParallelMap
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right, Role


@dataclass(frozen=True, slots=True)
class LiveCommandHandlers:
    """The handlers of the commands of users, and of the stage's administrators."""

    store: LiveAdminStore
    notices: RightsNotices
    record: Callable[[Sequence[HistoryEvent]], None]

    def answer(self, user: UserName | None, command: commands.Command, *, delivery: CommandDelivery = ONCE) -> object:
        """Execute a command and return its result; `user` is None for the stage's administrators.

        Raises `RejectedError` and `UnavailableError`.
        """
        caller = find_caller(self.store.users, user)
        changes = RightsChanges(self.store, self.notices, self.record, caller.name, delivery)
        return _Execution(self.store, changes, caller).answer(command)


@dataclass(frozen=True, slots=True)
class _Execution:
    store: LiveAdminStore
    changes: RightsChanges
    caller: Caller

    def answer(self, command: commands.Command) -> object:
        handlers: dict[type, Callable[[Any], object]] = {
            commands.GiveGrant: self._give,
            commands.TakeGrant: self._take,
            commands.ListGrants: self._grants,
            commands.ChangeMembers: self._change_members,
            commands.SetUserGroups: self._set_user_groups,
            commands.ListMembers: self._members,
            commands.ExplainAccess: self._explain,
            commands.PutSecret: self._put_secret,
            commands.PutSecrets: self._put_secrets,
            commands.ForgetUser: self._forget_user,
        }
        return handlers[type(command)](command)

    def _give(self, command: commands.GiveGrant) -> object:
        self._require(command.realm)
        live = self._live(command.realm)
        user = user_of(command.principal)
        if user is not None:
            self._check_user(user, live)
        return self.changes.give(command)

    def _take(self, command: commands.TakeGrant) -> object:
        self._require(command.realm)
        return self.changes.take(command)

    def _change_members(self, command: commands.ChangeMembers) -> object:
        self._require(command.realm)
        if not command.is_removal:
            live = self._live(command.realm)
            for user in command.users:
                self._check_user(user, live)
        return self.changes.change_members(command)

    def _set_user_groups(self, command: commands.SetUserGroups) -> object:
        self._require(command.realm)
        live = self._live(command.realm)
        for user in command.groups:
            self._check_user(user, live)
        return self.changes.set_groups(command)

    def _grants(self, command: commands.ListGrants) -> object:
        realms = [command.realm] if command.realm else self._realms()
        # The realms of others at a time, each of which is some reads; of an own one all users are read at a time.
        others = [one for one in realms if not self._may_configure(one)]
        found = dict(zip(others, self._parallel_map(partial(self._visible_grants, command), others), strict=True))
        return [
            document
            for realm in realms
            for principal, granted in (found[realm] if realm in found else self._visible_grants(command, realm))
            for document in _documents(realm, principal, granted)
        ]

    def _visible_grants(
        self, command: commands.ListGrants, realm: ExchangeName
    ) -> list[tuple[PrincipalName, GrantSet]]:
        wanted = command.principal
        may_see, own = self._may_configure(realm), self._own_principals(realm)
        named = (self._users(realm) if may_see else own) if wanted is None else [wanted]
        visible = [one for one in named if group_of(one) is None and (may_see or one in own)]
        found = self._parallel_map(lambda one: self.store.grants.find(realm, one).granted, visible)
        of_groups = sorted(self.store.grants.of_groups(realm).by_principal.items())
        return [
            *zip(visible, found, strict=True),
            *(one for one in of_groups if (may_see or one[0] in own) and wanted in (None, one[0])),
        ]

    @property
    def _parallel_map(self) -> ParallelMap:
        return self.changes.notices.sessions.parallel_map

    def _users(self, realm: ExchangeName) -> Sequence[PrincipalName]:
        names = {one.name for one in self.store.users.every()} | set(self.store.grants.grantees(realm))
        return [PrincipalName(name) for name in sorted(names)]

    def _own_principals(self, realm: ExchangeName) -> frozenset[PrincipalName]:
        name = self.caller.name
        if name is None:
            return frozenset()
        groups = self.store.groups.of_user(realm, name)
        return frozenset({PrincipalName(name), EVERYONE, *map(principal_of, groups)})

    def _members(self, command: commands.ListMembers) -> object:
        self._live(command.realm)
        realm, groups, name = command.realm, self.store.groups, self.caller.name
        if name is None or self._may_configure(realm):
            found = groups.members(realm, command.group)
        else:
            found = [(one, name) for one in sorted(groups.of_user(realm, name)) if command.group in (None, one)]
        return [{"exchange": realm, "group": one, "user": user} for one, user in found]

    def _explain(self, command: commands.ExplainAccess) -> object:
        realms = [command.realm] if command.realm else self._realms()
        is_own = command.user == self.caller.name and not command.groups
        visible = [one for one in realms if is_own or self._may_configure(one)]
        if command.realm and not visible:
            self._require(command.realm)
        return [self._explanation(command, realm) for realm in visible]

    def _explanation(self, command: commands.ExplainAccess, realm: ExchangeName) -> Mapping[str, object]:
        live = self._live(realm)
        reader = RightsSourcesReader(self.store, realm, self.store.grants.of_groups(realm))
        sources = (None if command.groups else reader.of_user(command.user)) or self._of_token(command, live, reader)
        shown = sources if self._may_configure(realm) else sources.without_other_groups()
        return explanation(shown, command.right, command.topic)

    def _of_token(
        self, command: commands.ExplainAccess, live: LiveSettings, reader: RightsSourcesReader
    ) -> RightsSources:
        self._check_user(command.user, live)
        groups = frozenset(command.groups or ())
        return reader.of_token(command.user, role=command.role, groups=groups)

    def _put_secret(self, command: commands.PutSecret) -> object:
        user = command.user or self.caller.name
        if user is None:
            raise NotFound("administrators have no secret: name a user with `user`")
        if user != self.caller.name and self.caller.role is not Role.ADMIN:
            raise NotPermitted(f"only administrators may replace the secret of user {str(user)!r}")
        return self._stored({user: command.credentials})[0]

    def _put_secrets(self, command: commands.PutSecrets) -> object:
        if self.caller.role is not Role.ADMIN:
            raise NotPermitted("only administrators may replace the secrets of several users")
        return self._stored({one.user: one.credentials for one in command.secrets if one.user is not None})

    def _stored(self, secrets: Mapping[UserName, StoredSecret]) -> list[dict[str, object]]:
        """Store the credentials of users, and return the results. Raises `NotFound` before anything is stored."""
        known = self.store.users.find_all(secrets)
        missing = [repr(str(user)) for user in secrets if user not in known]
        if missing:
            raise NotFound(f"there is no user {', '.join(missing)}: have an administrator add the user")
        delivery = self.changes.delivery
        for user in secrets if delivery.is_repeated else ():
            self.changes.refuse_overtaken(user, "the secret", self.store.secrets.changed_at(user))
        self.store.secrets.put(secrets, sent_at=delivery.sent_at)
        notices = self.changes.notices
        at = notices.clock.now()
        self.changes.record([events.secret_changed(user, by=self.caller.name, at=at) for user in secrets])
        notices.settle()  # after it no function instance admits sessions by the earlier secrets
        connections = notices.sessions.joined_by_secret(self._realms(), secrets)
        notices.end(connections, "the user's secret was replaced: join with the new one")
        return [
            {"user": user, "methods": sorted(method.value for method in credentials.methods)}
            for user, credentials in secrets.items()
        ]

    def _forget_user(self, command: commands.ForgetUser) -> object:
        if self.caller.role is not Role.ADMIN:
            raise NotPermitted(f"only administrators may remove user {str(command.user)!r}")
        self.changes.refuse_overtaken(command.user, "the rights")
        live = self.store.exchanges.live()
        for one in live:
            if one.live is not None and one.live.anonymous == command.user:
                self.changes.refuse_anonymous(one)
        # Also those that are no realms now.
        realms = [one.name for one in self.store.exchanges.every() if one.resource.is_ordered]
        trusting = [one.name for one in live if one.live is not None and one.live.issuers]
        return self.changes.remove_user(command.user, realms, trusting)

    def _realms(self) -> Sequence[ExchangeName]:
        return [one.name for one in self.store.exchanges.every() if one.is_live]

    def _require(self, realm: ExchangeName) -> None:
        self.caller.require((Right.CONFIGURE, ResourceRef(ResourceKind.EXCHANGE, realm)))

    def _may_configure(self, realm: ExchangeName) -> bool:
        return self.caller.may(Right.CONFIGURE, ResourceRef(ResourceKind.EXCHANGE, realm))

    def _live(self, realm: ExchangeName) -> LiveSettings:
        found = self.store.exchanges.find(realm)
        if found is None or found.is_deleting or found.live is None:
            near = suggestion(realm, [one for one in self._realms() if self._may_configure(one)])
            raise NotFound(f"exchange {str(realm)!r} is not live: declare it with `live` first{near}")
        return found.live

    def _check_user(self, user: UserName, live: LiveSettings) -> None:
        """Raise `NotFound` for an unknown user; those of a realm's identity providers and cluster are not known."""
        if not (live.issuers or live.arvados_api) and self.store.users.find(user) is None:
            raise NotFound(f"there is no user {str(user)!r}: `signalbox user list` shows them, `user add` adds one")


def _documents(realm: ExchangeName, principal: PrincipalName, granted: GrantSet) -> Iterator[dict[str, object]]:
    for grant in granted.grants:
        yield listed_grant(principal, realm, grant, is_deny=False)
    for deny in granted.denies:
        yield listed_grant(principal, realm, deny, is_deny=True)
