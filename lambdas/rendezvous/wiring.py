"""The adapters of the rendezvous functions, created once per function instance."""

import os
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import boto3

from lambdas.shared import history as writing
from signalbox.aws.rendezvous.countries import country_database
from signalbox.aws.rendezvous.held_polls import DynamoHeldPolls, DynamoPresence
from signalbox.aws.rendezvous.offers import DynamoOffers
from signalbox.aws.rendezvous.policy import policy_of
from signalbox.aws.rendezvous.queues import SqsBrokerQueue, SqsClientQueues
from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.aws.shared.clock import SystemClock
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.aws.shared.leases import DynamoLeases
from signalbox.aws.shared.settings import Settings
from signalbox.aws.shared.telemetry import PowertoolsTelemetry
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.client_address import CountryLookup
from signalbox.rendezvous.reporting.event_recorder import EventRecorder
from signalbox.rendezvous.rules.matching import HeldPollCache, PollReserver
from signalbox.rendezvous.wire.bridges import DEFAULT_BRIDGES, BridgeList

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_sqs.client import SQSClient

CLOCK = SystemClock()
FILES = Path(__file__).parents[2] / "settings"  # the stack packages it with the code if a stage has such files


@cache
def settings() -> Settings:
    """Return this function's settings."""
    return Settings(os.environ)


@cache
def table() -> "Table":
    """Return the table of rendezvous; threads may share it, since all its calls use the thread-safe client."""
    return boto3.resource("dynamodb").Table(settings().text("RENDEZVOUS_TABLE"))


@cache
def sqs() -> "SQSClient":
    """Return an SQS client."""
    return boto3.client("sqs")


@cache
def leases() -> DynamoLeases:
    """Return the leases of temporary queues."""
    return DynamoLeases(boto3.resource("dynamodb").Table(settings().text("LEASE_TABLE")))


@cache
def statistics() -> DynamoStatistics:
    """Return the live counters."""
    return DynamoStatistics(table())


@cache
def recorder() -> EventRecorder:
    """Return the recorder of events."""
    return EventRecorder(writing.history(settings()), statistics(), PowertoolsTelemetry())


def record_bad_input(source: str, *, request_id: str, reason: str) -> None:
    """Record a request that breaks the protocol."""
    recorder().record([events.bad_input(source, at=CLOCK.now(), request_id=request_id, reason=reason)])


@cache
def offers() -> DynamoOffers:
    """Return the table of rendezvous records."""
    return DynamoOffers(table())


@cache
def poll_reserver() -> PollReserver:
    """Return the reserver of held polls."""
    return PollReserver(
        HeldPollCache(DynamoHeldPolls(table()), lock=Lock()), DynamoPresence(table()), policy_of(settings())
    )


@cache
def client_queues() -> SqsClientQueues:
    """Return the client queues."""
    return SqsClientQueues(
        sqs(),
        leases(),
        arn_prefix=settings().text("CLIENT_QUEUE_ARN_PREFIX"),
        stage=settings().text("STAGE"),
        sleep=CLOCK.sleep,
    )


@cache
def broker_queue() -> SqsBrokerQueue:
    """Return the broker queue."""
    return SqsBrokerQueue(sqs(), queue_url=settings().text("BROKER_QUEUE_URL"))


@cache
def dead_letters() -> SqsDeadLetters:
    """Return the dead-letter queue of offers."""
    return SqsDeadLetters(sqs(), settings().text("DEAD_LETTER_QUEUE_URL"))


@cache
def bridges() -> BridgeList:
    """Return this stage's bridges."""
    path = FILES / "bridges.jsonl"
    return BridgeList.parse(path.read_text()) if path.exists() else DEFAULT_BRIDGES


@cache
def country_lookup() -> CountryLookup:
    """Return the country lookup of addresses."""
    return country_database(FILES / "country.mmdb")
