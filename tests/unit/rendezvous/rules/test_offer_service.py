"""The service of SQS offers."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.rendezvous.model.states import OfferDelivery, OfferState
from signalbox.rendezvous.wire import sdp
from signalbox.rendezvous.wire.gojson.codec import decode_map
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from tests.fakes.rendezvous import START
from tests.unit.rendezvous.rules.services import ANSWER, CLIENT, OFFER, World, delivery, matched, parked, proxy

SECOND = timedelta(seconds=1)
DENIED = '{"error":"no snowflake proxies currently available"}'
TIMED_OUT = '{"error":"timed out waiting for answer!"}'


def first_receive(**changes: object) -> OfferDelivery:
    return replace(delivery(**changes), is_first=True)


def test_an_offer_is_parked_if_a_compatible_proxy_polled_recently() -> None:
    world = World()
    world.expect_proxies(Nat.RESTRICTED)

    receipt = world.receive(delivery())

    assert not receipt.done
    assert world.offers.records[CLIENT].state is OfferState.PENDING
    assert [(e.kind, e.outcome) for e in receipt.events] == [("offer", "parked")]
    assert world.replies == []


@pytest.mark.parametrize("nat", ["restricted", "unknown", ""])
def test_a_client_that_needs_an_unrestricted_proxy_is_denied_at_once_without_one(nat: str) -> None:
    world = World()
    world.expect_proxies(Nat.RESTRICTED, Nat.UNKNOWN)

    receipt = world.receive(delivery(nat=nat))

    assert receipt.done
    assert world.replies == [DENIED]
    assert receipt.events[0].outcome == "denied"


def test_a_proxy_that_polled_too_long_ago_does_not_count_as_recent() -> None:
    world = World()
    world.expect_proxies()
    world.wait(61)

    receipt = world.receive(delivery(sent_at=world.clock.now()))

    assert receipt.done
    assert world.replies == [DENIED]


def test_the_session_description_of_an_offer_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world, parsed = World(), []
    world.expect_proxies()
    monkeypatch.setattr(sdp, "decode_map", lambda document: (parsed.append(document), decode_map(document))[1])

    receipt = world.receive(delivery())

    assert receipt.events[0].labels == {"nat": "unrestricted", "country": "US"}  # of its best candidate
    assert parsed == [OFFER.encode()]


def test_a_parked_offer_expires_when_its_message_is_redelivered() -> None:
    world = parked()
    world.wait(30)

    receipt = world.receive(delivery(handle="h2"))

    assert receipt.done
    assert world.offers.records[CLIENT].state is OfferState.EXPIRED
    assert world.replies == [DENIED]
    assert (receipt.events[0].outcome, receipt.events[0].reason) == ("expired", "no proxy")


def test_a_client_with_a_silent_proxy_gets_a_timeout_when_its_patience_ends() -> None:
    """Upstream sends no reply: the client waits for 111 s."""
    world = parked()
    assert world.poll(proxy()).match
    world.wait(30)

    receipt = world.receive(delivery(handle="h2"))

    assert world.replies == [TIMED_OUT]
    assert (receipt.events[0].reason, receipt.events[0].attempt) == ("silent proxy", 1)


def test_an_early_duplicate_of_a_parked_offer_stays_in_flight_and_renews_the_receipt_handle() -> None:
    world = parked()
    world.wait(3)

    receipt = world.receive(delivery(handle="h2"))

    assert not receipt.done
    assert world.offers.records[CLIENT].receipt_handle == "h2"


def test_a_copy_of_an_offers_message_is_dropped() -> None:
    """Such as one that a client sent twice in the same millisecond."""
    world = parked()

    receipt = world.receive(delivery(message_id="m2"))

    assert receipt.done
    assert world.offers.records[CLIENT].state is OfferState.PENDING
    assert [one.kind for one in receipt.events] == ["offer"]
    assert world.replies == []


def test_an_offer_is_hidden_beyond_the_short_visibility_of_its_queue_when_it_comes_again() -> None:
    """A proxy nearly always answers before that, which saves the call."""
    world = World()
    world.expect_proxies()

    first = world.receive(delivery())
    world.wait(3)
    second = world.receive(delivery(handle="h2"))
    world.wait(10)
    third = world.receive(delivery(handle="h3"))

    assert first.hidden_until is None
    assert (second.hidden_until, third.hidden_until) == (START + 13 * SECOND, START + 23 * SECOND)


def test_an_offer_answered_while_it_is_delivered_again_comes_once_more_to_be_deleted() -> None:
    """The answer may have deleted it with the older receipt handle, which SQS ignores."""
    world = matched()
    open_record = world.offers.records[CLIENT]
    assert world.answer(proxy())
    world.offers.find = lambda draft: open_record

    second = world.receive(delivery(handle="h2"))
    del world.offers.find
    world.wait(10)
    third = world.receive(delivery(handle="h3"))

    assert not second.done
    assert third.done
    assert len(world.replies) == 1


def test_an_answer_that_is_being_sent_is_not_sent_again() -> None:
    world = matched()
    assert world.answer(proxy())
    world.client_queues.is_empty = lambda _client: True

    while_it_is_sent = world.receive(delivery())
    world.wait(3)
    after_a_kill = world.receive(delivery())

    assert (while_it_is_sent.done, after_a_kill.done) == (False, True)
    assert len(world.replies) == 2


def test_a_delivery_just_before_the_deadline_does_not_end_the_patience() -> None:
    world = parked()
    world.wait(29.9)

    receipt = world.receive(delivery(handle="h2"))

    assert not receipt.done
    assert receipt.hidden_until == START + 30 * SECOND


@pytest.mark.parametrize("sent_later", [0, 1], ids=["at once", "a second later"])
def test_the_same_offer_in_two_messages_uses_one_proxy_and_gives_one_answer(sent_later: int) -> None:
    """Upstream sends a duplicate to a second proxy."""
    world = World()
    world.expect_proxies()
    world.receive(first_receive())
    sent_at = START + sent_later * SECOND
    second = world.receive(first_receive(message_id="m2", sent_at=sent_at))
    first_proxy, second_proxy = world.poll(proxy("p1")), world.poll(proxy("p2"))

    assert world.answer(proxy("p1"))
    late = world.receive(first_receive(message_id="m3", sent_at=sent_at))

    assert [e.outcome for result in (second, late) for e in result.events] == ["duplicate", "duplicate"]
    assert (second.done, late.done) == (True, True)
    assert first_proxy.match
    assert second_proxy.match is None
    assert len(world.replies) == 1


@pytest.mark.parametrize("receive", [first_receive, delivery], ids=["received first", "received before"])
def test_another_offer_with_the_client_id_of_an_ended_one_is_a_copy(receive: Callable[..., OfferDelivery]) -> None:
    world = World()
    world.receive(first_receive())
    world.expect_proxies()
    other = receive(message_id="m2", body=offer_body(OFFER, "restricted").encode(), sent_at=START + SECOND)

    receipt = world.receive(other)

    assert receipt.done
    assert [e.outcome for e in receipt.events] == ["duplicate"]
    assert world.offers.records[CLIENT].message_id == "m1"


def test_an_offer_whose_function_was_killed_before_it_stored_the_offer_is_stored_when_it_comes_again() -> None:
    world = World()
    world.expect_proxies()
    world.client_queues.create(CLIENT, message_id="m1")  # and the function is killed

    copy = world.receive(first_receive(message_id="m2", sent_at=START + SECOND))
    original = world.receive(delivery())

    assert copy.done
    assert [e.outcome for e in copy.events] == ["duplicate"]
    assert [e.outcome for e in original.events] == ["parked"]


def test_a_decoding_error_is_sent_to_the_client_and_counted() -> None:
    world = World()

    receipt = world.receive(delivery(body=b"2.0\n{}"))

    assert receipt.done
    assert world.replies == ['{"error":"unsupported message version"}']
    assert (receipt.events[0].outcome, receipt.events[0].reason) == ("rejected", "unsupported message version")


def test_an_offer_that_was_not_stored_within_its_patience_gets_a_timeout_instead_of_being_parked() -> None:
    """Its first function has made the queue, so the client still listens."""
    world = World()
    world.wait(30)
    world.expect_proxies()

    receipt = world.receive(delivery())

    assert receipt.done
    assert world.replies == [TIMED_OUT]
    assert receipt.events[0].outcome == "stale"


@pytest.mark.parametrize(("age", "receive"), [(30, first_receive), (290, first_receive), (150, delivery)])
def test_an_offer_that_comes_too_late_gets_no_queue_that_no_sweep_would_see(
    age: int, receive: Callable[[], OfferDelivery]
) -> None:
    """With DelaySeconds and the shared key, clients left queues whose lease ended before they existed."""
    world = World()
    world.wait(age)
    world.expect_proxies()

    receipt = world.receive(receive())

    assert receipt.done
    assert [(e.kind, e.outcome, e.reason) for e in receipt.events] == [
        ("offer", "stale", "timed out waiting for answer!")
    ]
    assert (world.client_queues.replies, world.offers.records) == ({}, {})


def test_an_offer_that_another_function_instance_stored_stays_in_flight() -> None:
    world = parked()
    world.offers.find = lambda draft: None  # the state before the other function instance stored it

    receipt = world.receive(delivery())
    world.paces.paces.clear()
    refused = world.receive(delivery())

    assert not receipt.done
    assert not refused.done
    assert world.replies == []


def test_an_offer_answered_at_the_moment_of_its_expiry_keeps_its_answer() -> None:
    world = matched()
    world.wait(29.9)
    open_record = world.offers.records[CLIENT]
    assert world.answer(proxy())
    world.wait(0.1)
    world.offers.find = lambda draft: open_record

    receipt = world.receive(delivery(handle="h2"))

    assert not receipt.done
    assert len(world.replies) == 1


def test_patience_is_a_setting() -> None:
    world = World()
    world.policy = replace(world.policy, sqs_patience=timedelta(seconds=90))
    world.expect_proxies()
    world.receive(delivery())
    world.wait(60)

    assert not world.receive(delivery(handle="h2")).done
    assert world.poll(proxy()).match
    assert world.answer(proxy(), ANSWER)


def test_a_new_offer_is_stored_without_a_read() -> None:
    world = World()
    world.expect_proxies()
    world.offers.find = lambda draft: pytest.fail("looked for an offer that cannot be there")

    receipt = world.receive(first_receive())

    assert not receipt.done
    assert world.offers.records[CLIENT].state is OfferState.PENDING
