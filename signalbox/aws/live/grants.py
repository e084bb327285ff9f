"""Grants and denies of users and groups, the members of groups, and users' credentials in the table `Live`."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from signalbox.aws.live.account_items import (
    DENIES,
    GROUPS,
    LIMITED,
    credentials_item,
    documents,
    ended_tokens_item,
    granted_split,
    grants_item,
    grants_of,
    group_grants_item,
    own_grants_of,
    stage_groups_of,
)
from signalbox.aws.live.group_grants import CachedGroupGrants
from signalbox.aws.live.items import (
    GRANTS,
    PRINCIPAL,
    grantee_key,
    grants_key,
    group_grants_key,
    group_grants_version_key,
    member_key,
    principal_key,
    secret_key,
)
from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment
from signalbox.aws.shared.expressions import IS_NEW, Delete, Expression, Item, Put, Update, Write, attr
from signalbox.live.admin.ports import GrantsTooLarge, StoredGrants, TooManyGroups
from signalbox.live.rights.grants import GrantSet, GroupGrants
from signalbox.live.rights.principals import GroupName, PrincipalName, group_of
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.sarracenia.rights.names import ExchangeName, UserName

# Of the lists of one principal as JSON, and of the names of a user's groups: each change writes all of them.
MAXIMUM_BYTES = 32_768
RIGHTS = ("grants", DENIES, LIMITED, GROUPS)  # the lists of a user's items in a realm
MAXIMUM_GROUPS = 1_000  # of a user in a realm: they are read for each batch of events that is posted
# Two commands are handled at a time, and all realms share the table, which takes 4,000 when it is new.
UNITS_A_SECOND, SMALL_BYTES = 1_000, 2_048


@dataclass(frozen=True, slots=True)
class DynamoGrants:
    """`Grants`: two items for each user and realm, and one for each group and realm.

    The grants of groups are queried after a change of their version only, and are the same for all who ask.
    """

    table: DynamoTable
    cached: CachedGroupGrants = field(default_factory=CachedGroupGrants)

    def find(self, realm: ExchangeName, principal: PrincipalName) -> StoredGrants:
        """Return the grants and denies of a principal in a realm."""
        if group_of(principal) is not None:
            item = self.table.get(group_grants_key(realm, principal)) or {}
            return StoredGrants(grants_of(item), _version(item), grants_of(item, DENIES), _changed_at(item))
        by_kind = {item["sk"]: item for item in self._items(grants_key(realm, principal)["pk"])}
        own, item = own_grants_of(by_kind), by_kind.get(GRANTS, {})
        return StoredGrants(own.grants, _version(item), own.denies, _changed_at(item))

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
        size = len(json.dumps([documents(granted.grants), documents(granted.denies)]))
        if size > MAXIMUM_BYTES:
            raise GrantsTooLarge(
                f"the grants of {principal!r} in {str(realm)!r} take {size} bytes; one principal may have at most "
                f"{MAXIMUM_BYTES}: grant a prefix, or a pattern with {{user}} or {{group}}"
            )
        to_writes = _user_writes if group_of(principal) is None else _group_writes
        newest = max((at for at in (sent_at, replacing.changed_at) if at), default=None)
        writes = to_writes(realm, principal, granted, replacing, _sent(newest))
        is_saved = all(self.table.transact(*writes))
        _pace(self.table, size)
        return is_saved

    def of_groups(self, realm: ExchangeName) -> GroupGrants:
        """Return the grants and denies of all groups in a realm."""
        return self.cached.at_version(self.table, realm, self.table.get(group_grants_version_key(realm)))

    def grantees(self, realm: ExchangeName) -> Sequence[UserName]:
        """Return the users with grants or denies of their own."""
        return [UserName(item["sk"]) for item in self._items(grantee_key(realm, "")["pk"])]

    def realms_of(self, user: UserName, realms: Iterable[ExchangeName]) -> Sequence[ExchangeName]:
        """Return those of `realms` in which a user has grants or denies of its own, or groups. Raises `ItemBusy`."""
        of_partition = {grants_key(realm, user)["pk"]: realm for realm in realms}
        keys = [{"pk": partition, "sk": kind} for partition in of_partition for kind in (GRANTS, PRINCIPAL)]
        found = {item["pk"] for item in self.table.get_all(keys) if any(map(item.get, RIGHTS))}
        return [realm for partition, realm in of_partition.items() if partition in found]

    def _items(self, partition: str) -> Iterator[Item]:
        return self.table.query(attr("pk").eq(partition))


@dataclass(frozen=True, slots=True)
class DynamoGroups:
    """`Groups`: the set of a user's groups in the partition of the user's grants, and an item for each member."""

    table: DynamoTable

    def of_user(self, realm: ExchangeName, user: UserName) -> Collection[GroupName]:
        """Return the groups of a user in a realm."""
        return stage_groups_of(self.table.get(principal_key(realm, user)))

    def members(self, realm: ExchangeName, group: GroupName | None = None) -> Sequence[tuple[GroupName, UserName]]:
        """Return the members of a group, or of all groups of a realm, sorted."""
        first = member_key(realm, group or GroupName(""), "")
        of_realm = attr("pk").eq(first["pk"])
        condition = of_realm if group is None else of_realm & attr("sk").begins_with(first["sk"])
        return sorted((GroupName(item["group"]), UserName(item["user"])) for item in self.table.query(condition))

    def changed_at(self, realm: ExchangeName, user: UserName) -> datetime | None:
        """Return when the last command that changed the groups of a user was sent."""
        return _changed_at(self.table.get(principal_key(realm, user)) or {})

    def add(self, realm: ExchangeName, group: GroupName, user: UserName, *, sent_at: datetime | None = None) -> bool:
        """Add a user to a group by a command; return whether the user was not a member. Raises `TooManyGroups`."""
        changed, present = _sent(sent_at), self.of_user(realm, user)
        if group in present:
            if changed:
                self.table.write(Update(principal_key(realm, user), sets=changed))
                _pace(self.table, _size(present))
            return False
        size = _size([*present, group])
        if size > MAXIMUM_BYTES:
            raise TooManyGroups(
                f"the names of the groups of user {str(user)!r} in {str(realm)!r} would take {size} bytes; they may "
                f"take {MAXIMUM_BYTES}"
            )
        change = Update(
            principal_key(realm, user),
            sets={"realm": realm, "user": user, **changed},
            adds={GROUPS: {group}},
            condition=attr(GROUPS).not_exists() | attr(GROUPS).size().lt(MAXIMUM_GROUPS),
        )
        member = member_key(realm, group, user) | {"realm": realm, "group": group, "user": user}
        is_added = all(self.table.transact(change, Put(member)))
        _pace(self.table, size)  # a refused transaction costs as much
        if not is_added:
            raise TooManyGroups(
                f"user {str(user)!r} is in {MAXIMUM_GROUPS} groups of {str(realm)!r}, which is the maximum"
            )
        return True

    def remove(self, realm: ExchangeName, group: GroupName, user: UserName, *, sent_at: datetime | None = None) -> bool:
        """Remove a user from a group by a command; return whether the user was a member."""
        present = self.of_user(realm, user)
        change = Update(principal_key(realm, user), takes={GROUPS: {group}}, sets=_sent(sent_at))
        self.table.transact(change, Delete(member_key(realm, group, user)))
        _pace(self.table, _size(present))
        return group in present

    def remove_all(self, realm: ExchangeName, user: UserName, groups: Collection[GroupName]) -> None:
        """Remove a user from groups; the last write ends all memberships at once. Raises `ItemBusy`."""
        self.table.write_all(Delete(member_key(realm, group, user)) for group in groups)
        if groups:
            self.table.write(Update(principal_key(realm, user), takes={GROUPS: set(groups)}))


@dataclass(frozen=True, slots=True)
class DynamoSecrets:
    """`Secrets`: an item for each user."""

    table: DynamoTable

    def changed_at(self, user: UserName) -> datetime | None:
        """Return when the last command that stored the credentials of a user was sent."""
        return _changed_at(self.table.get(secret_key(user)) or {})

    def put(self, secrets: Mapping[UserName, StoredSecret], *, sent_at: datetime | None = None) -> None:
        """Store users' credentials by a command, 25 in a call. Raises `ItemBusy`; some may then be stored."""
        items = (credentials_item(user, credentials) for user, credentials in secrets.items())
        self.table.write_all(Put(item | _sent(sent_at)) for item in items)

    def remove(self, user: UserName, realms: Iterable[ExchangeName], *, now: datetime) -> None:
        """Delete a user's credentials, and refuse in `realms` the user's tokens that were issued before `now`."""
        ended = (Put(ended_tokens_item(realm, user, now=now)) for realm in realms)
        self.table.write_all([Delete(secret_key(user)), *ended])


