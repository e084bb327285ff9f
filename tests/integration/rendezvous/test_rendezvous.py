"""Rendezvous on the deployed app: offers and answers over SQS, proxies over HTTP."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from signalbox.clients.rendezvous.client import SqsRendezvous
from signalbox.clients.rendezvous.simulator import Behaviour, new_session_id, sample_answer, sample_offer
from signalbox.rendezvous.model.states import OfferState
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.proxy import ProxyAnswer, answer_body
from tests.integration.rendezvous.peers import CLIENT_GONE, DENIED, SOON_SECONDS, SUCCESS, Parties, wait_for

pytestmark = pytest.mark.emulator

FITTING = [
    (Nat.UNRESTRICTED, Nat.RESTRICTED),
    (Nat.UNRESTRICTED, Nat.UNKNOWN),
    (Nat.UNRESTRICTED, Nat.UNRESTRICTED),
    (Nat.RESTRICTED, Nat.UNRESTRICTED),
    (Nat.UNKNOWN, Nat.UNRESTRICTED),
]


def test_a_client_with_its_limited_key_gets_the_proxys_answer_byte_for_byte(parties: Parties):
    dead_letters = parties.dead_letters()
    proxy = parties.hold(parties.proxy())
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


@pytest.mark.parametrize(("client", "proxy"), FITTING)
def test_a_client_gets_a_proxy_that_its_nat_can_reach(parties: Parties, client: Nat, proxy: Nat):
    held = parties.hold(parties.proxy(proxy))

    asked = parties.ask(client)

    assert parties.reply(asked.client_id) == asked.answer
    assert held.offer() == asked.offer


def test_a_client_without_a_compatible_proxy_is_denied_at_once_though_others_wait(parties: Parties):
    """The other four pairs: a restricted or unknown client and a restricted or unknown proxy."""
    held = [parties.hold(parties.proxy(nat)) for nat in (Nat.RESTRICTED, Nat.UNKNOWN)]

    for nat in (Nat.RESTRICTED, Nat.UNKNOWN):
        asked = parties.ask(nat)
        assert parties.reply(asked.client_id, seconds=SOON_SECONDS) == DENIED
    fitting = [parties.ask(Nat.UNRESTRICTED) for _ in held]

    assert {proxy.offer() for proxy in held} == {asked.offer for asked in fitting}


@pytest.mark.parametrize(
    ("client", "worse", "better"),
    [
        (Nat.UNRESTRICTED, (Nat.UNRESTRICTED, 0), (Nat.RESTRICTED, 16)),
        (Nat.UNRESTRICTED, (Nat.UNRESTRICTED, 0), (Nat.UNKNOWN, 16)),
        (Nat.RESTRICTED, (Nat.UNRESTRICTED, 8), (Nat.UNRESTRICTED, 0)),
    ],
    ids=["restricted proxies first", "unknown proxies first", "fewest clients first"],
)
def test_a_client_gets_the_waiting_proxy_that_upstream_prefers(parties: Parties, client, worse, better):
    """The preferred proxy polls last, so that the order of arrival cannot choose it."""
    second, first = (parties.hold(parties.proxy(nat, clients=clients)) for nat, clients in (worse, better))

    asked = parties.ask(client)
    assert parties.reply(asked.client_id) == asked.answer
    last = parties.ask(client)

    assert (first.offer(), second.offer()) == (asked.offer, last.offer)


def test_an_offer_without_a_waiting_proxy_waits_for_the_next_poll(parties: Parties):
    parties.expect_proxies(Nat.UNRESTRICTED)
    asked = parties.ask(Nat.RESTRICTED)
    wait_for(lambda: parties.record(asked.client_id), "the offer parked")
    assert parties.messages_for(asked.client_id) == 0

    served = parties.proxy().serve_once()

    assert served.accepted is True
    assert parties.reply(asked.client_id) == asked.answer


def test_an_offer_of_a_silent_proxy_goes_to_the_next_and_the_late_answer_is_refused(parties: Parties):
    silent = parties.hold(parties.proxy(behaviour=Behaviour.SILENT))
    asked = parties.ask(Nat.RESTRICTED)
    assert silent.offer() == asked.offer

    served = parties.proxy().serve_once()

    assert served.accepted is True
    assert parties.reply(asked.client_id) == asked.answer
    assert parties.proxy().answer(silent.sid, offer=asked.offer) is False
    assert parties.messages_for(asked.client_id) == 1


def test_an_offer_reserved_for_a_proxy_that_hung_up_goes_to_the_next(parties: Parties):
    gone = parties.proxy(behaviour=Behaviour.HUNG_UP).serve_once()
    wait_for(lambda: gone.sid in parties.held_sids(), "the poll of the proxy that hung up held")
    asked = parties.ask(Nat.RESTRICTED)

    served = parties.proxy().serve_once()

    assert served.accepted is True
    assert parties.reply(asked.client_id) == asked.answer


def test_an_offer_that_is_delivered_twice_uses_one_proxy_and_gets_one_answer(parties: Parties):
    """Upstream uses a proxy for each delivery."""
    held = [parties.hold(parties.proxy()) for _ in range(2)]
    asked = parties.ask(Nat.RESTRICTED)
    wait_for(lambda: parties.record(asked.client_id), "the offer parked")
    parties.send(offer_body(asked.offer, Nat.RESTRICTED), client_id=asked.client_id)

    assert parties.reply(asked.client_id) == asked.answer
    wait_for(lambda: parties.waiting_messages() == 0, "both messages deleted")
    other = parties.ask(Nat.RESTRICTED)

    assert sorted(proxy.offer() for proxy in held) == sorted([asked.offer, other.offer])
    assert parties.messages_for(asked.client_id) == 1


def test_an_answer_before_any_match_is_refused_and_reaches_no_later_client(parties: Parties):
    """Upstream stores it for the proxy's next client, whose offer it does not answer."""
    sid = new_session_id()
    early = parties.http("POST", "answer", answer_body(ProxyAnswer(sid, sample_answer(sample_offer("nobody")))))
    parties.expect_proxies(Nat.UNRESTRICTED)
    asked = parties.ask(Nat.RESTRICTED)

    response = parties.proxy().poll_once(sid)

    assert early.body == CLIENT_GONE
    assert response.offer == asked.offer
    assert parties.messages_for(asked.client_id) == 0
    assert parties.proxy().answer(sid, offer=asked.offer) is True
    assert parties.reply(asked.client_id) == asked.answer


