"""What happens to a proxy's answer: stored, sent to the client, and the offer deleted."""

from dataclasses import dataclass

from signalbox.clock import Clock
from signalbox.rendezvous.ports import BrokerQueue, ClientQueues, Offers
from signalbox.rendezvous.rules.states import ProxySessionId, Rendezvous
from signalbox.rendezvous.wire.proxy import ProxyAnswer
from signalbox.rendezvous.wire.reply import answer_reply


@dataclass(frozen=True, slots=True)
class AnswerDesk:
    """Takes answers. One that nobody waits for is refused at once, and never kept for a later client."""

    offers: Offers
    client_queues: ClientQueues
    broker_queue: BrokerQueue
    clock: Clock

    def take(self, answer: ProxyAnswer) -> Rendezvous | None:
        """Hand the answer to its client; return the rendezvous, or None when the client is gone."""
        sid = ProxySessionId(answer.sid)
        client_id = self.offers.matched_by(sid)
        if client_id is None:
            return None
        reply = answer_reply(answer.answer)
        record = self.offers.answer(client_id, sid=sid, reply=reply, now=self.clock.now())
        if record is not None:
            self._hand_over(record, reply)
        return record

    def _hand_over(self, record: Rendezvous, reply: str) -> None:
        # An HTTP client has no queue: its own request is waiting for the record to change.
        if record.queue_url is not None:
            self.client_queues.send(record.queue_url, reply)
        if record.receipt_handle is not None:
            self.broker_queue.delete(record.receipt_handle)
