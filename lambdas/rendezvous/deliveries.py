"""The deliveries of the broker queue: each is handled for itself, and those that are not done stay in flight."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from lambdas.rendezvous import wiring
from lambdas.shared import instance
from signalbox.errors import RejectedError
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message, MessageId, moment
from signalbox.rendezvous.model.states import OfferDelivery, parse_client_id
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.rules.offer_service import DeliveryResult

Receive = Callable[[OfferDelivery], DeliveryResult]
Record = Callable[[Sequence[HistoryEvent]], None]

logger = logging.getLogger(__name__)


def process(records: Sequence[dict[str, Any]], receive: Receive, record_events: Record) -> dict[str, Any]:
    """Return the messages that stay in flight: those that are not done, and those whose handling failed."""
    # In parallel: an offer takes six calls, and the tenth client of a batch must not wait for sixty.
    with ThreadPoolExecutor(len(records)) as threads:
        attempts = list(threads.map(partial(_attempt, receive=receive), records))
    _hide(records, attempts)
    receipts = [attempt for attempt in attempts if isinstance(attempt, DeliveryResult)]
    record_events([happened for receipt in receipts for happened in receipt.events])
    if not receipts:
        # All messages failed: an outage, which fails the invocation.
        raise next(attempt for attempt in attempts if isinstance(attempt, Exception))
    in_flight = [
        record["messageId"]
        for record, attempt in zip(records, attempts, strict=True)
        if isinstance(attempt, Exception) or not attempt.done
    ]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in in_flight]}


def _attempt(record: dict[str, Any], *, receive: Receive) -> DeliveryResult | Exception:
    try:
        return _receive(record, receive)
    except Exception as error:
        logger.exception("offer message %s was not handled", record["messageId"])
        return error  # one failure must not fail its batch: the message stays in flight and is redelivered


def _hide(records: Sequence[dict[str, Any]], attempts: Sequence[DeliveryResult | Exception]) -> None:
    """Hide the parked offers of a batch until their next check, in one call."""
    now = instance.CLOCK.now()
    hidden = {
        record["receiptHandle"]: attempt.hidden_until - now
        for record, attempt in zip(records, attempts, strict=True)
        if isinstance(attempt, DeliveryResult) and attempt.hidden_until
    }
    if hidden:
        wiring.broker_queue().hide(hidden)


def _receive(record: dict[str, Any], receive: Receive) -> DeliveryResult:
    try:
        return receive(_delivery(record))
    except RejectedError as error:
        message = Message(MessageId(record["messageId"]), record["body"], {}, {})
        wiring.dead_letters().dead_letter(message, reason=str(error))
        dead_letter = events.dead_letter(record["messageId"], at=instance.CLOCK.now(), reason=str(error))
        return DeliveryResult(done=True, events=(dead_letter,))


def _delivery(record: dict[str, Any]) -> OfferDelivery:
    # Upstream reads StringValue only, so a ClientID of another type counts as empty (broker/sqs.go).
    client_id = record["messageAttributes"].get("ClientID", {}).get("stringValue") or ""
    return OfferDelivery(
        client_id=parse_client_id(client_id, prefix=instance.settings().text("CLIENT_QUEUE_PREFIX")),
        message_id=record["messageId"],
        receipt_handle=record["receiptHandle"],
        body=record["body"].encode(errors="surrogatepass"),
        sent_at=moment(record["attributes"]["SentTimestamp"]),
        is_first=record["attributes"]["ApproximateReceiveCount"] == "1",
    )
