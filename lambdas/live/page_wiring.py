"""The wiring of the function `page`, made once for each function instance."""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache

from lambdas.shared import instance
from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.health import Health
from signalbox.aws.shared.kept import Kept
from signalbox.exchange.model.records import ExchangeRecord

# Strangers may request the page as often as its limit permits, and reading a thousand live exchanges costs 520 units.
REALMS_AGE = timedelta(seconds=10)


@cache
def exchanges() -> DynamoExchanges:
    """Return the exchanges."""
    return DynamoExchanges(instance.table("EXCHANGE_TABLE"))


@cache
def live_exchanges() -> Kept[Sequence[ExchangeRecord]]:
    """Return the live exchanges, which are cached for `REALMS_AGE`."""
    return Kept(exchanges().live, REALMS_AGE, instance.CLOCK.now)


@cache
def health() -> Health:
    """Return the health check."""
    queues = {
        "inbox": instance.settings().text("LIVE_INBOX_URL"),
        "outbox": instance.settings().text("LIVE_OUTBOX_URL"),
    }
    return Health(instance.table("LIVE_TABLE"), instance.sqs(), queues)
