"""The service of a stage in front of an existing broker: it posts offers there and passes the replies on."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from signalbox.rendezvous.model.states import OfferDelivery
from signalbox.rendezvous.rules.offer_service import DeliveryResult
from signalbox.rendezvous.wire.reply import TIMED_OUT, error_reply

if TYPE_CHECKING:
    from signalbox.clock import Clock
    from signalbox.rendezvous.ports import ClientQueues, UpstreamBroker

DONE = DeliveryResult(done=True)


@dataclass(frozen=True, slots=True)
class FrontService:
    """Handles deliveries of offers without a table.

    A function that is killed before it has sent the reply leaves an empty queue, and the next delivery posts the offer
    again. The offer is also the lease of its client's queue: it is hidden until the lease ends, `kept_for` after the
    offer was sent, and then its delivery deletes the queue.
    """

    broker: "UpstreamBroker"
    client_queues: "ClientQueues"
    clock: "Clock"
    patience: timedelta
    kept_for: timedelta

    def receive(self, delivery: OfferDelivery) -> DeliveryResult:
        """Answer a delivered offer, unless it has its reply or is a copy, or end the lease of its client's queue."""
        client_id, age = delivery.client_id, self.clock.now() - delivery.sent_at
        if delivery.is_first and age >= self.patience:
            return DONE  # its client gave up after five seconds without a queue
        if age >= self.kept_for:
            self._end_lease(delivery)
            return DONE
        # First, because upstream's client gives up if its queue does not exist within five seconds.
        if not self.client_queues.create(client_id, message_id=delivery.message_id):
            return DONE  # a copy of a message that is handled by itself
        if delivery.is_first or self.client_queues.is_empty(client_id):
            self.client_queues.send(client_id, self._reply(delivery))
        return DeliveryResult(done=False, hidden_until=delivery.sent_at + self.kept_for)

    def _end_lease(self, delivery: OfferDelivery) -> None:
        # An offer that no delivery has handled can name a queue of others.
        if self.client_queues.is_of(delivery.client_id, message_id=delivery.message_id):
            self.client_queues.delete(delivery.client_id)

    def _reply(self, delivery: OfferDelivery) -> str:
        if self.clock.now() >= delivery.sent_at + self.patience:
            return error_reply(TIMED_OUT)  # no proxy is used for a client that has waited for a second delivery
        return self.broker.reply(delivery.body)
