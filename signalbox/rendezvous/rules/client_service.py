"""The service of HTTP offers: it holds the request open until there is a reply."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from signalbox.rendezvous.model.pace import has_compatible_proxy
from signalbox.rendezvous.model.states import ClientId, OfferState, RendezvousMethod, RendezvousRecord, was_matched
from signalbox.rendezvous.rules.offer_service import with_offer
from signalbox.rendezvous.rules.policy import RendezvousPolicy
from signalbox.rendezvous.wire.offer import Offer
from signalbox.rendezvous.wire.reply import NO_PROXIES, TIMED_OUT, error_reply

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import Offers, ProxyPaces

TICK = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True)
class ClientService:
    """Serves offers whose HTTP request stays open until the reply."""

    offers: "Offers"
    paces: "ProxyPaces"
    clock: "Clock"
    policy: RendezvousPolicy

    def serve(self, offer: Offer, *, client_id: ClientId, method: RendezvousMethod, country: str) -> RendezvousRecord:
        """Wait for an answer and return the rendezvous in its final state, with the reply for the client."""
        now = self.clock.now()
        record = RendezvousRecord(
            client_id=client_id,
            method=method,
            created_at=now,
            available_at=now,
            deadline=now + self.policy.http_patience,
            country=country,
        )
        record = with_offer(record, offer)
        if not has_compatible_proxy(self.paces.all(), record.nat, now=now, recency=self.policy.proxy_recency):
            return replace(record, state=OfferState.REFUSED, reply=error_reply(NO_PROXIES))
        self.offers.open(record)
        return self._wait(record)

    def _wait(self, record: RendezvousRecord) -> RendezvousRecord:
        while record.state is not OfferState.ANSWERED:
            if self.clock.now() >= record.deadline:
                return self._expire(record)
            self.clock.sleep(TICK.total_seconds())
            record = self.offers.find(record) or record
        return record

    def _expire(self, record: RendezvousRecord) -> RendezvousRecord:
        reply = error_reply(TIMED_OUT if was_matched(record) else NO_PROXIES)
        closed = self.offers.close(record, state=OfferState.EXPIRED, reply=reply)
        # `close` returns None if the answer arrived just before.
        return closed or self.offers.find(record) or record
