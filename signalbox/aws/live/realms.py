"""The settings of realms, which a function instance reads once a second and not for every batch.

All connections of a realm share the record of its exchange, and DynamoDB reads one item 3,000 times a second at most:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
Only settings are as old as that. Users, their roles and their grants are read for every batch, because no event that
is published after a right was revoked may reach the user.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.aws.exchange.items import exchange_of, record_key
from signalbox.aws.shared.dynamodb import Item
from signalbox.aws.shared.settings import SystemClock
from signalbox.exchange.model.records import LiveSettings, ResourceKind, ResourceRef
from signalbox.sarracenia.rights.names import ExchangeName

EXCHANGE = str(ResourceKind.EXCHANGE)  # the sort key of such a record
KEPT_FOR = timedelta(seconds=1)
MAXIMUM_REALMS = 1_000


@dataclass(frozen=True, slots=True)
class RealmSettings:
    """The cached settings of realms. A missing realm is not cached, so that a new one can be joined at once."""

    now: Callable[[], datetime] = SystemClock().now
    _known: dict[ExchangeName, tuple[datetime, LiveSettings]] = field(default_factory=dict)

    def known(self, realm: ExchangeName) -> LiveSettings | None:
        """Return the cached settings of a realm, or None: then its record must be read."""
        known = self._known.get(realm)
        return known[1] if known is not None and self.now() - known[0] < KEPT_FOR else None

    def read(self, realm: ExchangeName, items: Iterable[Item], *, read_at: datetime) -> LiveSettings | None:
        """Return the settings of a realm in the items that were read at a time, and cache them.

        None if the exchange does not exist, is not live, or is being deleted.
        """
        exchange = next((exchange_of(item) for item in items if item["sk"] == EXCHANGE), None)
        if exchange is None or exchange.is_deleting or exchange.live is None:
            return None
        if len(self._known) >= MAXIMUM_REALMS:
            self._known.clear()
        self._known[realm] = read_at, exchange.live
        return exchange.live


def realm_key(realm: ExchangeName) -> Item:
    """Return the key of the record of a realm's exchange."""
    return record_key(ResourceRef(ResourceKind.EXCHANGE, realm))
