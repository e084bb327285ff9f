"""The items that decide about users' rights, as a function instance has read them.

Any item is used for a second. It is used for a minute if the stage's number of revocations, which the instance reads
once a second, is still the one that the instance knew before it read the item: `signalbox.live.admin.settling` says why
no revoked right is used when the revocation replies.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from signalbox.aws.live.recent import Moment, Recent
from signalbox.aws.shared.dynamodb import Item
from signalbox.live.admin.settling import UNREVOKED_RIGHTS_KEPT_SECONDS

Address = tuple[str, str, str]
"""The table of an item, and its key."""

REVOCATIONS = "revocations"


class _ReadItem(NamedTuple):
    """An item, and the number of revocations that was known before its read: None if it was unknown."""

    item: Item
    revocations: int | None


@dataclass(frozen=True, slots=True)
class CachedRights:
    """The items by address, and the number of revocations."""

    items: Recent[Address, _ReadItem] = field(default_factory=Recent)
    numbers: Recent[str, int] = field(default_factory=Recent)

    @classmethod
    def by_clock(cls, now: Callable[[], Moment]) -> "CachedRights":
        """Return an empty cache with a clock of its own."""
        return cls(Recent(now), Recent(now))

    def now(self) -> Moment:
        """Return the moment at which a read begins."""
        return self.items.now()

    @property
    def revocations(self) -> int | None:
        """Return the number of revocations of the last read, or None if it is unknown."""
        return self.numbers.get(REVOCATIONS, within=UNREVOKED_RIGHTS_KEPT_SECONDS)

    @property
    def is_number_due(self) -> bool:
        """Return whether the number of revocations must be read with the next items."""
        return self.numbers.get(REVOCATIONS) is None

    def get(self, address: Address) -> Item | None:
        """Return an item that may be used, provided that the number is read if it is due; otherwise None."""
        recent = self.items.get(address)
        if recent is not None:
            return recent.item
        read = self.items.get(address, within=UNREVOKED_RIGHTS_KEPT_SECONDS)
        return None if read is None or read.revocations is None or read.revocations != self.revocations else read.item

    def put(self, address: Address, item: Item, *, read_at: Moment, revocations: int | None) -> None:
        """Keep an item, with the start of its read and the number of revocations that was known then."""
        self.items.put(address, _ReadItem(item, revocations), read_at=read_at)

    def put_revocations(self, number: int, *, read_at: Moment) -> None:
        """Keep the number of revocations, with the start of its read."""
        self.numbers.put(REVOCATIONS, number, read_at=read_at)
