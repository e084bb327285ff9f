"""The service of proxy answers in a stage with peers: an answer goes to the region of the offer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from signalbox.rendezvous.rules.answer_service import AnswerService
from signalbox.rendezvous.rules.states import ForeignOffer, ProxySessionId, Rendezvous
from signalbox.rendezvous.wire.proxy import ProxyAnswer

if TYPE_CHECKING:
    from signalbox.rendezvous.ports import Announcements


@dataclass(frozen=True, slots=True)
class SharedAnswerService:
    """Accepts proxy answers: `local` delivers those to this region's offers, `homes` those to each peer's."""

    local: AnswerService
    homes: Mapping[str, AnswerService]
    announcements: "Announcements"

    def accept(self, answer: ProxyAnswer) -> Rendezvous | None:
        """Deliver the answer to its client and return the rendezvous, or return None if no client waits for it.

        An error of the home region is raised: the proxy gets no success, and the offer goes to another proxy there.
        """
        client_id = self.local.offers.matched_by(ProxySessionId(answer.sid))
        if client_id is None:
            return None
        foreign = ForeignOffer.parse(client_id)
        if foreign is None:
            return self.local.deliver(client_id, answer)
        home = self.homes.get(foreign.home)
        record = home.deliver(foreign.client_id, answer) if home else None
        if record is None:
            return None
        self.announcements.remove(client_id)
        return replace(record, home=foreign.home)
