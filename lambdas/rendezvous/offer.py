"""Takes offers from the broker queue: parks them, refuses them, or tells their clients that time is up."""

import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import cache
from typing import Any

from lambdas.rendezvous import wiring
from lambdas.shared.records import messages_of
from signalbox.aws.rendezvous.policy import policy_of
from signalbox.errors import RejectedError
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.rules.offer_service import OfferDesk, Receipt
from signalbox.rendezvous.rules.states import Delivery, parse_client_id

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Return the messages that stay in flight: the parked offers, and those that could not be handled now."""
    records = event["Records"]
    _desk()  # made once, before the threads share it
    # Side by side: an offer is six calls to wait for, and the tenth client should not wait for sixty.
    with ThreadPoolExecutor(len(records)) as threads:
        attempts = list(threads.map(_attempt, records))
    receipts = [attempt for attempt in attempts if isinstance(attempt, Receipt)]
    wiring.recorder().record([happened for receipt in receipts for happened in receipt.events])
    if not receipts:
        raise next(attempt for attempt in attempts if isinstance(attempt, Exception))  # an outage; look like one
    in_flight = [
        record["messageId"]
        for record, attempt in zip(records, attempts, strict=True)
        if isinstance(attempt, Exception) or not attempt.done
    ]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in in_flight]}


def _attempt(record: dict[str, Any]) -> Receipt | Exception:
    try:
        return _receive(record)
    except Exception as error:
        logger.exception("offer message %s was not handled", record["messageId"])
        return error  # one message must not take its batch along: it stays in flight and comes again


def _receive(record: dict[str, Any]) -> Receipt:
    try:
        return _desk().receive(_delivery(record))
    except RejectedError as error:
        (message,) = messages_of([record])
        wiring.dead_letters().dead_letter(message, reason=str(error))
        dead_letter = events.dead_letter(record["messageId"], at=wiring.CLOCK.now(), reason=str(error))
        return Receipt(done=True, events=(dead_letter,))


def _delivery(record: dict[str, Any]) -> Delivery:
    # Upstream reads StringValue only, so a ClientID of another type is as good as none (broker/sqs.go).
    client_id = record["messageAttributes"].get("ClientID", {}).get("stringValue") or ""
    return Delivery(
        client_id=parse_client_id(client_id, prefix=wiring.settings().text("CLIENT_QUEUE_PREFIX")),
        message_id=record["messageId"],
        receipt_handle=record["receiptHandle"],
        body=record["body"].encode(errors="surrogatepass"),
        sent_at=_moment(record["attributes"]["SentTimestamp"]),
        first_received_at=_moment(record["attributes"]["ApproximateFirstReceiveTimestamp"]),
        is_first=record["attributes"]["ApproximateReceiveCount"] == "1",
    )


def _moment(milliseconds: str) -> datetime:
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)


@cache
def _desk() -> OfferDesk:
    return OfferDesk(
        offers=wiring.offers(),
        matchmaker=wiring.matchmaker(),
        client_queues=wiring.client_queues(),
        clock=wiring.CLOCK,
        bridges=wiring.bridges(),
        country_of=wiring.country_of(),
        policy=policy_of(wiring.settings()),
    )
