"""What both functions of the exchange work with, made once for each function instance."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import boto3

from signalbox.aws.firehose import FirehoseHistory
from signalbox.aws.settings import Settings, SystemClock
from signalbox.aws.telemetry import PowertoolsTelemetry
from signalbox.exchange.naming import StageNames
from signalbox.history.event import HistoryEvent

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_sqs.client import SQSClient

CLOCK = SystemClock()
THREADS = 10  # as many connections as botocore keeps for a client
Value = TypeVar("Value")
Answer = TypeVar("Answer")


@cache
def settings() -> Settings:
    """Return this function's settings."""
    return Settings(os.environ)


@cache
def names() -> StageNames:
    """Return what things are called."""
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
    """Return the URL of any queue here up to its name: that of the dead-letter queue has the same."""
    return settings().text("EXCHANGE_DEAD_LETTER_QUEUE_URL").rpartition("/")[0] + "/"


def record(events: Sequence[HistoryEvent]) -> None:
    """Write events to the lake, and count them."""
    if events:
        history().write(events)
        PowertoolsTelemetry().count(events)


@cache
def history() -> FirehoseHistory:
    """Return the lake."""
    return FirehoseHistory(boto3.client("firehose"), settings().text("HISTORY_STREAM"))


@cache
def pool() -> ThreadPoolExecutor:
    """Return the threads that wait for SQS and DynamoDB."""
    return ThreadPoolExecutor(THREADS)


def side_by_side(function: Callable[[Value], Answer], values: Iterable[Value], /) -> list[Answer]:
    """Return the answers of calls of which several are made at a time.

    All have ended when this ends, however it does: a copy that is sent later could overtake another.
    """
    futures = [pool().submit(function, value) for value in values]
    wait(futures)
    return [future.result() for future in futures]
