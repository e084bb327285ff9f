"""The service of HTTP offers."""

import json
from datetime import timedelta

from signalbox.rendezvous.model.states import ClientId, OfferState, RendezvousMethod, RendezvousRecord
from signalbox.rendezvous.wire.bridges import DEFAULT_FINGERPRINT
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import Offer
from signalbox.rendezvous.wire.reply import answer_reply
from tests.fakes.rendezvous import START
from tests.unit.rendezvous.rules.services import ANSWER, OFFER, World, proxy

HTTP_CLIENT = ClientId("request-1")


def call(world: World) -> RendezvousRecord:
    offer = Offer(OFFER, Nat.UNRESTRICTED, DEFAULT_FINGERPRINT, json.loads(OFFER)["sdp"])
    return world.client_service().serve(offer, client_id=HTTP_CLIENT, method=RendezvousMethod.HTTP, country="US")


def test_an_http_offer_returns_the_answer_as_soon_as_it_is_stored() -> None:
    world = World()
    world.expect_proxies()

    def serve() -> None:
        world.poll(proxy())
        world.answer(proxy())

    world.clock.at(2, serve)

    record = call(world)

    assert record.reply == answer_reply(ANSWER)
    assert record.country == "US"
    assert world.clock.now() - START < timedelta(seconds=2.3)
    assert world.client_queues.replies == {}
    assert world.broker_queue.deleted == []


def test_an_http_offer_is_denied_at_once_without_a_recent_compatible_proxy() -> None:
    world = World()

    record = call(world)

    assert record.state is OfferState.REFUSED
    assert record.reply == '{"error":"no snowflake proxies currently available"}'
    assert world.clock.now() == START


def test_an_http_offer_ends_with_its_patience() -> None:
    world = World()
    world.expect_proxies()
    world.clock.at(1, lambda: world.poll(proxy()))

    record = call(world)

    assert record.state is OfferState.EXPIRED
    assert record.reply == '{"error":"timed out waiting for answer!"}'
    assert timedelta(seconds=5) <= world.clock.now() - START < timedelta(seconds=5.2)


def test_an_http_offer_that_was_never_matched_is_denied() -> None:
    world = World()
    world.expect_proxies()

    assert call(world).reply == '{"error":"no snowflake proxies currently available"}'


def test_an_answer_just_before_the_expiry_is_returned() -> None:
    world = World()
    world.expect_proxies()
    world.clock.at(1, lambda: world.poll(proxy()))
    close = world.offers.close

    def close_too_late(record: RendezvousRecord, *, state: OfferState, reply: str) -> RendezvousRecord | None:
        world.offers.answer(record, sid="p1", reply=answer_reply(ANSWER), now=START)
        return close(record, state=state, reply=reply)

    world.offers.close = close_too_late

    assert call(world).reply == answer_reply(ANSWER)
