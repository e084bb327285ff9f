"""The grants, denies and groups of users in memory."""

from dataclasses import dataclass, field
from datetime import datetime

from signalbox.live.admin.ports import StoredGrants
from signalbox.live.rights.grants import Grant, GroupGrants
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.permissions import Right
from tests.fakes.clock import MemoryTime


@dataclass
class MemoryGrants:
    clock: MemoryTime = field(default_factory=MemoryTime)
    kept: dict[tuple[str, str], StoredGrants] = field(default_factory=dict)
    saved_at: list[datetime] = field(default_factory=list)
    groups: "MemoryGroups | None" = None

    def find(self, realm, principal):
        return self.kept.get((realm, principal), StoredGrants())

    def save(self, realm, principal, granted, *, replacing, sent_at=None):
        if self.find(realm, principal) != replacing:
            return False
        self.saved_at.append(self.clock.now())
        changed_at = max((at for at in (sent_at, replacing.changed_at) if at), default=None)
        self.kept[realm, principal] = StoredGrants(granted.grants, replacing.version + 1, granted.denies, changed_at)
        return True

    def of_groups(self, realm):
        found = {of: kept.granted for (one, of), kept in self.kept.items() if one == realm and of.startswith("@")}
        return GroupGrants(len(found), found)

    def realms_of(self, user, realms):
        groups = self.groups.kept if self.groups else ()
        in_groups = {realm for realm, _, member in groups if member == user}
        granted = {realm for (realm, of), kept in self.kept.items() if of == user and (kept.grants or kept.denies)}
        return [realm for realm in realms if realm in granted | in_groups]

    def grantees(self, realm):
        return sorted(of for one, of in self.kept if one == realm and not of.startswith("@"))


@dataclass
class MemoryGroups:
    clock: MemoryTime = field(default_factory=MemoryTime)
    kept: set[tuple[str, str, str]] = field(default_factory=set)
    removed_at: list[datetime] = field(default_factory=list)
    sent: dict[tuple[str, str], datetime | None] = field(default_factory=dict)

    def changed_at(self, realm, user):
        return self.sent.get((realm, user))

    def of_user(self, realm, user):
        return {group for one, group, member in self.kept if (one, member) == (realm, user)}

    def members(self, realm, group=None):
        return sorted((of, user) for one, of, user in self.kept if one == realm and group in (None, of))

    def add(self, realm, group, user, *, sent_at=None):
        self.sent[realm, user] = sent_at
        is_new = (realm, group, user) not in self.kept
        self.kept.add((realm, group, user))
        return is_new

    def remove(self, realm, group, user, *, sent_at=None):
        self.sent[realm, user] = sent_at
        existed = (realm, group, user) in self.kept
        self.kept.discard((realm, group, user))
        self.removed_at.append(self.clock.now())
        return existed

    def remove_all(self, realm, user, groups):
        for group in groups:
            self.remove(realm, group, user)


def grant(grants, realm, principal, right, uri, *, match="prefix"):
    """Add a grant to those of a principal."""
    stored = grants.find(realm, principal)
    granted = (*stored.grants, Grant(Right(right), TopicPattern(MatchPolicy(match), uri)))
    assert grants.save(realm, principal, StoredGrants(granted, denies=stored.denies), replacing=stored)


def deny(grants, realm, principal, right, uri, *, match="prefix"):
    """Add a deny to those of a principal."""
    stored = grants.find(realm, principal)
    denies = (*stored.denies, Grant(Right(right), TopicPattern(MatchPolicy(match), uri)))
    assert grants.save(realm, principal, StoredGrants(stored.grants, denies=denies), replacing=stored)
