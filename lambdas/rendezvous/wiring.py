"""The adapters of the rendezvous functions, created once per function instance."""

from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from lambdas.shared import instance
from signalbox.aws.rendezvous.countries import country_database
from signalbox.aws.rendezvous.offers import DynamoOffers
from signalbox.aws.rendezvous.paces import DynamoPaces
from signalbox.aws.rendezvous.queues import SqsBrokerQueue, SqsClientQueues
from signalbox.aws.rendezvous.statistics import DynamoStatistics
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.telemetry import PowertoolsTelemetry
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.event_recorder import COLLECTED_FOR, EventRecorder
from signalbox.rendezvous.rules.policy import RendezvousPolicy
from signalbox.rendezvous.wire.bridges import DEFAULT_BRIDGES, Bridges, parse_bridges

if TYPE_CHECKING:
    from signalbox.rendezvous.reporting.client_address import CountryLookup

FILES = Path(__file__).parents[2] / "settings"  # the stack packages it with the code if a stage has such files


@cache
def table() -> DynamoTable:
    """Return the table of rendezvous; threads may share it."""
    return instance.table("RENDEZVOUS_TABLE")


@cache
def statistics() -> DynamoStatistics:
    """Return the live counters."""
    return DynamoStatistics(table())


@cache
def recorder() -> EventRecorder:
    """Return the recorder of events; on a local stage it writes them at once."""
    collected_for = timedelta(0) if instance.is_local() else COLLECTED_FOR
    return EventRecorder(
        instance.history(), statistics(), PowertoolsTelemetry(), instance.CLOCK, collected_for=collected_for
    )


def flush() -> None:
    """Write the collected events, if there are any."""
    if recorder.cache_info().currsize:
        recorder().flush()


def record_bad_input(source: str, *, request_id: str, reason: str) -> None:
    """Record a request that breaks the protocol."""
    recorder().record([events.bad_input(source, at=instance.CLOCK.now(), request_id=request_id, reason=reason)])


@cache
def offers() -> DynamoOffers:
    """Return the table of rendezvous records."""
    return DynamoOffers(table(), policy().kept_for)


@cache
def paces() -> DynamoPaces:
    """Return the paces of proxies."""
    return DynamoPaces(table())


def client_queues_url() -> str:
    """Return the common start of the URLs of client queues, which are in the account and region of the broker queue."""
    prefix = instance.settings().text("CLIENT_QUEUE_ARN_PREFIX").rpartition(":")[2]
    return instance.settings().text("BROKER_QUEUE_URL").rpartition("/")[0] + "/" + prefix


@cache
def client_queues() -> SqsClientQueues:
    """Return the client queues."""
    return SqsClientQueues(
        instance.sqs(),
        arn_prefix=instance.settings().text("CLIENT_QUEUE_ARN_PREFIX"),
        url_prefix=client_queues_url(),
        stage=instance.settings().text("STAGE"),
        sleep=instance.CLOCK.sleep,
    )


@cache
def broker_queue() -> SqsBrokerQueue:
    """Return the broker queue."""
    return SqsBrokerQueue(instance.sqs(), instance.settings().text("BROKER_QUEUE_URL"))


@cache
def dead_letters() -> SqsDeadLetters:
    """Return the dead-letter queue of offers."""
    return SqsDeadLetters(instance.sqs(), instance.settings().text("DEAD_LETTER_QUEUE_URL"))


@cache
def bridges() -> Bridges:
    """Return this stage's bridges."""
    path = FILES / "bridges.jsonl"
    return parse_bridges(path.read_text()) if path.exists() else DEFAULT_BRIDGES


@cache
def country_lookup() -> "CountryLookup":
    """Return the country lookup of addresses."""
    return country_database(FILES / "country.mmdb")


@cache
def policy() -> RendezvousPolicy:
    """Return the policy in the function's settings."""
    settings = instance.settings()
    return RendezvousPolicy(
        sqs_patience=settings.seconds("OFFER_PATIENCE_SECONDS"),
        http_patience=settings.seconds("HTTP_OFFER_PATIENCE_SECONDS"),
        match_patience=settings.seconds("MATCH_PATIENCE_SECONDS"),
        proxy_recency=settings.seconds("PROXY_RECENCY_SECONDS"),
        client_queue_lease=settings.seconds("CLIENT_QUEUE_LEASE_SECONDS"),
        polls_per_minute=settings.number("POLLS_PER_MINUTE"),
    )
