"""The service of proxy answers: it stores an answer, sends it to the client and deletes the offer message."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.rendezvous.model.states import ProxySessionId, Rendezvous
from signalbox.rendezvous.rules.matching import RendezvousPolicy
from signalbox.rendezvous.wire.proxy import ProxyAnswer
from signalbox.rendezvous.wire.reply import answer_reply

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import BrokerQueue, ClientQueues, Offers


@dataclass(frozen=True, slots=True)
class AnswerService:
    """Accepts proxy answers; an answer without a waiting client is refused at once and never stored."""

    offers: "Offers"
    client_queues: "ClientQueues"
    broker_queue: "BrokerQueue"
    clock: "Clock"
    policy: RendezvousPolicy

    def accept(self, answer: ProxyAnswer) -> Rendezvous | None:
        """Deliver the answer to its client and return the rendezvous, or return None if no client waits for it."""
        sid = ProxySessionId(answer.sid)
        client_id = self.offers.matched_by(sid)
        if client_id is None:
            return None
        reply = answer_reply(answer.answer)
        now = self.clock.now()
        record = self.offers.answer(
            client_id,
            sid=sid,
            reply=reply,
            now=now,
            leased_until=now + self.policy.client_queue_lease,
        )
        if record is not None:
            self._send(record, reply)
        return record

    def _send(self, record: Rendezvous, reply: str) -> None:
        # An HTTP client has no queue: the function that holds its request polls the record.
        if record.queue_url is not None:
            self.client_queues.send(record.queue_url, reply)
        if record.receipt_handle is not None:
            self.broker_queue.delete(record.receipt_handle)