def _user_writes(
    realm: ExchangeName, user: PrincipalName, granted: GrantSet, replacing: StoredGrants, changed: Item
) -> Sequence[Write]:
    """Return the writes of a user's grants and denies; grants that a deny may limit are stored with the denies."""
    unlimited, limited = granted_split(granted)
    item = grants_item(realm, user, unlimited, version=replacing.version + 1) | changed
    writes: list[Write] = [Put(item, _is_as_read(replacing))]
    if granted.denies or replacing.denies:
        lists = {DENIES: documents(granted.denies), LIMITED: documents(limited)}
        writes.append(Update(principal_key(realm, user), sets={"realm": realm, "user": user, **lists}))
    grantee = grantee_key(realm, user)
    is_grantee = bool(granted.grants or granted.denies)
    return [*writes, Put(grantee | {"realm": realm}) if is_grantee else Delete(grantee)]


def _group_writes(
    realm: ExchangeName, principal: PrincipalName, granted: GrantSet, replacing: StoredGrants, changed: Item
) -> Sequence[Write]:
    item = group_grants_item(realm, principal, granted, version=replacing.version + 1) | changed
    raised = Update(group_grants_version_key(realm), adds={"version": 1})
    return [Put(item, _is_as_read(replacing)), raised]


def _pace(table: DynamoTable, size: int) -> None:
    """Wait after a transaction with a large item until its command may write as much again."""
    if size > SMALL_BYTES:
        table.backoff.clock.sleep(2 * size / 1024 / UNITS_A_SECOND)


def _size(groups: Iterable[GroupName]) -> int:
    return sum(len(group.encode()) for group in groups)


def _is_as_read(replacing: StoredGrants) -> Expression:
    return attr("version").eq(replacing.version) if replacing.version else IS_NEW


def _version(item: Item) -> int:
    return int(item.get("version", 0))


def _sent(at: datetime | None) -> Item:
    """Return the attribute of when the newest command that changed an item was sent."""
    return {} if at is None else {"changed_at": milliseconds(at)}


def _changed_at(item: Item) -> datetime | None:
    return moment(item["changed_at"]) if "changed_at" in item else None
