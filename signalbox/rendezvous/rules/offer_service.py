"""The service of SQS offers: it parks, refuses or expires an offer, and resends a reply after a crash."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signalbox.history.event import HistoryEvent
from signalbox.rendezvous.model.pace import has_compatible_proxy
from signalbox.rendezvous.model.states import (
    OPEN_STATES,
    OfferDelivery,
    OfferState,
    RendezvousMethod,
    RendezvousRecord,
    hidden_until,
    was_matched,
)
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.rules.policy import RendezvousPolicy
from signalbox.rendezvous.wire.bridges import Bridges
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage
from signalbox.rendezvous.wire.offer import Offer
from signalbox.rendezvous.wire.reply import NO_PROXIES, TIMED_OUT, error_reply
from signalbox.rendezvous.wire.sdp import best_candidate_address

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import ClientQueues, Offers, ProxyPaces
    from signalbox.rendezvous.reporting.client_address import CountryLookup

# The function that takes an answer sends it within this time, unless it is killed.
SENT_WITHIN = timedelta(seconds=3)


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The result of a delivery.

    A message that is not `done` stays in flight: until `hidden_until`, or else until the broker queue's short
    visibility timeout ends.
    """

    done: bool
    events: tuple[HistoryEvent, ...] = ()
    hidden_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class OfferService:
    """Handles deliveries of offers; every step can be repeated after a crash at any other step.

    A reply is stored before it is sent. A redelivery therefore finds either an open offer, or a stored reply; the
    client's queue shows whether that reply was sent.
    """

    offers: "Offers"
    paces: "ProxyPaces"
    client_queues: "ClientQueues"
    clock: "Clock"
    bridges: Bridges
    country_lookup: "CountryLookup"
    policy: RendezvousPolicy

    def receive(self, delivery: OfferDelivery) -> DeliveryResult:
        """Execute the next step for a delivered offer."""
        draft, refusal = self._parsed(delivery)
        if delivery.is_first and self.clock.now() >= draft.deadline:
            return self._drop_late(draft)
        # Nearly every offer is new: a conditional write detects the others, which saves a read.
        result = self._open(draft, delivery, refusal=refusal) if delivery.is_first else None
        if result is not None:
            return result
        record = self.offers.find(draft)
        if record is None:
            if self.clock.now() >= draft.created_at + self.policy.kept_for:
                return self._drop_late(draft)
            # If another delivery of the same offer was faster, the redelivery of this one continues with its record.
            return self._open(draft, delivery, refusal=refusal) or DeliveryResult(done=False)
        return self._continue(record, delivery)

    def _continue(self, record: RendezvousRecord, delivery: OfferDelivery) -> DeliveryResult:
        if record.message_id != delivery.message_id:
            return self._drop(delivery)  # a copy of the message, sent in the same millisecond
        if record.state not in OPEN_STATES:
            return self._resend(record)
        if self.clock.now() >= record.deadline:
            return self._expire(record)
        return self._stay(record, delivery)

    def _drop(self, delivery: OfferDelivery) -> DeliveryResult:
        return DeliveryResult(done=True, events=(events.duplicate_offer(delivery, at=self.clock.now()),))

    def _drop_late(self, draft: RendezvousRecord) -> DeliveryResult:
        # Its client gave up long ago; the lease of a queue made now could be over already.
        return DeliveryResult(done=True, events=(events.offer(draft, "stale", at=self.clock.now(), reason=TIMED_OUT),))

    def _stay(self, record: RendezvousRecord, delivery: OfferDelivery) -> DeliveryResult:
        # An answer at the same time may have the older receipt handle: the next delivery deletes the message.
        self.offers.renew(record, receipt_handle=delivery.receipt_handle)
        return DeliveryResult(done=False, hidden_until=hidden_until(record, self.clock.now()))

    def _parsed(self, delivery: OfferDelivery) -> tuple[RendezvousRecord, str | None]:
        """Return the draft of a record, and the error text for the client if its offer is invalid."""
        draft = RendezvousRecord(
            client_id=delivery.client_id,
            method=RendezvousMethod.SQS,
            created_at=delivery.sent_at,
            available_at=delivery.sent_at,
            deadline=delivery.sent_at + self.policy.sqs_patience,
            message_id=delivery.message_id,
            receipt_handle=delivery.receipt_handle,
        )
        try:
            offer = Offer.parse(delivery.body, self.bridges)
        except InvalidMessage as error:
            return draft, str(error)
        country = self.country_lookup(best_candidate_address(offer.sdp))
        return replace(with_offer(draft, offer), country=country), None

    def _open(self, draft: RendezvousRecord, delivery: OfferDelivery, *, refusal: str | None) -> DeliveryResult | None:
        """Store a new offer or its refusal; return None if there is a record with its key."""
        # First, because upstream's client gives up if its queue does not exist within five seconds.
        if not self.client_queues.create(draft.client_id, message_id=delivery.message_id):
            return self._drop(delivery)  # a copy of a message that is handled by itself
        if refusal is not None:
            return self._refuse(draft, text=refusal, outcome="rejected")
        now = self.clock.now()
        if now >= draft.deadline:
            return self._refuse(draft, text=TIMED_OUT, outcome="stale")
        if not has_compatible_proxy(self.paces.all(), draft.nat, now=now, recency=self.policy.proxy_recency):
            return self._refuse(draft, text=NO_PROXIES, outcome="denied")
        if not self.offers.open(draft):
            return None
        # A proxy that polls soon is likely to answer before the message comes again: no call is spent on hiding it.
        return DeliveryResult(done=False, events=(events.offer(draft, "parked", at=now),))

    def _refuse(self, draft: RendezvousRecord, *, text: str, outcome: str) -> DeliveryResult | None:
        reply = error_reply(text)
        record = replace(draft, state=OfferState.REFUSED, reply=reply)
        if not self.offers.open(record):
            return None
        self.client_queues.send(record.client_id, reply)
        reason = None if outcome == "denied" else text
        return DeliveryResult(done=True, events=(events.offer(record, outcome, at=self.clock.now(), reason=reason),))

    def _expire(self, record: RendezvousRecord) -> DeliveryResult:
        reply = error_reply(TIMED_OUT if was_matched(record) else NO_PROXIES)
        closed = self.offers.close(record, state=OfferState.EXPIRED, reply=reply)
        if closed is None:
            return DeliveryResult(done=False)  # answered at the same time: the answer deletes the message
        self.client_queues.send(closed.client_id, reply)
        return DeliveryResult(done=True, events=(events.timeout(closed, at=self.clock.now()),))

    def _resend(self, record: RendezvousRecord) -> DeliveryResult:
        if self.clock.now() < record.available_at + SENT_WITHIN:
            return DeliveryResult(done=False)  # the function that took the answer may be sending it
        if record.reply and self.client_queues.is_empty(record.client_id):
            self.client_queues.send(record.client_id, record.reply)
        return DeliveryResult(done=True)


def with_offer(record: RendezvousRecord, offer: Offer) -> RendezvousRecord:
    """Return the record with the fields of the parsed offer."""
    return replace(record, nat=offer.nat, session_description=offer.session_description, relay_url=offer.relay_url)
