"""The settings of realms, which a function instance reads once a second and not for every batch.

All connections of a realm share the record of its exchange, and DynamoDB reads one item 3,000 times a second at most:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from signalbox.aws.exchange.items import EXCHANGE_RECORD, record_key
from signalbox.aws.live.recent import Moment, Recent
from signalbox.aws.shared.expressions import Item
from signalbox.exchange.model.records import LiveSettings, ResourceKind, ResourceRef
from signalbox.sarracenia.rights.names import ExchangeName

EXCHANGE = str(ResourceKind.EXCHANGE)  # the sort key of such a record


@dataclass(frozen=True, slots=True)
class RealmSettings:
    """The cached settings of realms. A missing realm is not cached, so that a new one can be joined at once."""

    recent: Recent[ExchangeName, LiveSettings] = field(default_factory=Recent)

    def now(self) -> Moment:
        """Return the moment at which a read begins."""
        return self.recent.now()

    def known(self, realm: ExchangeName) -> LiveSettings | None:
        """Return the cached settings of a realm, or None: then its record must be read."""
        return self.recent.get(realm)

    def read(self, realm: ExchangeName, items: Iterable[Item], *, read_at: Moment) -> LiveSettings | None:
        """Return the settings of a realm in the items that were read at a time, and cache them.

        None if the exchange does not exist, is not live, or is being deleted.
        """
        found = settings_in(items)
        if found is not None:
            self.recent.put(realm, found, read_at=read_at)
        return found


def settings_in(items: Iterable[Item]) -> LiveSettings | None:
    """Return the settings of the realm in items; None if it does not exist, is not live, or is being deleted."""
    exchange = next((EXCHANGE_RECORD.read(item) for item in items if item["sk"] == EXCHANGE), None)
    return None if exchange is None or exchange.is_deleting else exchange.live


def realm_key(realm: ExchangeName) -> Item:
    """Return the key of the record of a realm's exchange."""
    return record_key(ResourceRef(ResourceKind.EXCHANGE, realm))
