"""What happens to an offer that came by SQS: parked, refused, expired, or answered again after a crash."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.clock import Clock
from signalbox.history.event import HistoryEvent
from signalbox.queues import QueueUrl
from signalbox.rendezvous.ports import ClientQueues, Offers
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.client_address import CountryOf
from signalbox.rendezvous.rules.matching import Matchmaker, Policy
from signalbox.rendezvous.rules.states import (
    Delivery,
    Method,
    Rendezvous,
    State,
    Step,
    is_stale,
    next_step,
    was_matched,
)
from signalbox.rendezvous.wire.bridges import BridgeList
from signalbox.rendezvous.wire.offer import Offer, OfferRejectedError
from signalbox.rendezvous.wire.reply import NO_PROXIES, TIMED_OUT, error_reply
from signalbox.rendezvous.wire.sdp import SessionDescription, best_candidate_address


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a delivery: a message that is not `done` stays in flight until its visibility ends."""

    done: bool
    events: tuple[HistoryEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class OfferDesk:
    """Takes deliveries of offers; every step may be repeated after a crash at any other.

    A reply is stored before it is sent, so a delivery that comes back finds either an open offer to go on with, or
    a reply of which the client's queue itself shows whether it was sent.
    """

    offers: Offers
    matchmaker: Matchmaker
    client_queues: ClientQueues
    clock: Clock
    bridges: BridgeList
    country_of: CountryOf
    policy: Policy

    def receive(self, delivery: Delivery) -> Receipt:
        """Carry out the next step for a delivered offer."""
        # Nearly every offer is new: storing it shows that better than looking first would.
        receipt = self._open(delivery, replacing=None) if delivery.is_first else None
        return receipt or self._go_on(delivery)

    def _go_on(self, delivery: Delivery) -> Receipt:
        record = self.offers.find(delivery.client_id)
        step = next_step(record, delivery, digest=_digest(delivery), now=self.clock.now())
        if record is None or step is Step.OPEN:
            # Should another delivery of the same offer be quicker, this one looks again later.
            return self._open(delivery, replacing=record) or Receipt(done=False)
        if step is Step.STAY:
            self.offers.renew(delivery.client_id, receipt_handle=delivery.receipt_handle)
            return Receipt(done=False)
        if step is Step.EXPIRE:
            return self._expire(record)
        if step is Step.RESEND:
            return self._resend(record)
        return Receipt(done=True, events=(events.duplicate_offer(record, delivery, at=self.clock.now()),))

    def _open(self, delivery: Delivery, *, replacing: Rendezvous | None) -> Receipt | None:
        """Store a new offer, or its refusal; None if there is another record than `replacing` by now."""
        now = self.clock.now()
        # First of all, since a real client gives up when its queue is not there within five seconds.
        queue_url = self.client_queues.create(delivery.client_id, due_at=now + self.policy.client_queue_lease)
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
        sdp = SessionDescription.parse(offer.session_description).sdp
        return replace(with_offer(record, offer, self.bridges), country=self.country_of(best_candidate_address(sdp)))

    def _park(self, record: Rendezvous, *, replacing: Rendezvous | None, now: datetime) -> Receipt | None:
        placement = self.matchmaker.place(record.client_id, nat=record.nat, now=now)
        if not placement.is_hopeful:
            return self._refuse(record, replacing=replacing, text=NO_PROXIES, outcome="denied")
        record = replace(record, lent_to=placement.lent_to, available_at=placement.available_at(now))
        if not self.offers.open(record, replacing=replacing):
            return None
        return Receipt(done=False, events=(events.offer(record, "parked", at=now),))

    def _refuse(self, record: Rendezvous, *, replacing: Rendezvous | None, text: str, outcome: str) -> Receipt | None:
        record = replace(record, state=State.REFUSED, reply=error_reply(text))
        if not self.offers.open(record, replacing=replacing):
            return None
        self._send(record)
        reason = None if outcome == "denied" else text
        return Receipt(done=True, events=(events.offer(record, outcome, at=self.clock.now(), reason=reason),))

    def _expire(self, record: Rendezvous) -> Receipt:
        reply = error_reply(TIMED_OUT if was_matched(record) else NO_PROXIES)
        closed = self.offers.close(record.client_id, state=State.EXPIRED, reply=reply)
        if closed is None:
            return Receipt(done=False)  # answered at this very moment: the answer deletes the offer
        self._send(closed)
        return Receipt(done=True, events=(events.timeout(closed, at=self.clock.now()),))

    def _resend(self, record: Rendezvous) -> Receipt:
        if record.queue_url and self.client_queues.is_empty(record.queue_url):
            self._send(record)
        return Receipt(done=True)

    def _send(self, record: Rendezvous) -> None:
        if record.queue_url and record.reply:
            self.client_queues.send(record.queue_url, record.reply)


def with_offer(record: Rendezvous, offer: Offer, bridges: BridgeList) -> Rendezvous:
    """Return the record with what the parsed offer says; the parser has made sure that the bridge is known."""
    return replace(
        record,
        nat=offer.nat,
        session_description=offer.session_description,
        relay_url=bridges.relay_url(offer.fingerprint) or "",
    )


def _new_record(delivery: Delivery, *, queue_url: QueueUrl, now: datetime, policy: Policy) -> Rendezvous:
    return Rendezvous(
        client_id=delivery.client_id,
        method=Method.SQS,
        state=State.PENDING,
        created_at=now,
        available_at=now,
        deadline=now + policy.sqs_patience,
        offer_digest=_digest(delivery),
        message_id=delivery.message_id,
        receipt_handle=delivery.receipt_handle,
        queue_url=queue_url,
    )


def _digest(delivery: Delivery) -> str:
    return hashlib.sha256(delivery.body).hexdigest()
