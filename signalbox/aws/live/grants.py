"""Grants and denies of users and groups, the members of groups, and users' credentials in the table `Live`."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from boto3.dynamodb.conditions import Key

from signalbox.aws.live.account_items import (
    DENIES,
    GROUPS,
    LIMITED,
    credentials_item,
    documents,
    granted_split,
    grants_item,
    grants_of,
    group_grants_item,
    own_grants_of,
    stage_groups_of,
)
from signalbox.aws.live.group_grants import group_grants
from signalbox.aws.live.items import (
    GRANTS,
    grantee_key,
    grants_key,
    group_grants_key,
    group_grants_version_key,
    member_key,
    principal_key,
    secret_key,
)
from signalbox.aws.shared.backoff import BACKOFF
from signalbox.aws.shared.dynamodb import Item, every_item, put_all, transacted
from signalbox.backoff import Backoff
from signalbox.live.admin.ports import GrantsTooLarge, StoredGrants, TooManyGroups
from signalbox.live.rights.grants import GrantSet, GroupGrants
from signalbox.live.rights.principals import GroupName, PrincipalName, group_of
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.sarracenia.rights.names import ExchangeName, UserName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

# Of the lists of one principal as JSON: DynamoDB's items have at most 400 KB, and its lists are a little longer.
MAXIMUM_BYTES = 256_000
MAXIMUM_GROUPS = 1_000  # of a user in a realm: they are read for each batch of events that is posted


# The kind of a transaction's write, and its arguments without the name of the table.
_Write = tuple[str, Item]


@dataclass(frozen=True, slots=True)
class DynamoGrants:
    """`Grants`: two items for each user and realm, and one for each group and realm."""

    table: "Table"

    def find(self, realm: ExchangeName, principal: PrincipalName) -> StoredGrants:
        """Return the grants and denies of a principal in a realm."""
        if group_of(principal) is not None:
            item = self.table.get_item(Key=group_grants_key(realm, principal), ConsistentRead=True).get("Item", {})
            return StoredGrants(grants_of(item), _version(item), grants_of(item, DENIES))
        items = self._items(grants_key(realm, principal)["pk"])
        by_kind = {item["sk"]: item for item in items}
        own = own_grants_of(by_kind)
        return StoredGrants(own.grants, _version(by_kind.get(GRANTS, {})), own.denies)

    def save(
        self, realm: ExchangeName, principal: PrincipalName, granted: GrantSet, *, replacing: StoredGrants
    ) -> bool:
        """Store them under the next version; return False if the stored ones are not `replacing` any more.

        Raises `GrantsTooLarge`.
        """
        size = len(json.dumps([documents(granted.grants), documents(granted.denies)]))
        if size > MAXIMUM_BYTES:
            raise GrantsTooLarge(
                f"the grants of {principal!r} in {str(realm)!r} take {size} bytes; one principal may have at most "
                f"{MAXIMUM_BYTES}: grant a prefix, or a pattern with {{user}} or {{group}}"
            )
        to_writes = _user_writes if group_of(principal) is None else _group_writes
        writes = to_writes(realm, principal, granted, replacing)
        return all(transacted(self.table, [_named(self.table, kind, one) for kind, one in writes]))

    def of_groups(self, realm: ExchangeName) -> GroupGrants:
        """Return the grants and denies of all groups in a realm."""
        version = self.table.get_item(Key=group_grants_version_key(realm), ConsistentRead=True).get("Item")
        return group_grants(self.table, realm, version)

    def grantees(self, realm: ExchangeName) -> Sequence[UserName]:
        """Return the users with grants or denies of their own."""
        return [UserName(item["sk"]) for item in self._items(grantee_key(realm, "")["pk"])]

    def _items(self, partition: str) -> Sequence[Item]:
        query = {"KeyConditionExpression": Key("pk").eq(partition), "ConsistentRead": True}
        return list(every_item(self.table.query, query))


@dataclass(frozen=True, slots=True)
class DynamoGroups:
    """`Groups`: the set of a user's groups in the partition of the user's grants, and an item for each member."""

    table: "Table"

    def of_user(self, realm: ExchangeName, user: UserName) -> Collection[GroupName]:
        """Return the groups of a user in a realm."""
        item = self.table.get_item(Key=principal_key(realm, user), ConsistentRead=True).get("Item")
        return stage_groups_of(item)

    def members(self, realm: ExchangeName, group: GroupName | None = None) -> Sequence[tuple[GroupName, UserName]]:
        """Return the members of a group, or of all groups of a realm, sorted."""
        first = member_key(realm, group or GroupName(""), "")
        key = Key("pk").eq(first["pk"])
        condition = key if group is None else key & Key("sk").begins_with(first["sk"])
        items = every_item(self.table.query, {"KeyConditionExpression": condition, "ConsistentRead": True})
        return sorted((GroupName(item["group"]), UserName(item["user"])) for item in items)

    def add(self, realm: ExchangeName, group: GroupName, user: UserName) -> bool:
        """Add a user to a group; return whether the user was no member. Raises `TooManyGroups`."""
        if group in self.of_user(realm, user):
            return False
        change = {
            "Key": principal_key(realm, user),
            "UpdateExpression": "SET realm = :realm, #user = :user ADD #groups :groups",
            "ConditionExpression": "attribute_not_exists(#groups) OR size(#groups) < :maximum",
            "ExpressionAttributeNames": {"#groups": GROUPS, "#user": "user"},
            "ExpressionAttributeValues": {
                ":realm": realm,
                ":user": user,
                ":groups": {group},
                ":maximum": MAXIMUM_GROUPS,
            },
        }
        member = member_key(realm, group, user) | {"realm": realm, "group": group, "user": user}
        if not self._change(("Update", change), ("Put", {"Item": member})):
            raise TooManyGroups(
                f"user {str(user)!r} is in {MAXIMUM_GROUPS} groups of {str(realm)!r}, which is the maximum"
            )
        return True

    def remove(self, realm: ExchangeName, group: GroupName, user: UserName) -> bool:
        """Remove a user from a group; return whether the user was a member."""
        existed = group in self.of_user(realm, user)
        change = {
            "Key": principal_key(realm, user),
            "UpdateExpression": "DELETE #groups :groups",
            "ExpressionAttributeNames": {"#groups": GROUPS},
            "ExpressionAttributeValues": {":groups": {group}},
        }
        self._change(("Update", change), ("Delete", {"Key": member_key(realm, group, user)}))
        return existed

    def _change(self, *writes: _Write) -> bool:
        return all(transacted(self.table, [_named(self.table, kind, one) for kind, one in writes]))


@dataclass(frozen=True, slots=True)
class DynamoSecrets:
    """`Secrets`: an item for each user."""

    table: "Table"
    backoff: Backoff = BACKOFF

    def put(self, secrets: Mapping[UserName, StoredSecret]) -> None:
        """Store users' credentials, replacing older ones, 25 in a call. Raises `ItemBusy`; some may then be stored."""
        items = [credentials_item(user, credentials) for user, credentials in secrets.items()]
        put_all(self.table, items, backoff=self.backoff)

    def remove(self, user: UserName) -> None:
        """Delete a user's credentials. Deleting twice is harmless."""
        self.table.delete_item(Key=secret_key(user))


