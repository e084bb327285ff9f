"""What the function `route` works with, made once for each function instance: tries stay between its calls."""

from functools import cache

from lambdas.exchange import wiring
from signalbox.aws.queue_sender import SqsQueueSender
from signalbox.aws.routing import DynamoHeads, DynamoRoutingTable, DynamoTally
from signalbox.exchange.delivering import Carrier
from signalbox.exchange.retrying import Retrier
from signalbox.exchange.router import Router
from signalbox.queues import QueueName


@cache
def router() -> Router:
    """Return what routes the messages of exchanges."""
    table = wiring.table()
    return Router(
        table=DynamoRoutingTable(table),
        heads=DynamoHeads(table),
        carrier=carrier(),
        tally=DynamoTally(table, wiring.side_by_side),
        names=wiring.names(),
        now=wiring.CLOCK.now,
        control_id=wiring.settings().text("EXCHANGE_CONTROL_ROLE_ID"),
    )


@cache
def retrier() -> Retrier:
    """Return what delivers the messages of retry queues."""
    table = wiring.table()
    return Retrier(
        heads=DynamoHeads(table),
        carrier=carrier(),
        tally=DynamoTally(table, wiring.side_by_side),
        names=wiring.names(),
        now=wiring.CLOCK.now,
        maximum_attempts=wiring.settings().number("EXCHANGE_MAXIMUM_RECEIVES"),
    )


@cache
def carrier() -> Carrier:
    """Return what sends copies."""
    dead_letter_queue_url = wiring.settings().text("EXCHANGE_DEAD_LETTER_QUEUE_URL")
    return Carrier(
        sender=SqsQueueSender(wiring.sqs(), wiring.url_prefix(), dead_letter_queue_url),
        declared=DynamoRoutingTable(wiring.table()),
        retry_queue=retry_queue(),
        ordered_retry_queue=ordered_retry_queue(),
        dead_letter_queue=_name(dead_letter_queue_url),
        side_by_side=wiring.side_by_side,
    )


def retry_queue() -> QueueName:
    """Return the queue of copies that are to be tried again."""
    return _name(wiring.settings().text("EXCHANGE_RETRY_QUEUE_URL"))


def ordered_retry_queue() -> QueueName:
    """Return the queue of those that keep their order."""
    return _name(wiring.settings().text("EXCHANGE_ORDERED_RETRY_QUEUE_URL"))


def _name(queue_url: str) -> QueueName:
    return QueueName(queue_url.rpartition("/")[2])