def test_of_two_answers_the_client_gets_the_first(parties: Parties):
    sid = new_session_id()
    parties.expect_proxies(Nat.UNRESTRICTED)
    asked = parties.ask(Nat.RESTRICTED)
    parties.proxy().poll_once(sid)
    answers = [answer_body(ProxyAnswer(sid, sample_answer(asked.offer, address=address))) for address in ("a", "b")]

    first, second = (parties.http("POST", "answer", answer) for answer in answers)

    assert (first.body, second.body) == (SUCCESS, CLIENT_GONE)
    assert json.loads(parties.reply(asked.client_id))["answer"] == sample_answer(asked.offer, address="a")
    assert parties.messages_for(asked.client_id) == 1


def test_of_two_answers_at_once_the_client_gets_one(parties: Parties):
    sid = new_session_id()
    parties.expect_proxies(Nat.UNRESTRICTED)
    asked = parties.ask(Nat.RESTRICTED)
    parties.proxy().poll_once(sid)

    with ThreadPoolExecutor() as pool:
        sent = [pool.submit(parties.proxy().answer, sid, offer=asked.offer) for _ in range(4)]

    assert sorted(answer.result() for answer in sent) == [False, False, False, True]
    assert parties.reply(asked.client_id) == asked.answer
    assert parties.messages_for(asked.client_id) == 1
    record = parties.record(asked.client_id)
    assert record is not None
    assert record.state is OfferState.ANSWERED
