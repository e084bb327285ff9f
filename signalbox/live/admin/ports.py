"""The ports of the commands about live, as Protocols.

All methods raise `RejectedError` for permanent failures and `UnavailableError` for failures that may be retried.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from signalbox.errors import RejectedError
from signalbox.exchange.model.ports import Exchanges, Users
from signalbox.live.model.state import ConnectionId, Signal
from signalbox.live.rights.grants import Grant, GrantSet, GroupGrants
from signalbox.live.rights.principals import GroupName, PrincipalName
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.sarracenia.rights.names import ExchangeName, UserName


class GrantsTooLarge(RejectedError):
    """Raised when the grants and denies of a principal in a realm do not fit into an item of the table."""


class TooManyGroups(RejectedError):
    """Raised when a user would be in too many groups of the stage in a realm, by number or by bytes of their names."""


@dataclass(frozen=True, slots=True)
class StoredGrants:
    """The stored grants and denies of a principal in a realm.

    `version` grows with every change and is 0 before the first. `changed_at` is when the newest of the commands that
    changed them was sent.
    """

    grants: tuple[Grant, ...] = ()
    version: int = 0
    denies: tuple[Grant, ...] = ()
    changed_at: datetime | None = None

    @property
    def granted(self) -> GrantSet:
        """Return the grants and denies."""
        return GrantSet(self.grants, self.denies)


class Grants(Protocol):
    """The grants and denies of users and groups, in addition to roles. Reads are strongly consistent."""

    def find(self, realm: ExchangeName, principal: PrincipalName) -> StoredGrants:
        """Return the grants and denies of a principal in a realm."""

    def save(
        self,
        realm: ExchangeName,
        principal: PrincipalName,
        granted: GrantSet,
        *,
        replacing: StoredGrants,
        sent_at: datetime | None = None,
    ) -> bool:
        """Store grants under the next version; return False if the stored grants are not `replacing` any more.

        `sent_at` is when the command was sent.

        Raises `GrantsTooLarge`.
        """

    def of_groups(self, realm: ExchangeName) -> GroupGrants:
        """Return the grants and denies of all groups in a realm."""

    def grantees(self, realm: ExchangeName) -> Sequence[UserName]:
        """Return the users with grants or denies of their own."""

    def realms_of(self, user: UserName, realms: Iterable[ExchangeName]) -> Sequence[ExchangeName]:
        """Return those of `realms` in which a user has grants or denies of its own, or groups."""


class Groups(Protocol):
    """The groups of the stage: their members in each realm. Reads are strongly consistent."""

    def of_user(self, realm: ExchangeName, user: UserName) -> Collection[GroupName]:
        """Return the groups of a user in a realm."""

    def members(self, realm: ExchangeName, group: GroupName | None = None) -> Sequence[tuple[GroupName, UserName]]:
        """Return the members of a group, or of all groups of a realm, sorted."""

    def changed_at(self, realm: ExchangeName, user: UserName) -> datetime | None:
        """Return when the last command that changed the groups of a user was sent."""

    def add(self, realm: ExchangeName, group: GroupName, user: UserName, *, sent_at: datetime | None = None) -> bool:
        """Add a user to a group by a command; return whether the user was not a member. Raises `TooManyGroups`."""

    def remove(self, realm: ExchangeName, group: GroupName, user: UserName, *, sent_at: datetime | None = None) -> bool:
        """Remove a user from a group by a command; return whether the user was a member."""

    def remove_all(self, realm: ExchangeName, user: UserName, groups: Collection[GroupName]) -> None:
        """Remove a user from groups; the last write ends all memberships at once."""


class Secrets(Protocol):
    """The credentials of users, which their secrets are compared with."""

    def changed_at(self, user: UserName) -> datetime | None:
        """Return when the last command that stored the credentials of a user was sent."""

    def put(self, secrets: Mapping[UserName, StoredSecret], *, sent_at: datetime | None = None) -> None:
        """Store users' credentials by a command, replacing older ones. A failure may leave some of them stored."""

    def remove(self, user: UserName, realms: Iterable[ExchangeName], *, now: datetime) -> None:
        """Delete a user's credentials, and refuse tokens of the name in realms that were issued before a time."""


class RightsVersion(Protocol):
    """The version of all users' rights in a stage, by which function instances notice that their caches are old."""

    def increment(self) -> None:
        """Raise the version. The rights must have been written before."""


class SessionNotifier(Protocol):
    """The inboxes of many sessions."""

    def notify_all(self, connections: Sequence[ConnectionId], signal: Signal, *, request: str) -> None:
        """Append a signal to the inbox of each connection; the same request twice is one signal."""


@dataclass(frozen=True, slots=True)
class LiveAdminStore:
    """The stored realms and users, and what decides about the users' rights in the realms."""

    exchanges: Exchanges
    users: Users
    grants: Grants
    groups: Groups
    secrets: Secrets
