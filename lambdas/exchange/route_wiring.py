"""The dependencies of the function `route`, created once for each function instance, with cached tries."""

import logging
from dataclasses import replace
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from lambdas.exchange import wiring
from lambdas.shared import instance
from lambdas.shared.threads import parallel_map
from signalbox.aws.exchange.allowances import DynamoAllowanceCounter
from signalbox.aws.exchange.key_holds import DynamoKeyHolds
from signalbox.aws.exchange.routing_table import (
    DynamoCounterWriter,
    DynamoHeads,
    DynamoRoutingTable,
    DynamoWaitingCopies,
)
from signalbox.aws.exchange.sent_copies import DynamoSentCopies
from signalbox.aws.kept.store import S3KeptMessages
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.outbox import SqsOutboxes
from signalbox.aws.live.router_log import DynamoRouterLog
from signalbox.aws.live.subscribers import DynamoSubscribers
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.queue_sender import SqsQueueSender
from signalbox.exchange.messages.publications import TrustedSenders
from signalbox.exchange.routing.batch_reader import BatchReader
from signalbox.exchange.routing.batch_report import PAUSE_OF_A_WRITE, CollectedCounters, Reporter
from signalbox.exchange.routing.copy_dispatcher import CopyDispatcher, Patience
from signalbox.exchange.routing.copy_keeper import CopyKeeper
from signalbox.exchange.routing.copy_router import CopyRouter
from signalbox.exchange.routing.copy_settings import CopySettingsCache
from signalbox.exchange.routing.key_holds import KeyHolder
from signalbox.exchange.routing.limits import MOST_COPIES, MOST_HEADS, Allowance, Share
from signalbox.exchange.routing.numbering import Numberer
from signalbox.exchange.routing.refusals import Refusals
from signalbox.exchange.routing.retries import Retrier
from signalbox.exchange.routing.router import Router
from signalbox.live.admin.denies import CachedDenies
from signalbox.live.router.decoding import metadata_problem
from signalbox.live.router.directory import CachedSubscriberDirectory
from signalbox.live.router.distributor import Distributor
from signalbox.live.router.write_limits import MAXIMUM_KILOBYTES
from signalbox.queues import QueueName, QueueUrl, queue_name

if TYPE_CHECKING:
    from mypy_boto3_sqs.literals import QueueAttributeNameType

logger = logging.getLogger(__name__)

MESSAGES: "list[QueueAttributeNameType]" = [
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
]
SEEN_WITHIN = timedelta(hours=1)  # a copy that waits, or one before it, if no pause between attempts is longer


@cache
def router() -> Router:
    """Return the router of exchanges."""
    table, now = DynamoRoutingTable(wiring.table()), instance.CLOCK.now
    copy_settings = CopySettingsCache(table)
    denies = CachedDenies(wiring.stored_denies(), now, instance.is_late)
    keys = KeyHolder(DynamoKeyHolds(wiring.table()), now, instance.CLOCK.sleep, timeout(), retention())
    return Router(
        BatchReader(table, copy_settings, denies, trusted_senders(), metadata_problem, now),
        Numberer(heads(), keys),
        distributor() if wiring.has_live() else None,
        CopyRouter(
            dispatcher(),
            refusals(),
            _allowance(_table_once(), "copies", MOST_COPIES),
            _keeper(),
            copy_settings,
            wiring.names(),
            now,
            DynamoSentCopies(wiring.table()),
            instance.is_late,
            parallel_map,
        ),
        Reporter(counters(), parallel_map, instance.record),
        admits,
    )


def admits(publisher: str, heads: int) -> bool:
    """Count heads that messages of a publisher are to change; return whether that many may be changed now."""
    return head_allowance().admits([Share(publisher)], heads, at=instance.CLOCK.now())


@cache
def head_allowance() -> Allowance:
    """Return the allowance of the heads that messages of a publisher change."""
    return _allowance(_table_once(), "heads", MOST_HEADS)


def _allowance(once: DynamoTable, kind: str, most: int) -> Allowance:
    return Allowance(DynamoAllowanceCounter(once, kind, instance.CLOCK.now), most)


@cache
def trusted_senders() -> TrustedSenders:
    """Return the senders that publish on behalf of users."""
    settings = instance.settings()
    session = settings.text("LIVE_SESSION_ROLE_ID") if wiring.has_live() else None
    return TrustedSenders(settings.text("EXCHANGE_CONTROL_ROLE_ID"), session)


@cache
def heads() -> DynamoHeads:
    """Return the stored heads of routing keys."""
    return DynamoHeads(wiring.table(), _table_once())


