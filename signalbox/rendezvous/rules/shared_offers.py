"""The offers of several regions: those of this one, and those that its peers announced here."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from signalbox.rendezvous.rules.peers import Peer, Peers
from signalbox.rendezvous.rules.states import (
    OPEN_STATES,
    Claimant,
    ClaimResult,
    ClientId,
    ForeignOffer,
    OfferPool,
    OfferState,
    ProxySessionId,
    Rendezvous,
)

if TYPE_CHECKING:
    from signalbox.rendezvous.ports import Announcements, Offers

NOT_CLAIMED = ClaimResult(None, is_stored=True)


@dataclass(frozen=True, slots=True)
class SharedOffers:
    """`Offers` of a stage with peers: the record of an offer is in its home region only.

    An announced offer has the id of a `ForeignOffer`. It is claimed by the conditional write in its home's table, as if
    the proxy had polled there, so an offer has one proxy at a time in all regions together.
    """

    local: "Offers"
    announcements: "Announcements"
    """The announcements in this region's table."""
    peers: Peers

    def find(self, client_id: ClientId) -> Rendezvous | None:
        """Return the newest record of a client of this region, or None."""
        return self.local.find(client_id)

    def open(self, record: Rendezvous, *, replacing: Rendezvous | None) -> bool:
        """Store a new record; announce it to the peers unless it is reserved for a held poll of this region."""
        is_new = self.local.open(record, replacing=replacing)
        if is_new and record.state is OfferState.PENDING and record.reserved_for is None:
            self.peers.announce(record)
        return is_new

    def claimable(self, pools: Iterable[OfferPool], *, now: datetime) -> list[Rendezvous]:
        """Return the available offers of this region, oldest first, and then those of the peers that respond."""
        chosen = tuple(pools)
        found = self.local.claimable(chosen, now=now)
        for peer in self.peers.responding():
            found += self._live(self.announcements.announced(chosen, home=peer.region, now=now), now)
        return found

    def _live(self, announced: Iterable[Rendezvous], now: datetime) -> Iterator[Rendezvous]:
        """Yield the offers whose client still waits; delete the others, which would fill the page of every query."""
        for record in announced:
            if now < record.deadline:
                yield record
            else:
                self.announcements.remove(record.client_id)

    def claim(self, client_id: ClientId, *, proxy: Claimant, now: datetime, until: datetime) -> ClaimResult:
        """Claim an available offer in its home region; without a response from there, the offer is not claimed."""
        foreign = ForeignOffer.parse(client_id)
        if foreign is None:
            return self.local.claim(client_id, proxy=proxy, now=now, until=until)
        peer = self.peers.of(foreign.home)
        # First here: one poll of this region at a time calls the home region for this offer.
        if peer is None or not self.announcements.take(client_id, now=now, until=until):
            return NOT_CLAIMED
        claim = self.peers.attempt(
            peer, lambda: peer.offers.claim(foreign.client_id, proxy=proxy, now=now, until=until)
        )
        if claim is None:
            return NOT_CLAIMED
        if claim.match is None:
            self._withdraw(peer, foreign)
            return NOT_CLAIMED
        return replace(claim, match=replace(claim.match, home=foreign.home))

    def _withdraw(self, peer: Peer, foreign: ForeignOffer) -> None:
        """Delete the announcement of an offer that has ended; one that another proxy has may become available again."""

        def is_open() -> bool:
            record = peer.offers.find(foreign.client_id)
            return record is not None and record.state in OPEN_STATES

        if self.peers.attempt(peer, is_open) is False:
            self.announcements.remove(foreign.key)

    def matched_by(self, sid: ProxySessionId) -> ClientId | None:
        """Return the client of the newest match of a proxy session of this region, or None."""
        return self.local.matched_by(sid)

    def answer(
        self, client_id: ClientId, *, sid: ProxySessionId, reply: str, now: datetime, leased_until: datetime
    ) -> Rendezvous | None:
        """Store the answer to an offer of this region; `SharedAnswerService` answers those of the peers."""
        return self.local.answer(client_id, sid=sid, reply=reply, now=now, leased_until=leased_until)

    def close(self, client_id: ClientId, *, state: OfferState, reply: str, leased_until: datetime) -> Rendezvous | None:
        """Close an open offer of this region; the home of any other closes it."""
        return self.local.close(client_id, state=state, reply=reply, leased_until=leased_until)

    def renew(self, record: Rendezvous, *, receipt_handle: str) -> bool:
        """Store the newest receipt handle of an open offer, and announce the offer again."""
        is_open = self.local.renew(record, receipt_handle=receipt_handle)
        if is_open:
            self.peers.announce(record)
        return is_open
