"""What the function `page` works with, made once for each function instance."""

import os
from functools import cache

import boto3

from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.health import Health
from signalbox.aws.shared.settings import Settings


@cache
def settings() -> Settings:
    """Return this function's settings."""
    return Settings(os.environ)


@cache
def exchanges() -> DynamoExchanges:
    """Return the table of exchanges, of which some are realms."""
    return DynamoExchanges(boto3.resource("dynamodb").Table(settings().text("EXCHANGE_TABLE")))


@cache
def health() -> Health:
    """Return who looks whether all is well."""
    queues = {"inbox": settings().text("LIVE_INBOX_URL"), "outbox": settings().text("LIVE_OUTBOX_URL")}
    return Health(boto3.resource("dynamodb").Table(settings().text("LIVE_TABLE")), boto3.client("sqs"), queues)
