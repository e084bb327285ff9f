"""The removal of a user from all realms: the secret, grants, denies, memberships and sessions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from signalbox.live.admin import events
from signalbox.live.admin.concerned_sessions import ConcernedSessions
from signalbox.live.admin.grants import GrantSet
from signalbox.live.admin.ports import LiveAdminPorts
from signalbox.live.admin.principals import GroupName, PrincipalName
from signalbox.live.admin.rights_changes import GrantsChanged
from signalbox.sarracenia.rights.names import ExchangeName, UserName


@dataclass(frozen=True, slots=True)
class EndedRights:
    """The rights that a user had in a realm: the numbers of grants and denies, and the groups of the stage."""

    realm: ExchangeName
    grants: int
    denies: int
    groups: tuple[GroupName, ...]

    @property
    def document(self) -> dict[str, object]:
        """Return the entry of the command's result."""
        return {"exchange": self.realm, "grants": self.grants, "denies": self.denies, "groups": list(self.groups)}


@dataclass(frozen=True, slots=True)
class UserRemoval:
    """Ends the rights of a name in realms, so that the next user of the name does not inherit them."""

    ports: LiveAdminPorts
    by: UserName | None

    def remove(self, user: UserName, realms: Sequence[ExchangeName]) -> dict[str, object]:
        """Remove a user, and return the result of the command `forget_user`. Repeating it is harmless."""
        self.ports.secrets.remove(user)
        ended = list(self._ended_rights(user, realms))
        sessions = ConcernedSessions(self.ports)
        sessions.settle()
        connections = [one for realm in realms for one in sessions.of_users(realm, [user])]
        notified = sessions.end(connections, "the user was removed")
        return {"user": user, "ended": [one.document for one in ended], "notified_sessions": notified}

    def _ended_rights(self, user: UserName, realms: Sequence[ExchangeName]) -> Iterator[EndedRights]:
        principal = PrincipalName(user)
        for realm in realms:
            stored, groups = self.ports.grants.find(realm, principal), self.ports.groups.of_user(realm, user)
            if not (stored.grants or stored.denies or groups):
                continue
            if not self.ports.grants.save(realm, principal, GrantSet(), replacing=stored):
                raise GrantsChanged(f"another command changed the grants of {str(user)!r}: send yours again")
            for group in groups:
                self.ports.groups.remove(realm, group, user)
            self.ports.record([events.rights_ended(user, realm, by=self.by, at=self.ports.clock.now())])
            yield EndedRights(realm, len(stored.grants), len(stored.denies), tuple(sorted(groups)))
