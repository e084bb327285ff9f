"""The function `route`: routes publications, and retries copies that a queue did not accept."""

import logging
from collections.abc import Sequence
from typing import Any

from lambdas.exchange import route_wiring, wiring
from lambdas.shared import instance
from lambdas.shared.records import in_flight, messages_of
from signalbox.exchange.routing.router import ExchangeUnknown, RoutingResult
from signalbox.messages import Message
from signalbox.queues import QueueName

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Return the messages to redeliver, of which not all copies are accounted for."""
    instance.begin(context)
    records = event["Records"]
    queue = QueueName(records[0]["eventSourceARN"].rpartition(":")[2])
    messages = messages_of(records)
    try:
        routed = _routed(queue, messages)
    except ExchangeUnknown:
        logger.exception("%d messages of queue %s stay where they are", len(messages), queue)
        return in_flight(message.message_id for message in messages)
    instance.record(routed.events)
    return in_flight(routed.not_done)


def _routed(queue: QueueName, messages: Sequence[Message]) -> RoutingResult:
    ordered_retry_queue = route_wiring.ordered_retry_queue()
    if queue in (route_wiring.retry_queue(), ordered_retry_queue):
        return route_wiring.retrier().retry(messages, is_ordered=queue == ordered_retry_queue)
    exchange = wiring.names().exchange_of(queue)
    if exchange is None:
        raise ExchangeUnknown(f"queue {queue!r} is not that of an exchange")
    return route_wiring.router().route(messages, exchange)
