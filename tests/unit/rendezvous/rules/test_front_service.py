"""The rules of a front: when an offer is posted to the existing broker, and when its client's queue is deleted."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.rendezvous.model.states import ClientId, OfferDelivery
from signalbox.rendezvous.rules.front_service import FrontService
from signalbox.rendezvous.rules.offer_service import DeliveryResult
from tests.fakes.rendezvous import MemoryClientQueues, MemoryClock
from tests.unit.rendezvous.rules.services import CLIENT, START, delivery

KEPT_FOR, PATIENCE = timedelta(seconds=150), timedelta(seconds=30)
OFFER = replace(delivery(body=b"1.0\n{}"), is_first=True)
AGAIN = replace(OFFER, is_first=False)
DONE, LEASED = DeliveryResult(done=True), DeliveryResult(done=False, hidden_until=START + KEPT_FOR)


class Front:
    """A front of a broker that numbers its replies."""

    def __init__(self) -> None:
        self.clock, self.client_queues, self.bodies = MemoryClock(), MemoryClientQueues(), list[bytes]()
        self.service = FrontService(self, self.client_queues, self.clock, PATIENCE, KEPT_FOR)

    def reply(self, body: bytes) -> str:
        self.bodies.append(body)
        return f"reply {len(self.bodies)}"

    def receive(self, offer: OfferDelivery, *, after: timedelta = timedelta(0)) -> DeliveryResult:
        self.clock.sleep((START + after - self.clock.now()).total_seconds())
        return self.service.receive(offer)


@pytest.fixture
def front() -> Front:
    return Front()


def test_an_offer_is_posted_once(front):
    assert front.receive(OFFER) == LEASED
    assert front.receive(AGAIN, after=timedelta(seconds=20)) == LEASED
    assert front.bodies == [OFFER.body]
    assert front.client_queues.replies == {CLIENT: ["reply 1"]}


def test_the_queues_of_instances_that_have_ended_are_deleted_when_their_leases_end(front):
    for number in range(50):
        offer = replace(OFFER, client_id=ClientId(f"c{number}"))
        other = FrontService(front, front.client_queues, front.clock, PATIENCE, KEPT_FOR)
        assert other.receive(offer) == LEASED

    for number in range(50):
        offer = replace(AGAIN, client_id=ClientId(f"c{number}"))
        assert front.receive(offer, after=KEPT_FOR) == DONE

    assert front.client_queues.replies == {}
    assert len(front.bodies) == 50


def test_the_end_of_a_lease_deletes_no_queue_of_another_message(front):
    """No delivery of the offer was handled, so nothing has shown that its ClientID names a queue of others."""
    front.client_queues.create(CLIENT, message_id="of others")

    assert front.receive(AGAIN, after=KEPT_FOR) == DONE
    assert front.client_queues.replies == {CLIENT: []}


@pytest.mark.parametrize("after", [PATIENCE, KEPT_FOR])
def test_an_offer_that_comes_after_its_patience_gets_no_queue(front, after):
    assert front.receive(OFFER, after=after) == DONE
    assert (front.bodies, front.client_queues.replies) == ([], {})


def test_an_offer_without_a_reply_is_posted_again(front):
    front.client_queues.create(CLIENT, message_id=OFFER.message_id)

    assert front.receive(AGAIN) == LEASED
    assert front.client_queues.replies == {CLIENT: ["reply 1"]}


def test_a_copy_of_an_offer_is_dropped(front):
    front.receive(OFFER)

    assert front.receive(replace(OFFER, message_id="copy")) == DONE
    assert front.client_queues.replies == {CLIENT: ["reply 1"]}


def test_an_offer_without_a_reply_beyond_its_patience_gets_a_timeout_without_the_broker(front):
    assert front.receive(AGAIN, after=PATIENCE) == LEASED
    assert front.bodies == []
    assert front.client_queues.replies == {CLIENT: ['{"error":"timed out waiting for answer!"}']}
