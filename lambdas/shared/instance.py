"""A function instance: its settings, its clock, its AWS clients and the history that it writes."""

import math
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from botocore.config import Config
from botocore.session import Session, get_session

from signalbox.aws.history.firehose import DeliveryStream, FirehoseHistory, NoHistory, Overflow
from signalbox.aws.shared.settings import Settings, SystemClock
from signalbox.aws.shared.telemetry import PowertoolsTelemetry
from signalbox.aws.shared.throttled_keys import retry_throttled_keys
from signalbox.backoff import Backoff
from signalbox.history.event import HistoryEvent

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_lambda.client import LambdaClient
    from mypy_boto3_sqs.client import SQSClient

    from signalbox.aws.shared.dynamodb import DynamoTable
    from signalbox.task_time import TaskTime

CLOCK = SystemClock()
# The share of an invocation's time in which failed calls are repeated; the rest is for what follows.
SHARE_OF_TIME = 0.5
# botocore's default, five attempts with pauses of up to 1, 2, 4 and 8 s, holds a function for as long as its time-out,
# for the sake of one queue that its owner lets SQS throttle. These pauses are at most 1 and 2 s.
FEW_RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 3})
SOON_SECONDS = 3
ONCE = Config(retries={"total_max_attempts": 1}, connect_timeout=SOON_SECONDS, read_timeout=SOON_SECONDS)
# For the part of a scheduled task that is under way when its time ends.
TASK_RESERVE, TASK_LENGTH = timedelta(seconds=8), timedelta(seconds=30)


@runtime_checkable
class Context(Protocol):
    """Lambda's context of an invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda ends the function."""


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


def seconds_left() -> float:
    """Return the seconds until the deadline of the current invocation."""
    end = deadline().at
    return math.inf if end is None else (end - CLOCK.now()).total_seconds()


def task_time(context: object) -> "TaskTime":
    """Return the time that a scheduled task has in an invocation; without a context it has that of `control`."""
    from signalbox.task_time import TaskTime  # noqa: PLC0415 - most functions have no scheduled task

    remaining = TASK_LENGTH
    if isinstance(context, Context):
        remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
    return TaskTime(CLOCK.now, CLOCK.now() + remaining - TASK_RESERVE)


def is_late() -> bool:
    """Return whether the deadline of the current invocation is over."""
    return seconds_left() <= 0


def is_local() -> bool:
    """Return whether this is a local stage, where loopback is the machine and not the runtime's own interface."""
    return "AWS_ENDPOINT_URL" in os.environ


@cache
def settings() -> Settings:
    """Return the environment variables of the function."""
    return Settings(os.environ)


@cache
def _session() -> Session:
    return get_session()


def aws_client(service: str, **options: Any) -> Any:  # noqa: ANN401 - of the service's own type
    """Return a client equal to boto3's, by botocore alone: the import of boto3 would add a fifth to botocore's."""
    return _session().create_client(service, **options)


@cache
def sqs() -> "SQSClient":
    """Return the SQS client, which repeats calls that the key of a queue throttled."""
    client: SQSClient = aws_client("sqs", config=FEW_RETRIES)
    retry_throttled_keys(client.meta.events, backoff())
    return client


@cache
def sqs_once() -> "SQSClient":
    """Return the SQS client for the queues of others, which repeats no call: a throttled queue must not hold others."""
    client: SQSClient = aws_client("sqs", config=ONCE)
    return client


@cache
def functions() -> "LambdaClient":
    """Return the client of Lambda."""
    client: LambdaClient = aws_client("lambda")
    return client


@cache
def table(variable: str, config: Config | None = None) -> "DynamoTable":
    """Return the table whose name is in a variable; threads may share it."""
    from signalbox.aws.shared.dynamodb import DynamoTable  # noqa: PLC0415 - some functions have no table

    return DynamoTable(_dynamodb(config), settings().text(variable), backoff())


@cache
def _dynamodb(config: Config | None) -> "DynamoDBClient":
    client: DynamoDBClient = aws_client("dynamodb", config=config)
    return client


def has_history() -> bool:
    """Return whether the stage has a history."""
    return settings().has("HISTORY_STREAM")


@cache
def history() -> FirehoseHistory | NoHistory:
    """Return the history, with the overflow queue for events that Firehose refuses."""
    if not has_history():
        return NoHistory()
    # The overflow queue is rarely used, and creating a client takes time.
    return FirehoseHistory(stream(), Overflow(_overflow_sqs, settings().text("HISTORY_OVERFLOW_URL")))


@cache
def _overflow_sqs() -> "SQSClient":
    client: SQSClient = aws_client("sqs", config=FEW_RETRIES)
    return client


@cache
def stream() -> DeliveryStream:
    """Return the delivery stream of the history."""
    return DeliveryStream(aws_client("firehose"), settings().text("HISTORY_STREAM"), backoff())


def record(events: Sequence[HistoryEvent]) -> None:
    """Write events to the history and count them as metrics."""
    if events:
        history().write(events)
        PowertoolsTelemetry().count(events)
