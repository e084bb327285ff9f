"""What happens to an offer that came by HTTP: its request is held until there is a reply."""

from dataclasses import dataclass, replace
from datetime import timedelta

from signalbox.clock import Clock
from signalbox.rendezvous.ports import Offers
from signalbox.rendezvous.rules.matching import Matchmaker, Policy
from signalbox.rendezvous.rules.offer_service import with_offer
from signalbox.rendezvous.rules.states import ClientId, Method, Rendezvous, State, was_matched
from signalbox.rendezvous.wire.bridges import BridgeList
from signalbox.rendezvous.wire.offer import Offer
from signalbox.rendezvous.wire.reply import NO_PROXIES, TIMED_OUT, error_reply

TICK = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True)
class CallDesk:
    """Takes offers from clients that wait on the line."""

    offers: Offers
    matchmaker: Matchmaker
    clock: Clock
    bridges: BridgeList
    policy: Policy

    def serve(self, offer: Offer, *, client_id: ClientId, method: Method, country: str) -> Rendezvous:
        """Return the rendezvous in its final state, with the reply for the client."""
        now = self.clock.now()
        record = Rendezvous(
            client_id=client_id,
            method=method,
            state=State.PENDING,
            created_at=now,
            available_at=now,
            deadline=now + self.policy.http_patience,
            country=country,
        )
        record = with_offer(record, offer, self.bridges)
        placement = self.matchmaker.place(client_id, nat=record.nat, now=now)
        if not placement.is_hopeful:
            return replace(record, state=State.REFUSED, reply=error_reply(NO_PROXIES))
        record = replace(record, lent_to=placement.lent_to, available_at=placement.available_at(now))
        self.offers.open(record, replacing=None)
        return self._wait(record)

    def _wait(self, record: Rendezvous) -> Rendezvous:
        while record.state is not State.ANSWERED:
            if self.clock.now() >= record.deadline:
                return self._expire(record)
            self.clock.sleep(TICK.total_seconds())
            record = self.offers.find(record.client_id) or record
        return record

    def _expire(self, record: Rendezvous) -> Rendezvous:
        reply = error_reply(TIMED_OUT if was_matched(record) else NO_PROXIES)
        closed = self.offers.close(record.client_id, state=State.EXPIRED, reply=reply)
        # It cannot be closed when the answer came at the last moment.
        return closed or self.offers.find(record.client_id) or record
