"""The sources of a user's rights in a realm, such as role, grants and groups, as commands read and explain them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from signalbox.exchange.model.ports import Users
from signalbox.live.admin.ports import Grants, Groups
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.model.state import Session
from signalbox.live.rights.grants import GrantSet, GroupGrants, Rights
from signalbox.live.rights.principals import GroupName, PrincipalName, user_of
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role


@dataclass(frozen=True, slots=True)
class RightsSources:
    """A user's role, own grants and groups in a realm, and the grants of all groups; for one session if it is named.

    The user of a token (`is_token`) owns no exchange by name.
    """

    realm: ExchangeName
    user: UserName
    role: Role
    ownership: Ownership
    own: GrantSet
    stage_groups: frozenset[GroupName]
    group_grants: GroupGrants
    token_groups: frozenset[GroupName] = frozenset()
    is_token: bool = False
    is_anonymous: bool = False

    @property
    def groups(self) -> frozenset[GroupName]:
        """Return the groups of the stage and those of the token."""
        return self.stage_groups | self.token_groups

    @property
    def rights(self) -> Rights:
        """Return the rights that follow."""
        own, groups, group_grants = self.own, self.groups, self.group_grants
        if self.is_token:
            return Rights.of_token(
                self.realm, user=self.user, role=self.role, grants=own, groups=groups, group_grants=group_grants
            )
        return Rights.in_realm(
            self.realm,
            user=self.user,
            role=self.role,
            ownership=self.ownership,
            grants=own,
            groups=groups,
            group_grants=group_grants,
            is_anonymous=self.is_anonymous,
        )

    def without_other_groups(self) -> "RightsSources":
        """Return the sources without the grants and denies of groups that the user is not in."""
        by_principal = dict(self.group_grants.of(self.groups, is_anonymous=False))
        return replace(self, group_grants=replace(self.group_grants, by_principal=by_principal))

    def with_granted(self, principal: PrincipalName, granted: GrantSet) -> "RightsSources":
        """Return the sources after the grants and denies of a principal were replaced."""
        user = user_of(principal)
        if user is not None:
            return replace(self, own=granted) if user == self.user else self
        by_principal = {**self.group_grants.by_principal, principal: granted}
        return replace(self, group_grants=replace(self.group_grants, by_principal=by_principal))


Change = Callable[[RightsSources], RightsSources]


class RightsStores(Protocol):
    """The stores of users, and of their grants and groups."""

    @property
    def users(self) -> Users:
        """Return the users."""

    @property
    def grants(self) -> Grants:
        """Return the grants and denies."""

    @property
    def groups(self) -> Groups:
        """Return the groups."""


@dataclass(frozen=True, slots=True)
class RightsSourcesReader:
    """Reads the sources of users' rights in one realm; `group_grants` were read once for all."""

    ports: RightsStores
    realm: ExchangeName
    group_grants: GroupGrants

    def of_user(self, name: UserName, *, is_anonymous: bool = False) -> RightsSources | None:
        """Return the sources of a user of the stage, or None for an unknown one."""
        user = self.ports.users.find(name)
        if user is None:
            return None
        own, groups = self._stored(name)
        return RightsSources(
            self.realm, name, user.role, user.ownership, own, groups, self.group_grants, is_anonymous=is_anonymous
        )

    def of_token(self, name: UserName, *, role: Role, groups: frozenset[GroupName]) -> RightsSources:
        """Return the sources of a token's user: its groups are those of the token and those of the stage."""
        own, stage_groups = self._stored(name)
        return RightsSources(
            self.realm, name, role, Ownership.STRICT, own, stage_groups, self.group_grants, groups, is_token=True
        )

    def of_session(self, session: Session) -> RightsSources | None:
        """Return the sources of a joined session; None if it has no rights because its user was removed."""
        if session.identity is None:
            return None
        name, token = UserName(session.identity.authid), session.token
        if token is None:
            return self.of_user(name, is_anonymous=session.is_anonymous)
        return None if self.ports.users.find(name) else self.of_token(name, role=token.role, groups=groups_of(token))

    def _stored(self, name: UserName) -> tuple[GrantSet, frozenset[GroupName]]:
        own = self.ports.grants.find(self.realm, PrincipalName(name)).granted
        return own, frozenset(self.ports.groups.of_user(self.realm, name))


def groups_of(token: TokenIdentity) -> frozenset[GroupName]:
    """Return the groups of a token."""
    return frozenset(map(GroupName, token.groups))