def _keeper() -> CopyKeeper | None:
    """Return the keeper of copies, whose client is created for the first kept queue; None without history."""
    if not instance.settings().has("KEPT_BUCKET"):
        return None
    store = S3KeptMessages(cache(partial(instance.aws_client, "s3")), instance.settings().text("KEPT_BUCKET"))
    return CopyKeeper(store, parallel_map)


@cache
def counters() -> CollectedCounters:
    """Return the counters of this function instance; on a local stage they are written at once.

    Their writes have one attempt: messages do not wait for counters that DynamoDB throttles.
    """
    stored = DynamoCounterWriter(_table_once(), parallel_map)
    pause = timedelta(0) if instance.is_local() else PAUSE_OF_A_WRITE
    return CollectedCounters(stored, instance.CLOCK.now, pause)


def flush() -> None:
    """Write the collected counters and numbers, if there are any."""
    if counters.cache_info().currsize:
        counters().flush()
    if refusals.cache_info().currsize:
        refusals().flush()


@cache
def distributor() -> Distributor:
    """Return the distributor of live publications to connections."""
    table = instance.table("LIVE_TABLE")
    return Distributor(
        log=DynamoRouterLog(DynamoTopicLog(table, parallel_map), heads()),
        directory=CachedSubscriberDirectory(DynamoSubscribers(table), instance.CLOCK.now),
        outboxes=SqsOutboxes(
            instance.sqs(), instance.settings().text("LIVE_OUTBOX_URL"), parallel_map, instance.backoff()
        ),
        parallel_map=parallel_map,
        now=instance.CLOCK.now,
        longest_write=timeout(),
        sent=DynamoSentCopies(wiring.table()),
        allowance=_allowance(instance.table("LIVE_TABLE", instance.ONCE), "written", MAXIMUM_KILOBYTES),
        is_late=instance.is_late,
    )


def timeout() -> timedelta:
    """Return the time-out of this function."""
    return instance.settings().seconds("ROUTE_TIMEOUT_SECONDS")


def retention() -> timedelta:
    """Return how long SQS keeps the messages of exchanges, and copies for a retry."""
    return instance.settings().seconds("EXCHANGE_RETENTION_SECONDS")


@cache
def retrier() -> Retrier:
    """Return the retrier of the retry queues."""
    now = instance.CLOCK.now
    patience = Patience(instance.settings().seconds("ROUTE_RETRY_SECONDS"), retention(), now)
    return Retrier(heads(), dispatcher(), refusals(), counters(), wiring.names(), patience, now)


@cache
def refusals() -> Refusals:
    """Return the refusals that this function instance sees. Their numbers are written as the counters are."""
    pause = instance.settings().seconds("ROUTE_RETRY_SECONDS")
    stored = DynamoWaitingCopies(_table_once(), tried_within=SEEN_WITHIN + 2 * pause)
    return Refusals(stored, instance.CLOCK.now, _retrying, parallel_map)


def _retrying() -> int:
    """Return about how many messages are in the retry queues; 0 if SQS does not say."""
    urls = map(instance.settings().text, ("EXCHANGE_RETRY_QUEUE_URL", "EXCHANGE_ORDERED_RETRY_QUEUE_URL"))
    try:
        pages = [instance.sqs_once().get_queue_attributes(QueueUrl=url, AttributeNames=MESSAGES) for url in urls]
    except (BotoCoreError, ClientError):
        logger.warning("the number of messages in the retry queues is not known", exc_info=True)
        return 0
    return sum(int(number) for page in pages for number in page["Attributes"].values())


def _table_once() -> DynamoTable:
    return instance.table("EXCHANGE_TABLE", instance.ONCE)


@cache
def dispatcher() -> CopyDispatcher:
    """Return the dispatcher of copies."""
    sender = SqsQueueSender(instance.sqs_once(), wiring.url_prefix(), replace(instance.backoff(), most=1))
    return CopyDispatcher(
        sender=sender,
        declared=DynamoRoutingTable(wiring.table()),
        refusals=refusals(),
        retry_queue=retry_queue(),
        ordered_retry_queue=ordered_retry_queue(),
        dead_letter_queue=_queue("EXCHANGE_DEAD_LETTER_QUEUE_URL"),
        attempts=instance.backoff().attempts,
        parallel_map=parallel_map,
    )


def retry_queue() -> QueueName:
    """Return the name of the retry queue of unordered copies."""
    return _queue("EXCHANGE_RETRY_QUEUE_URL")


def ordered_retry_queue() -> QueueName:
    """Return the name of the retry queue of ordered copies."""
    return _queue("EXCHANGE_ORDERED_RETRY_QUEUE_URL")


def _queue(variable: str) -> QueueName:
    return queue_name(QueueUrl(instance.settings().text(variable)))
