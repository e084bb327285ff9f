"""What the function `session` works with, made once for each function instance."""

import secrets
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

import boto3

from lambdas.live import wiring
from lambdas.shared import history as writing
from signalbox.aws.exchange.sender import SqsExchangeSender
from signalbox.aws.live.accounts import DynamoAccounts
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.outbox import SqsOutboxes
from signalbox.aws.live.overview import S3Pictures, Sources
from signalbox.aws.live.sessions import DynamoRoster
from signalbox.aws.live.subscribers import DynamoSubscribers
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.exchange.model.names import StageNames
from signalbox.history.event import HistoryEvent
from signalbox.live.procedures.overview import Glances
from signalbox.live.procedures.watchers import KnownWatchers, LoggedTopics
from signalbox.live.router.directory import Directory
from signalbox.live.session.ports import SessionPorts, Store
from signalbox.live.wamp.codec import MAXIMUM_ID

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

NONCE_BYTES = 32
WRITERS = 8


@cache
def ports() -> SessionPorts:
    """Return all that sessions work with."""
    settings, table = wiring.settings(), wiring.table()
    subscribers = DynamoSubscribers(table, _writers().map)
    return SessionPorts(
        store=Store(
            sessions=wiring.sessions(),
            roster=DynamoRoster(table),
            accounts=DynamoAccounts(table, _exchanges(), pepper()),
            subscribers=subscribers,
            watchers=KnownWatchers(Directory(subscribers, wiring.CLOCK.now), subscribers),
            log=DynamoTopicLog(table),
        ),
        inbox=wiring.inbox(),
        outboxes=SqsOutboxes(wiring.sqs(), settings.text("LIVE_OUTBOX_URL")),
        timers=wiring.timers(),
        sender=SqsExchangeSender(wiring.sqs(), settings.text("LIVE_INBOX_URL").rpartition("/")[0] + "/"),
        glances=_glances(),
        names=StageNames(settings.text("STAGE"), settings.text("EXCHANGE_PREFIX")),
        pepper=pepper(),
        now=wiring.CLOCK.now,
        random_id=lambda: secrets.randbelow(MAXIMUM_ID) + 1,
        nonce=lambda: secrets.token_hex(NONCE_BYTES),
        record=_happened().extend,
    )


def timer_dead_letters() -> SqsDeadLetters:
    """Return where what stood among the timers is put aside."""
    return SqsDeadLetters(wiring.sqs(), wiring.settings().text("LIVE_DEAD_LETTER_QUEUE_URL"))


def write_down() -> None:
    """Write to the lake, and count, what happened since the last time."""
    happened = _happened()
    writing.record(happened)
    happened.clear()


@cache
def _writers() -> ThreadPoolExecutor:
    # Not the threads that hear connections: those wait for these.
    return ThreadPoolExecutor(WRITERS)


@cache
def _happened() -> list[HistoryEvent]:
    return []  # threads may add to a list side by side


@cache
def pepper() -> str:
    """Return the stage's secret."""
    client = boto3.client("secretsmanager")
    return client.get_secret_value(SecretId=wiring.settings().text("LIVE_PEPPER_ARN"))["SecretString"]


def _exchanges() -> "Table":
    return boto3.resource("dynamodb").Table(wiring.settings().text("EXCHANGE_TABLE"))


def _glances() -> Glances:
    settings, resource = wiring.settings(), boto3.resource("dynamodb")
    sources = Sources(
        rendezvous=resource.Table(settings.text("RENDEZVOUS_TABLE")),
        splits=resource.Table(settings.text("SPLIT_TABLE")),
        exchanges=_exchanges(),
    )
    pictures = S3Pictures(boto3.client("s3"), settings.text("HISTORY_BUCKET"))
    return Glances(LoggedTopics(DynamoTopicLog(wiring.table())), sources.parts(), pictures)
