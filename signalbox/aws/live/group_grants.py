"""The grants of all groups of a realm, which a function instance checks once a second.

All sessions of a realm share them. The check is a read of one small item, their version; the grants themselves are
queried only after a change.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from boto3.dynamodb.conditions import Key

from signalbox.aws.live.account_items import DENIES, grants_of
from signalbox.aws.live.items import group_grants_partition
from signalbox.aws.shared.dynamodb import Item, every_item
from signalbox.aws.shared.settings import SystemClock
from signalbox.live.admin.grants import NO_GROUP_GRANTS, GrantSet, GroupGrants
from signalbox.live.admin.principals import GROUP_MARK, PrincipalName
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

KEPT_FOR = timedelta(seconds=1)
MAXIMUM_REALMS = 100


@dataclass(frozen=True, slots=True)
class CachedGroupGrants:
    """The cached grants of the groups of realms."""

    now: Callable[[], datetime] = SystemClock().now
    _known: dict[ExchangeName, tuple[datetime, GroupGrants]] = field(default_factory=dict)

    def known(self, realm: ExchangeName) -> GroupGrants | None:
        """Return the cached grants of a realm, or None: then the item of their version must be read."""
        known = self._known.get(realm)
        return known[1] if known is not None and self.now() - known[0] < KEPT_FOR else None

    def read(self, table: "Table", realm: ExchangeName, version_item: Item | None, *, read_at: datetime) -> GroupGrants:
        """Return the grants of a version that was read at a time, and cache them; query them only if it is new."""
        version = 0 if version_item is None else int(version_item["version"])
        _, found = self._known.get(realm, (read_at, NO_GROUP_GRANTS))
        if found.version != version:
            found = group_grants(table, realm, version=version)
        if len(self._known) >= MAXIMUM_REALMS:
            self._known.clear()
        self._known[realm] = read_at, found
        return found


def group_grants(table: "Table", realm: ExchangeName, *, version: int) -> GroupGrants:
    """Query the grants of all groups of a realm; they are at least as new as a version that was read before."""
    if not version:
        return NO_GROUP_GRANTS
    condition = Key("pk").eq(group_grants_partition(realm)) & Key("sk").begins_with(GROUP_MARK)
    items = every_item(table.query, {"KeyConditionExpression": condition, "ConsistentRead": True})
    return GroupGrants(version, _by_principal(items))


def _by_principal(items: Iterable[Item]) -> Mapping[PrincipalName, GrantSet]:
    found = {PrincipalName(item["sk"]): GrantSet(grants_of(item), grants_of(item, DENIES)) for item in items}
    return {principal: granted for principal, granted in found.items() if granted.grants or granted.denies}
