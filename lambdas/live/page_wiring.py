"""The wiring of the function `page`, made once for each function instance."""

from functools import cache

from lambdas.shared import instance
from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.health import Health


@cache
def exchanges() -> DynamoExchanges:
    """Return the exchanges; those with live settings are realms."""
    return DynamoExchanges(instance.table("EXCHANGE_TABLE"))


@cache
def health() -> Health:
    """Return the health check."""
    queues = {
        "inbox": instance.settings().text("LIVE_INBOX_URL"),
        "outbox": instance.settings().text("LIVE_OUTBOX_URL"),
    }
    return Health(instance.table("LIVE_TABLE"), instance.sqs(), queues)
