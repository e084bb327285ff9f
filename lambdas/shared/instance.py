"""A function instance: its settings, its clock, its AWS clients and the history that it writes."""

import os
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

import boto3

from signalbox.aws.history.firehose import DeliveryStream, FirehoseHistory, Overflow
from signalbox.aws.shared.settings import Settings, SystemClock
from signalbox.aws.shared.telemetry import PowertoolsTelemetry
from signalbox.history.event import HistoryEvent

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import DynamoDBServiceResource, Table
    from mypy_boto3_sqs.client import SQSClient

CLOCK = SystemClock()


@cache
def settings() -> Settings:
    """Return the environment variables of the function."""
    return Settings(os.environ)


@cache
def sqs() -> "SQSClient":
    """Return the SQS client."""
    return boto3.client("sqs")


@cache
def table(variable: str) -> "Table":
    """Return the table whose name is in a variable. Threads may share it: its methods use its thread-safe client."""
    return _dynamodb().Table(settings().text(variable))


@cache
def _dynamodb() -> "DynamoDBServiceResource":
    # One client for all tables of the function: each new one makes the cold start longer.
    return boto3.resource("dynamodb")


@cache
def history() -> FirehoseHistory:
    """Return the history, with the overflow queue for events that Firehose refuses."""
    # The overflow queue is rarely used, and creating a client takes time.
    client = cache(partial(boto3.client, "sqs"))
    return FirehoseHistory(stream(), Overflow(client, settings().text("HISTORY_OVERFLOW_URL")))


@cache
def stream() -> DeliveryStream:
    """Return the delivery stream of the history."""
    return DeliveryStream(boto3.client("firehose"), settings().text("HISTORY_STREAM"))


def record(events: Sequence[HistoryEvent]) -> None:
    """Write events to the history and count them as metrics."""
    if events:
        history().write(events)
        PowertoolsTelemetry().count(events)
