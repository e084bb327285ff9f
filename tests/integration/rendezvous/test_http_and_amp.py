"""Clients over HTTP, in the older form and over AMP get the answer of their proxy."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from signalbox.clients.rendezvous.amp import amp_path, armored
from signalbox.clients.rendezvous.client import new_client_id
from signalbox.clients.rendezvous.simulator import sample_answer, sample_offer
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from signalbox.rendezvous.wire.reply import answer_reply
from tests.integration.rendezvous.peers import HttpResponse, Parties, at_doors
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, at_doors]

ANSWER_SECONDS = 240


@dataclass(frozen=True, slots=True)
class Form:
    """How a client sends an offer by HTTP, how it reads the reply, and the reply that it expects for an answer."""

    ask: Callable[[Parties, str], HttpResponse]
    content_type: str
    read: Callable[[str], str]
    expected: Callable[[str], str]


FORMS = {
    "HTTP": Form(
        lambda parties, offer: parties.http("POST", "client", offer_body(offer, Nat.UNRESTRICTED)),
        "",
        str,
        answer_reply,
    ),
    "the older form of HTTP": Form(
        lambda parties, offer: parties.http("POST", "client", offer, headers={"Snowflake-NAT-Type": "unrestricted"}),
        "",
        str,
        str,
    ),
    "AMP": Form(
        lambda parties, offer: parties.http("GET", amp_path(offer_body(offer, Nat.UNRESTRICTED))),
        "text/html",
        armored,
        answer_reply,
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_client_gets_the_answer_of_a_proxy_that_waits(parties: Parties, form: Form):
    held = parties.wait(parties.proxy(Nat.RESTRICTED))
    offer = sample_offer(new_client_id())

    response = form.ask(parties, offer)

    assert (response.status, form.read(response.body)) == (200, form.expected(sample_answer(offer)))
    assert response.headers["content-type"].startswith(form.content_type)
    assert held.offer() == offer
    assert held.served.result().accepted


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_client_that_waits_gets_the_answer_of_the_next_proxy(parties: Parties, form: Form):
    parties.expect_proxies(*Nat)
    offer = sample_offer(new_client_id())
    asked = parties.pool.submit(form.ask, parties, offer)
    wait_for(parties.open_offers, "the offer parked")

    served = parties.proxy(Nat.RESTRICTED).serve()
    response = asked.result(ANSWER_SECONDS)

    assert (response.status, form.read(response.body)) == (200, form.expected(sample_answer(offer)))
    assert served.accepted


@pytest.mark.release
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_two_clients_at_once_get_each_its_own_answer(parties: Parties, form: Form):
    parties.expect_proxies(*Nat)
    offers = [sample_offer(new_client_id()) for _ in range(2)]
    proxies = [parties.wait(parties.proxy(Nat.RESTRICTED)) for _ in offers]

    asked = [parties.pool.submit(form.ask, parties, offer) for offer in offers]
    responses = [one.result(ANSWER_SECONDS) for one in asked]

    assert [form.read(one.body) for one in responses] == [form.expected(sample_answer(offer)) for offer in offers]
    assert {proxy.offer() for proxy in proxies} == set(offers)
