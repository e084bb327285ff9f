"""The search for a message's events follows ids across queues, logs, connections and clients."""

from datetime import UTC, datetime, timedelta

import pytest

from signalbox.history.lookup import EventWindow
from signalbox.history.trace.search import MAXIMUM_IDS, linked_events
from tests.fakes.history import MemoryEventLookup
from tests.unit.history.trace.way import WAY, event

WINDOW = EventWindow(datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC))
OTHER = event("routed:m-2:q", 1, "exchange", "routed", "delivered", message_id="m-2", copy="c-2", file="f" * 32)


@pytest.mark.parametrize(
    "asked",
    ["m-1", "copy-1", "copy-2", "copy-3", "812", "routed:m-1:q_orders:delivered", "delivered:posted:b-1"],
    ids=["publication", "copy", "copy of a split", "returned copy", "live publication", "event", "event of a batch"],
)
def test_any_id_of_a_message_finds_its_events_and_those_of_no_other_message(asked) -> None:
    found = linked_events(MemoryEventLookup([*WAY, OTHER]), [asked], WINDOW)

    assert [one.event_id for one in found.events] == [one.event_id for one in WAY]
    assert found.is_complete


def test_the_other_publications_of_a_batch_are_not_followed() -> None:
    batch = event("delivered:posted:b-9", 9, "live", "delivered", "posted", publications="812,813", session="5")
    other = event("logged:m-3:xs", 1, "exchange", "logged", "live", message_id="m-3", publication="813")
    lookup = MemoryEventLookup([*WAY, batch, other])

    assert other not in linked_events(lookup, ["m-1"], WINDOW).events
    assert other in linked_events(lookup, ["delivered:posted:b-9"], WINDOW).events


def test_a_file_finds_each_message_that_announced_it() -> None:
    again = event("routed:m-4:q", 2, "exchange", "routed", "delivered", message_id="m-4", file="f" * 32)

    found = linked_events(MemoryEventLookup([*WAY, OTHER, again]), ["f" * 32], WINDOW)

    assert [one.message_id for one in found.events] == ["m-2", "m-4"]


def test_a_client_is_linked_to_its_proxys_poll_but_not_to_what_the_proxy_did_besides() -> None:
    offer = event("offer:c1", 0, "rendezvous", "offer", "parked", message_id="c1")
    poll = event("proxy_poll:h:1", 1, "rendezvous", "proxy_poll", "matched", message_id="h", client="c1")
    idle = event("proxy_poll:h:0", 0, "rendezvous", "proxy_poll", "idle", message_id="h")

    found = linked_events(MemoryEventLookup([offer, poll, idle]), ["c1"], WINDOW)

    assert found.events == (offer, poll)


def test_nothing_is_found_for_an_unknown_id_with_one_lookup() -> None:
    lookup = MemoryEventLookup(list(WAY))

    assert linked_events(lookup, ["m-9"], WINDOW).events == ()
    assert len(lookup.asked) == 1


def test_a_search_with_too_many_ids_says_that_it_is_not_complete() -> None:
    copies = [
        event(f"routed:m-1:q{number}", 1, "exchange", "routed", "delivered", message_id="m-1", copy=f"k-{number}")
        for number in range(MAXIMUM_IDS + 1)
    ]

    found = linked_events(MemoryEventLookup(copies), ["m-1"], WINDOW)

    assert not found.is_complete
    assert len(found.events) == len(copies)


def test_an_endless_chain_of_copies_ends_after_some_rounds() -> None:
    chain = [
        event(f"returned:k-{number}", number, "splitting", "returned", "original", message_id=f"k-{number}",
              copy=f"k-{number + 1}")
        for number in range(40)
    ]  # fmt: skip

    found = linked_events(MemoryEventLookup(chain), ["k-0"], WINDOW)

    assert not found.is_complete
    assert 5 < len(found.events) < 40


def test_events_outside_the_window_are_not_found() -> None:
    early = EventWindow(WINDOW.start - timedelta(days=1), WINDOW.start)

    assert linked_events(MemoryEventLookup(list(WAY)), ["m-1"], early).events == ()
