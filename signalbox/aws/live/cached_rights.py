"""The items that decide about users' rights, as a function instance has read them.

An item is used for a minute while the version of all rights, which the instance reads once a second, is the one that it
knew before it read the item, and for a second if it knew none. `signalbox.live.rights.settling` says why no right is
used after the reply to its revocation.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from signalbox.aws.live.recent import Moment, Recent
from signalbox.aws.shared.expressions import Item
from signalbox.live.rights.settling import UNCHANGED_RIGHTS_KEPT_SECONDS

Address = tuple[str, str, str]
"""The table of an item, and its key."""

_OF_STAGE = "stage"


class _ReadItem(NamedTuple):
    """An item, and the version of rights that was known before its read: None if it was unknown."""

    item: Item
    version: int | None


@dataclass(frozen=True, slots=True)
class CachedRights:
    """The items by address, and the version of rights of the stage."""

    items: Recent[Address, _ReadItem] = field(default_factory=Recent)
    versions: Recent[str, int] = field(default_factory=Recent)

    def now(self) -> Moment:
        """Return the moment at which a read begins."""
        return self.items.now()

    @property
    def version(self) -> int | None:
        """Return the version of the last read, or None if it is unknown."""
        return self.versions.get(_OF_STAGE, within=UNCHANGED_RIGHTS_KEPT_SECONDS)

    @property
    def is_version_due(self) -> bool:
        """Return whether the version must be read with the next items."""
        return self.versions.get(_OF_STAGE) is None

    def get(self, address: Address) -> Item | None:
        """Return an item that may be used, provided that the version is read if it is due; otherwise None."""
        read = self.items.get(address, within=UNCHANGED_RIGHTS_KEPT_SECONDS)
        if read is not None and read.version is None:
            read = self.items.get(address)
        elif read is not None and read.version != self.version:
            read = None
        return read and read.item

    def put(self, address: Address, item: Item, *, read_at: Moment, version: int | None) -> None:
        """Keep an item, with the start of its read and the version that was known then."""
        self.items.put(address, _ReadItem(item, version), read_at=read_at)

    def put_version(self, version: int, *, read_at: Moment) -> None:
        """Keep the version, with the start of its read."""
        self.versions.put(_OF_STAGE, version, read_at=read_at)
