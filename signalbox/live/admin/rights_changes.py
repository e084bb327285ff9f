"""Changes of grants, denies and groups; what a user loses by them ends before the answer.

A command may be received twice: the second time it changes nothing, and notifies the sessions again, because the
function may have been killed before it did. If a command that was sent later has changed the same meanwhile, it is
rejected: what was taken since must not come back.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.control.delivery import ONCE, CommandDelivery
from signalbox.control.pages import listed
from signalbox.errors import Contended, RejectedError
from signalbox.exchange.model.records import ExchangeRecord, latest
from signalbox.history.event import HistoryEvent
from signalbox.live.admin import events
from signalbox.live.admin.commands import ChangeMembers, GiveGrant, SetUserGroups, TakeGrant
from signalbox.live.admin.concerned_sessions import RightsNotices
from signalbox.live.admin.dry_run import JoinedSession, dry_run
from signalbox.live.admin.ports import LiveAdminStore, StoredGrants
from signalbox.live.admin.rights_sources import Change, RightsSources, RightsSourcesReader
from signalbox.live.model.state import ConnectionId
from signalbox.live.rights.grants import Grant, GrantSet, GroupGrants
from signalbox.live.rights.principals import GroupName, PrincipalName, group_of
from signalbox.sarracenia.rights.names import ExchangeName, UserName

MAXIMUM_GRANTS = 200  # of a user's own in a realm: all of them are read for each batch of events that is posted
# Of all groups of a realm: each function instance that serves the realm holds them in its memory.
MAXIMUM_GROUP_GRANTS = 20_000
# Of one command that sets the groups of users: each is a transaction, and the function has half a minute.
MAXIMUM_CHANGES = 200


class GrantsChanged(Contended):
    """Raised when another command changed the grants of the user or group at the same time."""


class TooManyGrants(RejectedError):
    """Raised when a user, or all groups of a realm together, have the maximum number of grants and denies."""


@dataclass(frozen=True, slots=True)
class RightsChanges:
    """Executes the changes that one caller requests; `by` is None for the stage's administrators."""

    store: LiveAdminStore
    notices: RightsNotices
    record: Callable[[Sequence[HistoryEvent]], None]
    by: UserName | None
    delivery: CommandDelivery = ONCE

    def give(self, command: GiveGrant) -> dict[str, object]:
        """Add a grant or a deny. Raises `Overtaken`."""
        stored = self._stored(command)
        present = stored.denies if command.is_deny else stored.grants
        is_new = command.grant not in present
        wanted = _with(stored, (*present, command.grant) if is_new else present, is_deny=command.is_deny)
        if command.is_dry_run:
            return {**grant_document(command), **self._grant_effects(command, wanted)}
        if is_new:
            self._check_number(command, stored)
        self._save(command, wanted, replacing=stored)
        self._take_effect(command, is_revocation=command.is_deny)
        return {**grant_document(command), "granted": is_new}

    def take(self, command: TakeGrant) -> dict[str, object]:
        """Remove a grant or a deny. Raises `Overtaken`."""
        stored = self._stored(command)
        present = stored.denies if command.is_deny else stored.grants
        existed = command.grant in present
        left = tuple(grant for grant in present if grant != command.grant)
        wanted = _with(stored, left, is_deny=command.is_deny)
        if command.is_dry_run:
            return {**grant_document(command), **self._grant_effects(command, wanted)}
        self._save(command, wanted, replacing=stored)
        self._take_effect(command, is_revocation=not command.is_deny)
        return {**grant_document(command), "ungranted": existed}

    def change_members(self, command: ChangeMembers) -> dict[str, object]:
        """Add users to a group, or remove them."""
        document: dict[str, object] = {"exchange": command.realm, "group": command.group}
        if command.is_dry_run:
            connections = self.notices.sessions.of_users([command.realm], command.users)
            return {**document, **self._effects(command.realm, connections, _membership(command))}
        self._refuse_overtaken_groups(command.realm, command.users)
        groups, sent_at = self.store.groups, self.delivery.sent_at
        changing = groups.remove if command.is_removal else groups.add
        changed = [user for user in command.users if changing(command.realm, command.group, user, sent_at=sent_at)]
        self.record([events.membership(command, user, by=self.by, at=self.notices.clock.now()) for user in changed])
        if command.is_removal:
            self.notices.settle()
            self.notices.notify(self.notices.sessions.of_users([command.realm], command.users))
        else:
            self.notices.rights_version.increment()
        return {**document, "changed": changed, "unchanged": [user for user in command.users if user not in changed]}

    def set_groups(self, command: SetUserGroups) -> dict[str, object]:
        """Set the groups of users; one command changes at most `MAXIMUM_CHANGES` memberships, removals first."""
        groups, realm = self.store.groups, command.realm
        self._refuse_overtaken_groups(realm, command.groups)
        present = {user: frozenset(groups.of_user(realm, user)) for user in command.groups}
        ended = [(user, one) for user, wanted in command.groups.items() for one in sorted(present[user] - wanted)]
        begun = [(user, one) for user, wanted in command.groups.items() for one in sorted(wanted - present[user])]
        found = [_one_member(realm, user, group, is_removal=True) for user, group in ended]
        found += [_one_member(realm, user, group, is_removal=False) for user, group in begun]
        for one in found[:MAXIMUM_CHANGES]:
            changing = groups.remove if one.is_removal else groups.add
            changing(realm, one.group, one.users[0], sent_at=self.delivery.sent_at)
        at = self.notices.clock.now()
        self.record([events.membership(one, one.users[0], by=self.by, at=at) for one in found[:MAXIMUM_CHANGES]])
        # Also when nothing has changed: an earlier function may have been killed before it notified the sessions.
        self.notices.settle()
        self.notices.notify(self.notices.sessions.of_users([realm], [*command.groups]))
        return {"exchange": realm, "changed": len(found[:MAXIMUM_CHANGES]), "left": len(found[MAXIMUM_CHANGES:])}

    def remove_user(
        self, user: UserName, realms: Sequence[ExchangeName], trusting: Sequence[ExchangeName]
    ) -> dict[str, object]:
        """Remove a user, and return the result of the command `forget_user`. Repeating it is harmless.

        `trusting` are the realms that trust issuers. The sessions end first, however many rights the user has in
        however many realms.
        """
        self.store.secrets.remove(user, trusting, now=self.notices.clock.now())
        self.notices.settle()
        notified = self.notices.end(self.notices.sessions.of_users(realms, [user]), "the user was removed")
        ended = list(self._ended_rights(user, self.store.grants.realms_of(user, realms)))
        if ended:
            self.notices.settle()  # the next user of the name has no right that a function instance has read before
        return {"user": user, **listed(ended=ended), "notified_sessions": notified}

    def refuse_anonymous(self, realm: ExchangeRecord) -> None:
        """End the admission of sessions without a secret, since the next user of the name is another person."""
        live = None if realm.live is None else replace(realm.live, anonymous=None)
        if self.store.exchanges.save(replace(realm, live=live), replacing=realm) is None:
            raise GrantsChanged(f"another command changed exchange {str(realm.name)!r}: send yours again")

    def end_realm(self, realm: ExchangeName) -> None:
        """Remove all grants, denies and members of groups of a deleted realm: the next one of its name has none."""
        groups_of: dict[UserName, list[GroupName]] = {}
        for group, user in self.store.groups.members(realm):
            groups_of.setdefault(user, []).append(group)
        # of many users at a time: a realm may have any number
        list(
            self.notices.sessions.parallel_map(lambda one: self.store.groups.remove_all(realm, *one), groups_of.items())
        )
        users, groups = self.store.grants.grantees(realm), self.store.grants.of_groups(realm).by_principal
        for principal in (*map(PrincipalName, users), *groups):
            self._replace(realm, principal, GrantSet(), replacing=self.store.grants.find(realm, principal))

    def _ended_rights(self, user: UserName, realms: Sequence[ExchangeName]) -> Iterator[dict[str, object]]:
        principal = PrincipalName(user)
        for realm in realms:
            stored, groups = self.store.grants.find(realm, principal), self.store.groups.of_user(realm, user)
            self._replace(realm, principal, GrantSet(), replacing=stored)
            self.store.groups.remove_all(realm, user, groups)
            self.record([events.rights_ended(user, realm, by=self.by, at=self.notices.clock.now())])
            numbers = {"grants": len(stored.grants), "denies": len(stored.denies)}
            yield {"exchange": realm, **numbers, "groups": sorted(groups)}

    def _take_effect(self, command: GiveGrant | TakeGrant, *, is_revocation: bool) -> None:
        """Let functions read the rights again; return after a revocation when they do."""
        if not is_revocation:
            self.notices.rights_version.increment()
            return
        self.notices.settle()
        self.notices.notify(self.notices.sessions.of_principal(command.realm, command.principal))

    def _stored(self, command: GiveGrant | TakeGrant) -> StoredGrants:
        stored = self.store.grants.find(command.realm, command.principal)
        self.delivery.refuse_overtaken(stored.changed_at, f"the grants of {str(command.principal)!r}")
        return stored

    def _refuse_overtaken_groups(self, realm: ExchangeName, users: Iterable[UserName]) -> None:
        for user in users if self.delivery.is_repeated else ():
            self.refuse_overtaken(user, "the groups", self.store.groups.changed_at(realm, user))

    def refuse_overtaken(self, user: UserName, what: str, changed_at: datetime | None = None) -> None:
        """Raise `Overtaken` if the command comes again, and the user was added or `what` was changed by a later one."""
        known = self.store.users.find(user) if self.delivery.is_repeated else None
        added_at = None if known is None else known.created_at
        self.delivery.refuse_overtaken(latest(changed_at, added_at), f"{what} of {str(user)!r}")

    def _save(self, command: GiveGrant | TakeGrant, granted: GrantSet, *, replacing: StoredGrants) -> None:
        """Store changed grants; without a change, only that this command was the last."""
        is_changed, sent_at = granted != replacing.granted, self.delivery.sent_at
        is_newer = bool(replacing.changed_at and sent_at and sent_at > replacing.changed_at)
        if is_changed or is_newer:
            self._replace(command.realm, command.principal, granted, replacing=replacing)
        if is_changed:
            self.record([events.changed(command, by=self.by, at=self.notices.clock.now())])

    def _replace(
        self, realm: ExchangeName, principal: PrincipalName, granted: GrantSet, *, replacing: StoredGrants
    ) -> None:
        sent_at = self.delivery.sent_at
        if not self.store.grants.save(realm, principal, granted, replacing=replacing, sent_at=sent_at):
            raise GrantsChanged(f"another command changed the grants of {str(principal)!r}: send yours again")

    def _check_number(self, command: GiveGrant, stored: StoredGrants) -> None:
        if group_of(command.principal) is not None:
            present = _number(self.store.grants.of_groups(command.realm))
            if present >= MAXIMUM_GROUP_GRANTS:
                raise TooManyGrants(
                    f"the groups of {str(command.realm)!r} have {MAXIMUM_GROUP_GRANTS} grants and denies, which is the "
                    "maximum: grant a pattern with {group} to @everyone instead of several topics"
                )
        elif len(stored.grants) + len(stored.denies) >= MAXIMUM_GRANTS:
            raise TooManyGrants(
                f"user {str(command.principal)!r} has {MAXIMUM_GRANTS} grants and denies in {str(command.realm)!r}, "
                "which is the maximum: grant a prefix instead of several topics, or grant them to a group"
            )

    def _grant_effects(self, command: GiveGrant | TakeGrant, wanted: GrantSet) -> dict[str, object]:
        connections = self.notices.sessions.of_principal(command.realm, command.principal)

        def change(one: RightsSources) -> RightsSources:
            return one.with_granted(command.principal, wanted)

        return self._effects(command.realm, connections, change)

    def _effects(self, realm: ExchangeName, connections: Sequence[ConnectionId], change: Change) -> dict[str, object]:
        reader = RightsSourcesReader(self.store, realm, self.store.grants.of_groups(realm))
        sessions = [one for one in self.notices.sessions.records(connections) if one.subscriptions]
        sources = self.notices.sessions.parallel_map(reader.of_session, sessions)
        return dry_run(map(JoinedSession, sessions, sources), change)


