"""The grants of all groups of a realm, which a function instance checks once a second.

All sessions of a realm share them. The check is a read of one small item, their version; the grants themselves are
queried only after a change.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from signalbox.aws.live.account_items import DENIES, grants_of
from signalbox.aws.live.items import group_grants_partition
from signalbox.aws.live.recent import Moment, Recent
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.expressions import Item, attr
from signalbox.live.rights.grants import NO_GROUP_GRANTS, GrantSet, GroupGrants
from signalbox.live.rights.principals import GROUP_MARK, PrincipalName
from signalbox.sarracenia.rights.names import ExchangeName

MAXIMUM_GRANTS = 100_000  # of all realms that are kept: each takes some 1 KB with the index of its realm


@dataclass(frozen=True, slots=True)
class CachedGroupGrants:
    """The cached grants of the groups of realms: the newest that were read, and those whose version is recent."""

    recent: Recent[ExchangeName, int] = field(default_factory=Recent)
    """The versions that were read recently: an old one must not keep the grants."""
    _newest: dict[ExchangeName, GroupGrants] = field(default_factory=dict)

    def now(self) -> Moment:
        """Return the moment at which a read begins."""
        return self.recent.now()

    def known(self, realm: ExchangeName) -> GroupGrants | None:
        """Return the recently checked grants of a realm, or None: then the item of their version must be read."""
        version = self.recent.get(realm)
        newest = self._newest.get(realm, NO_GROUP_GRANTS)
        return newest if version is not None and newest.version >= version else None

    def read(self, table: DynamoTable, realm: ExchangeName, version: Item | None, *, read_at: Moment) -> GroupGrants:
        """Return the grants, given the item of their version and the start of its read, and cache them."""
        found = self.at_version(table, realm, version)
        self.recent.put(realm, found.version, read_at=read_at)
        return found

    def at_version(self, table: DynamoTable, realm: ExchangeName, version: Item | None) -> GroupGrants:
        """Return grants at least as new as the item of a version; they are queried only if it is new."""
        number, newest = _number(version), self._newest.get(realm, NO_GROUP_GRANTS)
        if newest.version >= number:
            return newest
        found = group_grants(table, realm, version)
        if found.size + sum(one.size for one in tuple(self._newest.values())) > MAXIMUM_GRANTS:
            self._newest.clear()
        self._newest[realm] = found
        return found


def group_grants(table: DynamoTable, realm: ExchangeName, version: Item | None) -> GroupGrants:
    """Query the grants of all groups of a realm; they are at least as new as a version that was read before."""
    condition = attr("pk").eq(group_grants_partition(realm)) & attr("sk").begins_with(GROUP_MARK)
    return GroupGrants(_number(version), _by_principal(table.query(condition)))


def _number(version: Item | None) -> int:
    return int((version or {}).get("version", 0))


def _by_principal(items: Iterable[Item]) -> Mapping[PrincipalName, GrantSet]:
    found = {PrincipalName(item["sk"]): GrantSet(grants_of(item), grants_of(item, DENIES)) for item in items}
    return {principal: granted for principal, granted in found.items() if granted.grants or granted.denies}
