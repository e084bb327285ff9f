"""What the function `route` works with, made once for each function instance: tries stay between its calls."""

from functools import cache

import boto3

from lambdas.exchange import wiring
from lambdas.shared.threads import side_by_side
from signalbox.aws.exchange.key_holds import DynamoKeyHolds
from signalbox.aws.exchange.routing import DynamoHeads, DynamoRoutingTable, DynamoTally
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.outbox import SqsOutboxes
from signalbox.aws.live.subscribers import DynamoSubscribers
from signalbox.aws.shared.queue_sender import SqsQueueSender
from signalbox.exchange.routing.delivery import Carrier
from signalbox.exchange.routing.key_holds import Holding
from signalbox.exchange.routing.retries import Retrier
from signalbox.exchange.routing.router import Router
from signalbox.live.router.directory import CachedSubscriberDirectory
from signalbox.live.router.distributor import Distributor
from signalbox.queues import QueueName

# What failed is visible again after six time-outs; it may be a while until somebody looks.
TIMEOUTS_UNTIL_AGAIN = 12


@cache
def router() -> Router:
    """Return what routes the messages of exchanges."""
    table = wiring.table()
    return Router(
        table=DynamoRoutingTable(table),
        heads=DynamoHeads(table),
        carrier=carrier(),
        tally=DynamoTally(table, side_by_side),
        names=wiring.names(),
        now=wiring.CLOCK.now,
        trusted_ids=frozenset(map(wiring.settings().text, ("EXCHANGE_CONTROL_ROLE_ID", "LIVE_SESSION_ROLE_ID"))),
        live=distributor(),
        holding=holding(),
    )


@cache
def holding() -> Holding:
    """Return what lets a router have routing keys to itself."""
    return Holding(
        DynamoKeyHolds(wiring.table()),
        wiring.CLOCK.now,
        wiring.CLOCK.sleep,
        hold_for=TIMEOUTS_UNTIL_AGAIN * wiring.settings().seconds("ROUTE_TIMEOUT_SECONDS"),
    )


@cache
def distributor() -> Distributor:
    """Return what brings the messages of live exchanges to connections."""
    table = boto3.resource("dynamodb").Table(wiring.settings().text("LIVE_TABLE"))
    return Distributor(
        log=DynamoTopicLog(table, side_by_side),
        directory=CachedSubscriberDirectory(DynamoSubscribers(table), wiring.CLOCK.now),
        outboxes=SqsOutboxes(wiring.sqs(), wiring.settings().text("LIVE_OUTBOX_URL"), side_by_side),
    )


@cache
def retrier() -> Retrier:
    """Return what delivers the messages of retry queues."""
    table = wiring.table()
    return Retrier(
        heads=DynamoHeads(table),
        carrier=carrier(),
        tally=DynamoTally(table, side_by_side),
        names=wiring.names(),
        now=wiring.CLOCK.now,
        maximum_attempts=wiring.settings().number("EXCHANGE_MAXIMUM_RECEIVES"),
    )


@cache
def carrier() -> Carrier:
    """Return what sends copies."""
    dead_letter_queue_url = wiring.settings().text("EXCHANGE_DEAD_LETTER_QUEUE_URL")
    return Carrier(
        sender=SqsQueueSender(wiring.sqs(), wiring.url_prefix()),
        declared=DynamoRoutingTable(wiring.table()),
        retry_queue=retry_queue(),
        ordered_retry_queue=ordered_retry_queue(),
        dead_letter_queue=_name(dead_letter_queue_url),
        side_by_side=side_by_side,
    )


def retry_queue() -> QueueName:
    """Return the queue of copies that are to be tried again."""
    return _name(wiring.settings().text("EXCHANGE_RETRY_QUEUE_URL"))


def ordered_retry_queue() -> QueueName:
    """Return the queue of those that keep their order."""
    return _name(wiring.settings().text("EXCHANGE_ORDERED_RETRY_QUEUE_URL"))


def _name(queue_url: str) -> QueueName:
    return QueueName(queue_url.rpartition("/")[2])
