"""The function `route`: routes publications, and retries copies that a queue did not accept."""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from lambdas.exchange import route_wiring, wiring
from lambdas.shared import instance, shutdown
from lambdas.shared.poison import Read, is_suspect, poison_of
from lambdas.shared.records import in_flight, messages_of
from signalbox.aws.shared.batch_calls import hide
from signalbox.aws.shared.telemetry import measure_oldest_message
from signalbox.errors import UnavailableError
from signalbox.exchange.messages.copies import read_retry
from signalbox.exchange.messages.publications import read_publication
from signalbox.exchange.model.events import CAPABILITY
from signalbox.exchange.routing.batch_reader import ExchangeUnknown
from signalbox.exchange.routing.batch_report import RoutingResult
from signalbox.fifo import FifoBatch
from signalbox.history.event import HistoryEvent
from signalbox.live.admin.denies import DeniesUnread
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName, is_fifo

# What an instance has read of denies is valid for half a minute, less than the visibility timeout.
SOON = timedelta(seconds=1)

logger = logging.getLogger(__name__)

shutdown.before_end(route_wiring.flush)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Return the messages to redeliver, of which not all copies are accounted for."""
    instance.begin(context)
    records = event["Records"]
    queue = QueueName(records[0]["eventSourceARN"].rpartition(":")[2])
    poison = {MessageId(one): reason for one, reason in poison_of(records, _reader(queue)).items()}
    messages = messages_of(records)
    try:
        routed = _routed(queue, messages, poison)
    except ExchangeUnknown:
        logger.exception("%d messages of queue %s stay where they are", len(messages), queue)
        routed = RoutingResult(tuple(message.message_id for message in messages), ())
    except DeniesUnread as error:
        logger.warning("%d messages of queue %s come again: %s", len(messages), queue, error)
        left = tuple(message.message_id for message in messages)
        routed = RoutingResult(left, (), dict.fromkeys(left, SOON))
    except Exception:
        if len(messages) == 1 or not any(map(is_suspect, records)):
            raise
        logger.exception("%d messages of queue %s are routed one by one", len(messages), queue)
        routed = _routed_alone(queue, messages, poison)
    instance.record(routed.events)
    if routed.pauses:
        receipts = {one.message_id: str(one.document["ReceiptHandle"]) for one in messages}
        hide(
            instance.sqs(), wiring.url_prefix() + queue, {receipts[one]: pause for one, pause in routed.pauses.items()}
        )
    _measure(messages, routed.not_done)
    route_wiring.counters().write_due()
    route_wiring.refusals().write_due()
    return in_flight(routed.not_done)


def _reader(queue: QueueName) -> Read:
    """Return the reader of a queue's messages, which needs no client: each message is read in a process of its own."""
    if _is_of_retries(queue):
        names = wiring.names()
        return lambda record: read_retry(messages_of([record])[0], names)
    senders = route_wiring.trusted_senders()
    return lambda record: read_publication(messages_of([record])[0], senders)


def _is_of_retries(queue: QueueName) -> bool:
    return queue in (route_wiring.retry_queue(), route_wiring.ordered_retry_queue())


def _routed(queue: QueueName, messages: Sequence[Message], poison: Mapping[MessageId, str]) -> RoutingResult:
    if _is_of_retries(queue):
        is_ordered = queue == route_wiring.ordered_retry_queue()
        return route_wiring.retrier().retry(messages, is_ordered=is_ordered, poison=poison)
    exchange = wiring.names().exchange_of(queue)
    if exchange is None:
        raise ExchangeUnknown(f"queue {queue!r} is not that of an exchange")
    return route_wiring.router().route(messages, exchange, poison)


def _routed_alone(queue: QueueName, messages: Sequence[Message], poison: Mapping[MessageId, str]) -> RoutingResult:
    """Route the messages of a batch that fails as a whole one by one: one of them may fail the others."""
    batch = FifoBatch([(message, message) for message in messages], is_fifo(queue))
    events: list[HistoryEvent] = []
    pauses: dict[MessageId, timedelta] = {}
    while ready := batch.take_ready():
        for message in ready:
            try:
                routed = _routed(queue, [message], poison)
            except Exception:
                logger.exception("message %s of queue %s is not routed", message.message_id, queue)
                batch.fail(message.message_id)
            else:
                events += routed.events
                pauses |= routed.pauses
                for message_id in routed.not_done:
                    batch.fail(message_id)
    if len(batch.not_done()) == len(messages):
        raise UnavailableError(f"none of {len(messages)} messages of queue {queue!r} is routed")
    return RoutingResult(batch.not_done(), tuple(events), pauses)


def _measure(messages: Sequence[Message], left: Collection[MessageId]) -> None:
    """Measure the age of messages in flight: SQS's own metric omits messages that were received three times."""
    if left:
        oldest = min(message.sent_at for message in messages if message.message_id in left)
        measure_oldest_message(instance.CLOCK.now() - oldest, capability=CAPABILITY, stage=wiring.names().stage)
