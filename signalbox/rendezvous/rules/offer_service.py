"""The service of SQS offers: it parks, refuses or expires an offer, and resends a reply after a crash."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from signalbox.history.event import HistoryEvent
from signalbox.queues import QueueUrl
from signalbox.rendezvous.model.states import (
    OfferDelivery,
    OfferState,
    OfferStep,
    Rendezvous,
    RendezvousMethod,
    hidden_until,
    is_reservation_lost,
    is_stale,
    next_step,
    was_matched,
)
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.rules.matching import PollReserver, RendezvousPolicy
from signalbox.rendezvous.wire.bridges import BridgeList
from signalbox.rendezvous.wire.offer import Offer, OfferRejectedError
from signalbox.rendezvous.wire.reply import NO_PROXIES, TIMED_OUT, error_reply
from signalbox.rendezvous.wire.sdp import best_candidate_address

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import ClientQueues, Offers
    from signalbox.rendezvous.reporting.client_address import CountryLookup


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
    poll_reserver: PollReserver
    client_queues: "ClientQueues"
    clock: "Clock"
    bridges: BridgeList
    country_lookup: "CountryLookup"
    policy: RendezvousPolicy

    def receive(self, delivery: OfferDelivery) -> DeliveryResult:
        """Execute the next step for a delivered offer."""
        # Nearly every offer is new: a conditional write detects the others, which saves a read.
        receipt = self._open(delivery, replacing=None) if delivery.is_first else None
        return receipt or self._continue(delivery)

    def _continue(self, delivery: OfferDelivery) -> DeliveryResult:
        record = self.offers.find(delivery.client_id)
        step = next_step(record, delivery, digest=_digest(delivery), now=self.clock.now())
        if record is None or step is OfferStep.OPEN:
            # If another delivery of the same offer was faster, the redelivery of this one continues with its record.
            return self._open(delivery, replacing=record) or DeliveryResult(done=False)
        if step is OfferStep.STAY:
            return self._stay(record, delivery)
        if step is OfferStep.EXPIRE:
            return self._expire(record)
        if step is OfferStep.RESEND:
            return self._resend(record)
        return DeliveryResult(done=True, events=(events.duplicate_offer(record, delivery, at=self.clock.now()),))

    def _stay(self, record: Rendezvous, delivery: OfferDelivery) -> DeliveryResult:
        if not self.offers.renew(record, receipt_handle=delivery.receipt_handle):
            # Answered at the same time, perhaps with the older receipt handle: the next delivery deletes the message.
            return DeliveryResult(done=False)
        now = self.clock.now()
        if is_reservation_lost(record, now):
            # The function of its held poll was killed. Another one that waits now need not find it in the pool.
            self.poll_reserver.reserve(record.client_id, nat=record.nat, now=now)
        return DeliveryResult(done=False, hidden_until=hidden_until(record, now))

    def _open(self, delivery: OfferDelivery, *, replacing: Rendezvous | None) -> DeliveryResult | None:
        """Store a new offer or its refusal; return None if the stored record is not `replacing`."""
        now = self.clock.now()
        # First, because upstream's client gives up if its queue does not exist within five seconds.
        queue_url = self.client_queues.create(delivery.client_id)
        record = _new_record(delivery, queue_url=queue_url, now=now, policy=self.policy)
        try:
            offer = Offer.parse(delivery.body, self.bridges)
        except OfferRejectedError as error:
            return self._refuse(record, replacing=replacing, text=error.text, outcome="rejected")
        record = self._with_offer(record, offer)
        if is_stale(delivery, patience=self.policy.sqs_patience):
            return self._refuse(record, replacing=replacing, text=TIMED_OUT, outcome="stale")
        return self._park(record, replacing=replacing, now=now)

    def _with_offer(self, record: Rendezvous, offer: Offer) -> Rendezvous:
        country = self.country_lookup(best_candidate_address(offer.sdp))
        return replace(with_offer(record, offer, self.bridges), country=country)

    def _park(self, record: Rendezvous, *, replacing: Rendezvous | None, now: datetime) -> DeliveryResult | None:
        reservation = self.poll_reserver.reserve(record.client_id, nat=record.nat, now=now)
        if not reservation.is_matchable:
            return self._refuse(record, replacing=replacing, text=NO_PROXIES, outcome="denied")
        record = replace(record, reserved_for=reservation.reserved_for, available_at=reservation.available_at(now))
        if not self.offers.open(record, replacing=replacing):
            return None
        # A held poll that got the offer is likely to answer before the message comes again: no call is spent on it.
        hidden = None if record.reserved_for else hidden_until(record, now)
        return DeliveryResult(done=False, events=(events.offer(record, "parked", at=now),), hidden_until=hidden)

    def _refuse(
        self, record: Rendezvous, *, replacing: Rendezvous | None, text: str, outcome: str
    ) -> DeliveryResult | None:
        record = replace(
            record,
            state=OfferState.REFUSED,
            reply=error_reply(text),
            available_at=self._leased_until(record.created_at),
        )
        if not self.offers.open(record, replacing=replacing):
            return None
        self._send(record)
        reason = None if outcome == "denied" else text
        return DeliveryResult(done=True, events=(events.offer(record, outcome, at=self.clock.now(), reason=reason),))

    def _expire(self, record: Rendezvous) -> DeliveryResult:
        reply = error_reply(TIMED_OUT if was_matched(record) else NO_PROXIES)
        leased_until = self._leased_until(self.clock.now())
        closed = self.offers.close(record.client_id, state=OfferState.EXPIRED, reply=reply, leased_until=leased_until)
        if closed is None:
            return DeliveryResult(done=False)  # answered at the same time: the answer deletes the message
        self._send(closed)
        return DeliveryResult(done=True, events=(events.timeout(closed, at=self.clock.now()),))

    def _resend(self, record: Rendezvous) -> DeliveryResult:
        if record.queue_url and self.client_queues.is_empty(record.queue_url):
            self._send(record)
        return DeliveryResult(done=True)

    def _leased_until(self, start: datetime) -> datetime:
        return start + self.policy.client_queue_lease

    def _send(self, record: Rendezvous) -> None:
        if record.queue_url and record.reply:
            self.client_queues.send(record.queue_url, record.reply)


def with_offer(record: Rendezvous, offer: Offer, bridges: BridgeList) -> Rendezvous:
    """Return the record with the fields of the parsed offer; the parser has already checked the bridge."""
    return replace(
        record,
        nat=offer.nat,
        session_description=offer.session_description,
        relay_url=bridges.relay_url(offer.fingerprint) or "",
    )


def _new_record(delivery: OfferDelivery, *, queue_url: QueueUrl, now: datetime, policy: RendezvousPolicy) -> Rendezvous:
    return Rendezvous(
        client_id=delivery.client_id,
        method=RendezvousMethod.SQS,
        state=OfferState.PENDING,
        created_at=now,
        available_at=now,
        deadline=now + policy.sqs_patience,
        offer_digest=_digest(delivery),
        message_id=delivery.message_id,
        receipt_handle=delivery.receipt_handle,
        queue_url=queue_url,
    )


def _digest(delivery: OfferDelivery) -> str:
    return hashlib.sha256(delivery.body).hexdigest()
