"""Rendezvous on the deployed app: offers and answers over SQS, proxies over HTTP."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from signalbox.clients.rendezvous.client import SqsRendezvous
from signalbox.clients.rendezvous.simulator import sample_answer, sample_offer
from signalbox.rendezvous.model.states import OfferState
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from tests.integration.rendezvous.peers import Parties, at_doors, at_each_door, wait_for

pytestmark = pytest.mark.emulator


@at_each_door
def test_a_client_with_its_limited_key_gets_the_proxys_answer_byte_for_byte(parties: Parties):
    dead_letters = parties.dead_letters()
    proxy = parties.wait(parties.proxy())
    outputs = parties.deployment.outputs
    client = SqsRendezvous(
        parties.client_sqs, outputs["BrokerQueueUrl"], client_queue_prefix=outputs["ClientQueuePrefix"]
    )
    offer = sample_offer("a client")

    answer = client.exchange(offer_body(offer, Nat.RESTRICTED))

    assert answer.session_description == sample_answer(offer)
    assert proxy.served.result().accepted is True
    assert proxy.offer() == offer
    wait_for(lambda: parties.waiting_messages() == 0, "the offer deleted")
    assert parties.dead_letters() == dead_letters


@at_doors
def test_an_offer_of_a_silent_proxy_goes_to_the_next_and_the_late_answer_is_refused(parties: Parties):
    silent = parties.wait(parties.proxy(is_silent=True))
    asked = parties.ask(Nat.RESTRICTED)
    assert silent.offer() == asked.offer

    served = parties.proxy().serve()

    assert served.accepted is True
    assert parties.reply(asked.client_id) == asked.answer
    assert parties.proxy().answer(silent.sid, offer=asked.offer) is False
    assert parties.messages_for(asked.client_id) == 1


@at_doors
def test_an_offer_that_is_delivered_twice_uses_one_proxy_and_gets_one_answer(parties: Parties):
    """Upstream uses a proxy for each delivery."""
    held = [parties.wait(parties.proxy()) for _ in range(2)]
    asked = parties.ask(Nat.RESTRICTED)
    wait_for(lambda: parties.record(asked.client_id), "the offer parked")
    parties.send(offer_body(asked.offer, Nat.RESTRICTED), client_id=asked.client_id)

    assert parties.reply(asked.client_id) == asked.answer
    wait_for(lambda: parties.waiting_messages() == 0, "both messages deleted")
    other = parties.ask(Nat.RESTRICTED)

    assert sorted(proxy.offer() for proxy in held) == sorted([asked.offer, other.offer])
    assert parties.messages_for(asked.client_id) == 1


@at_doors
def test_of_two_answers_at_once_the_client_gets_one(parties: Parties):
    holder = parties.wait(parties.proxy(is_silent=True))
    asked = parties.ask(Nat.RESTRICTED)
    assert holder.offer() == asked.offer

    with ThreadPoolExecutor() as pool:
        sent = [pool.submit(parties.proxy().answer, holder.sid, offer=asked.offer) for _ in range(4)]

    assert sorted(answer.result() for answer in sent) == [False, False, False, True]
    assert parties.reply(asked.client_id) == asked.answer
    assert parties.messages_for(asked.client_id) == 1
    record = parties.record(asked.client_id)
    assert record is not None
    assert record.state is OfferState.ANSWERED
