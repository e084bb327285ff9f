"""The rules of a front: when an offer is posted to the existing broker, and when its client's queue is deleted."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.rendezvous.model.states import ClientId, OfferDelivery
from signalbox.rendezvous.rules.front_service import FrontService
from signalbox.rendezvous.rules.offer_service import DeliveryResult
from tests.fakes.rendezvous import MemoryClientQueues, MemoryClock
from tests.unit.rendezvous.rules.services import CLIENT, START, delivery

LEASE, PATIENCE = timedelta(seconds=120), timedelta(seconds=30)
OFFER = replace(delivery(body=b"1.0\n{}"), is_first=True)
DONE = DeliveryResult(done=True)


class Front:
    """A front of a broker that numbers its replies."""

    def __init__(self) -> None:
        self.clock, self.client_queues, self.bodies = MemoryClock(), MemoryClientQueues(), list[bytes]()
        self.service = FrontService(self, self.client_queues, self.clock, PATIENCE, LEASE)

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
    assert front.receive(OFFER) == DONE
    assert front.receive(replace(OFFER, is_first=False), after=timedelta(seconds=20)) == DONE
    assert front.bodies == [OFFER.body]
    assert front.client_queues.replies == {CLIENT: ["reply 1"]}


def test_an_instance_deletes_the_queues_whose_lease_has_ended(front):
    other = replace(OFFER, client_id=ClientId("other"), message_id="m2")
    front.receive(OFFER)
    front.receive(other, after=timedelta(seconds=20))

    front.clock.sleep(99)
    front.service.end_leases()
    assert front.client_queues.replies.keys() == {CLIENT, "other"}

    front.clock.sleep(1)
    front.service.end_leases()
    assert front.client_queues.replies.keys() == {"other"}

    front.clock.sleep(20)
    front.service.end_leases()
    assert front.client_queues.replies == {}


def test_an_instance_deletes_few_queues_after_a_batch_so_that_its_time_suffices(front):
    for number in range(50):
        front.receive(replace(OFFER, client_id=ClientId(f"c{number}")))

    front.clock.sleep(LEASE.total_seconds())
    front.service.end_leases()

    assert len(front.client_queues.replies) == 30


def test_an_offer_without_a_reply_is_posted_again(front):
    front.client_queues.create(CLIENT, message_id=OFFER.message_id)

    assert front.receive(replace(OFFER, is_first=False)) == DONE
    assert front.client_queues.replies == {CLIENT: ["reply 1"]}


def test_a_copy_of_an_offer_is_dropped(front):
    front.receive(OFFER)

    assert front.receive(replace(OFFER, message_id="copy")) == DONE
    assert front.client_queues.replies == {CLIENT: ["reply 1"]}


def test_an_offer_beyond_its_patience_gets_a_timeout_without_the_broker(front):
    assert front.receive(OFFER, after=PATIENCE) == DONE
    assert front.bodies == []
    assert front.client_queues.replies == {CLIENT: ['{"error":"timed out waiting for answer!"}']}