def grant_document(command: GiveGrant | TakeGrant) -> dict[str, object]:
    """Return a grant or deny as the fields of the command `grant`."""
    return listed_grant(command.principal, command.realm, command.grant, is_deny=command.is_deny)


def listed_grant(principal: PrincipalName, realm: ExchangeName, grant: Grant, *, is_deny: bool) -> dict[str, object]:
    """Return a grant or deny as the fields of the command `grant`."""
    pattern = grant.pattern
    fields = {"right": grant.right.value, "match": pattern.match.value, "uri": pattern.uri}
    return {"user": principal, "exchange": realm, **fields, **({"deny": True} if is_deny else {})}


def _with(stored: StoredGrants, grants: tuple[Grant, ...], *, is_deny: bool) -> GrantSet:
    return GrantSet(stored.grants, grants) if is_deny else GrantSet(grants, stored.denies)


def _one_member(realm: ExchangeName, user: UserName, group: GroupName, *, is_removal: bool) -> ChangeMembers:
    return ChangeMembers(realm, group, (user,), is_removal=is_removal)


def _membership(command: ChangeMembers) -> Change:
    def changed(sources: RightsSources) -> RightsSources:
        group, present = frozenset({command.group}), sources.stage_groups
        return replace(sources, stage_groups=present - group if command.is_removal else present | group)

    return changed


def _number(group_grants: GroupGrants) -> int:
    return sum(len(one.grants) + len(one.denies) for one in group_grants.by_principal.values())
