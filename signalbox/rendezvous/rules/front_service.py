"""The service of a stage in front of an existing broker: it posts offers there and passes the replies on."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING

from signalbox.rendezvous.model.states import ClientId, OfferDelivery
from signalbox.rendezvous.rules.offer_service import DeliveryResult
from signalbox.rendezvous.wire.reply import TIMED_OUT, error_reply

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import ClientQueues, UpstreamBroker

# Twice as many as a batch has offers: a function that times out while it deletes would have answered the batch twice.
ENDED_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class FrontService:
    """Handles deliveries of offers without a table.

    A function that is killed before it has sent the reply leaves an empty queue, and the next delivery posts the offer
    again. An instance remembers the queues that it has created and deletes them at the end of their lease.
    """

    broker: "UpstreamBroker"
    client_queues: "ClientQueues"
    clock: "Clock"
    patience: timedelta
    lease: timedelta
    leases: dict[ClientId, datetime] = field(default_factory=dict)
    """The ends of the leases of clients' queues, oldest first."""

    def receive(self, delivery: OfferDelivery) -> DeliveryResult:
        """Answer a delivered offer, unless it has its reply or is a copy."""
        client_id = delivery.client_id
        # First, because upstream's client gives up if its queue does not exist within five seconds.
        if not self.client_queues.create(client_id, message_id=delivery.message_id):
            return DeliveryResult(done=True)  # a copy of a message that is handled by itself
        if delivery.is_first or self.client_queues.is_empty(client_id):
            self.client_queues.send(client_id, self._reply(delivery))
        self.leases[client_id] = self.clock.now() + self.lease
        return DeliveryResult(done=True)

    def end_leases(self) -> None:
        """Delete some of the queues whose lease has ended; one that cannot be deleted is left to the sweep."""
        for client_id in list(islice(self._ended(), ENDED_AT_ONCE)):
            del self.leases[client_id]
            self.client_queues.delete(client_id)

    def _ended(self) -> Iterator[ClientId]:
        now = self.clock.now()
        for client_id, end in self.leases.items():
            if end > now:
                return
            yield client_id

    def _reply(self, delivery: OfferDelivery) -> str:
        if self.clock.now() >= delivery.sent_at + self.patience:
            return error_reply(TIMED_OUT)  # no proxy is used for a client that has waited in the queue
        return self.broker.reply(delivery.body)
