"""What happens to an offer that came by HTTP."""

from datetime import timedelta

from signalbox.rendezvous.rules.states import ClientId, Method, Rendezvous, State
from signalbox.rendezvous.wire.bridges import DEFAULT_FINGERPRINT
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import Offer
from signalbox.rendezvous.wire.reply import answer_reply
from tests.fakes.rendezvous import START
from tests.unit.rendezvous.rules.services import ANSWER, OFFER, World, proxy

HTTP_CLIENT = ClientId("request-1")


def call(world: World) -> Rendezvous:
    offer = Offer(OFFER, Nat.UNRESTRICTED, DEFAULT_FINGERPRINT)
    return world.call_desk().serve(offer, client_id=HTTP_CLIENT, method=Method.HTTP, country="US")


def test_a_call_returns_the_answer_as_soon_as_it_is_there() -> None:
    world = World()
    world.expect_proxies()

    def serve() -> None:
        world.impatient.poll(proxy())
        world.answer(proxy())

    world.clock.at(2, serve)

    record = call(world)

    assert record.reply == answer_reply(ANSWER)
    assert record.country == "US"
    assert world.clock.now() - START < timedelta(seconds=2.3)
    assert world.client_queues.replies == {}
    assert world.broker_queue.deleted == []


def test_a_call_is_denied_at_once_when_no_proxy_may_come() -> None:
    world = World()

    record = call(world)

    assert record.state is State.REFUSED
    assert record.reply == '{"error":"no snowflake proxies currently available"}'
    assert world.clock.now() == START


def test_a_call_ends_with_its_patience() -> None:
    world = World()
    world.expect_proxies()
    world.clock.at(1, lambda: world.impatient.poll(proxy()))

    record = call(world)

    assert record.state is State.EXPIRED
    assert record.reply == '{"error":"timed out waiting for answer!"}'
    assert timedelta(seconds=5) <= world.clock.now() - START < timedelta(seconds=5.2)


def test_a_call_that_nobody_ever_took_is_told_that_there_are_no_proxies() -> None:
    world = World()
    world.expect_proxies()

    assert call(world).reply == '{"error":"no snowflake proxies currently available"}'


def test_an_answer_at_the_last_moment_counts() -> None:
    world = World()
    world.expect_proxies()
    world.clock.at(1, lambda: world.impatient.poll(proxy()))
    close = world.offers.close

    def close_too_late(client_id: ClientId, *, state: State, reply: str) -> Rendezvous | None:
        world.offers.answer(client_id, sid="p1", reply=answer_reply(ANSWER), now=START)
        return close(client_id, state=state, reply=reply)

    world.offers.close = close_too_late

    assert call(world).reply == answer_reply(ANSWER)