def _user_writes(
    realm: ExchangeName, user: PrincipalName, granted: GrantSet, replacing: StoredGrants
) -> Sequence[_Write]:
    """Return the writes of a user's grants and denies; grants that a deny may limit are stored with the denies."""
    unlimited, limited = granted_split(granted)
    item = grants_item(realm, user, unlimited, version=replacing.version + 1)
    writes: list[_Write] = [("Put", {"Item": item, **_as_read(replacing)})]
    if granted.denies or replacing.denies:
        values = {":realm": realm, ":user": user, ":denies": documents(granted.denies), ":limited": documents(limited)}
        update = {
            "Key": principal_key(realm, user),
            "UpdateExpression": f"SET realm = :realm, #user = :user, {DENIES} = :denies, {LIMITED} = :limited",
            "ExpressionAttributeNames": {"#user": "user"},
            "ExpressionAttributeValues": values,
        }
        writes.append(("Update", update))
    grantee = grantee_key(realm, user)
    is_grantee = bool(granted.grants or granted.denies)
    return [*writes, ("Put", {"Item": grantee | {"realm": realm}}) if is_grantee else ("Delete", {"Key": grantee})]


def _group_writes(
    realm: ExchangeName, principal: PrincipalName, granted: GrantSet, replacing: StoredGrants
) -> Sequence[_Write]:
    item = group_grants_item(realm, principal, granted, version=replacing.version + 1)
    raised = {
        "Key": group_grants_version_key(realm),
        "UpdateExpression": "ADD #version :one",
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":one": 1},
    }
    return [("Put", {"Item": item, **_as_read(replacing)}), ("Update", raised)]


def _named(table: "Table", kind: str, arguments: Item) -> "TransactWriteItemTypeDef":
    # The kind is one of the keys of the type.
    return cast("TransactWriteItemTypeDef", {kind: {"TableName": table.name, **arguments}})


def _as_read(replacing: StoredGrants) -> Item:
    """Return the condition that the stored version is the one that was read."""
    if not replacing.version:
        return {"ConditionExpression": "attribute_not_exists(pk)"}
    return {
        "ConditionExpression": "#version = :version",
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":version": replacing.version},
    }


def _version(item: Item) -> int:
    return int(item.get("version", 0))
