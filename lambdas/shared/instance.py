"""A function instance: its settings, its clock, its AWS clients and the history that it writes."""

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import boto3

from signalbox.aws.history.firehose import DeliveryStream, FirehoseHistory, Overflow
from signalbox.aws.shared.settings import Settings, SystemClock
from signalbox.aws.shared.telemetry import PowertoolsTelemetry
from signalbox.aws.shared.throttled_keys import retry_throttled_keys
from signalbox.backoff import Backoff
from signalbox.history.event import HistoryEvent

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import DynamoDBServiceResource, Table
    from mypy_boto3_sqs.client import SQSClient

CLOCK = SystemClock()
# The share of an invocation's time in which failed calls are repeated; the rest is for what follows.
SHARE_OF_TIME = 0.5


@runtime_checkable
class Context(Protocol):
    """Lambda's context of an invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda ends the function."""
        ...


@dataclass(slots=True)
class Deadline:
    """The moment in the current invocation after which no failed call is repeated; None outside of one."""

    at: datetime | None = None


@cache
def deadline() -> Deadline:
    """Return the deadline of the current invocation; an instance has one invocation at a time."""
    return Deadline()


@cache
def backoff() -> Backoff:
    """Return the back-off of calls, which ends with the deadline of the invocation."""
    return Backoff(CLOCK, random.random, lambda: deadline().at)


def begin(context: object) -> None:
    """Set the deadline of an invocation by its context; an invocation without one has none."""
    if isinstance(context, Context):
        remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
        deadline().at = CLOCK.now() + remaining * SHARE_OF_TIME
    else:
        deadline().at = None


def is_local() -> bool:
    """Return whether this is a local stage, where loopback is the machine and not the runtime's own interface."""
    return "AWS_ENDPOINT_URL" in os.environ


@cache
def settings() -> Settings:
    """Return the environment variables of the function."""
    return Settings(os.environ)


@cache
def sqs() -> "SQSClient":
    """Return the SQS client, which repeats calls that the key of a queue throttled."""
    client = boto3.client("sqs")
    retry_throttled_keys(client.meta.events, backoff())
    return client


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
    return DeliveryStream(boto3.client("firehose"), settings().text("HISTORY_STREAM"), backoff())


def record(events: Sequence[HistoryEvent]) -> None:
    """Write events to the history and count them as metrics."""
    if events:
        history().write(events)
        PowertoolsTelemetry().count(events)
