"""The service of proxy answers: it stores an answer, sends it to the client and deletes the offer message."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signalbox.networks import CostlyRequests
from signalbox.rendezvous.model.states import RendezvousMethod, RendezvousRecord
from signalbox.rendezvous.rules.policy import RendezvousPolicy
from signalbox.rendezvous.wire.proxy import ProxyAnswer
from signalbox.rendezvous.wire.reply import answer_reply

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import BrokerQueue, ClientQueues, Offers


@dataclass(frozen=True, slots=True)
class AnswerService:
    """Accepts proxy answers; an answer without a waiting client is refused at once and never stored.

    After three of them in ten seconds, a network's answers are refused unread: a stranger must not use up the reads of
    the polls, and an answer that finds no client reads up to 64 offers.
    """

    offers: "Offers"
    client_queues: "ClientQueues"
    broker_queue: "BrokerQueue"
    clock: "Clock"
    policy: RendezvousPolicy
    misses: CostlyRequests = field(default_factory=CostlyRequests)

    def accept(self, answer: ProxyAnswer, *, network: int | None) -> RendezvousRecord | None:
        """Deliver the answer to its client and return the rendezvous, or return None if no client waits for it.

        `network` identifies the proxy's network.
        """
        sid, now = answer.sid, self.clock.now()
        if self.misses.are_over(network, now=now):
            return None
        match = self.offers.matched_by(sid, since=now - self.policy.longest_patience)
        if match is None:
            self.misses.of_network[network] += 1
            return None
        reply = answer_reply(answer.answer)
        record = self.offers.answer(match, sid=sid, reply=reply, now=now)
        if record is not None:
            self._send(record, reply)
        return record

    def _send(self, record: RendezvousRecord, reply: str) -> None:
        # An HTTP client has no queue: the function that holds its request polls the record.
        if record.method is RendezvousMethod.SQS:
            self.client_queues.send(record.client_id, reply)
        if record.receipt_handle is not None:
            self.broker_queue.delete(record.receipt_handle)
