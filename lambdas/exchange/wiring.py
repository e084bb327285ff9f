"""The dependencies of both functions of the exchange, created once for each function instance."""

import os
from functools import cache
from typing import TYPE_CHECKING

import boto3

from signalbox.aws.shared.clock import SystemClock
from signalbox.aws.shared.settings import Settings
from signalbox.exchange.model.names import StageNames

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_sqs.client import SQSClient

CLOCK = SystemClock()


@cache
def settings() -> Settings:
    """Return this function's settings."""
    return Settings(os.environ)


@cache
def names() -> StageNames:
    """Return the names of the stage's resources."""
    return StageNames(settings().text("STAGE"), settings().text("EXCHANGE_PREFIX"))


@cache
def table() -> "Table":
    """Return the table of exchanges."""
    return boto3.resource("dynamodb").Table(settings().text("EXCHANGE_TABLE"))


@cache
def sqs() -> "SQSClient":
    """Return an SQS client."""
    return boto3.client("sqs")


def url_prefix() -> str:
    """Return the URL of a queue of the stage up to its name, as the dead-letter queue's URL has it."""
    return settings().text("EXCHANGE_DEAD_LETTER_QUEUE_URL").rpartition("/")[0] + "/"
