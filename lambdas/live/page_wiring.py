"""The wiring of the function `page`, made once for each function instance."""

import os
from functools import cache

import boto3

from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.health import Health
from signalbox.aws.shared.settings import Settings


@cache
def settings() -> Settings:
    """Return the function's settings."""
    return Settings(os.environ)


@cache
def exchanges() -> DynamoExchanges:
    """Return the exchanges; those with live settings are realms."""
    return DynamoExchanges(boto3.resource("dynamodb").Table(settings().text("EXCHANGE_TABLE")))


@cache
def health() -> Health:
    """Return the health check."""
    queues = {"inbox": settings().text("LIVE_INBOX_URL"), "outbox": settings().text("LIVE_OUTBOX_URL")}
    return Health(boto3.resource("dynamodb").Table(settings().text("LIVE_TABLE")), boto3.client("sqs"), queues)
