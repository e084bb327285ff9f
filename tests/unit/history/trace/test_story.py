"""The story of a message: its steps in words, the times between them, and where it is now."""

import sys
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.history.trace.places import DECLARED, UNRECORDED, last_places
from signalbox.history.trace.steps import WORDS, step_of
from signalbox.history.trace.story import stories
from tests.unit.history.trace.way import LOGGED, POSTED, PUBLISHED, RETURNED, SPLIT, START, WAY, event


def test_a_story_names_the_message_and_tells_each_step_with_its_time() -> None:
    (story,) = stories(WAY)

    assert (story.message_id, story.topic, story.publisher, story.size_bytes) == ("m-1", "orders.new", "alice", 412)
    assert story.ids == ("812", "copy-1", "copy-2", "copy-3", "m-1")
    assert story.started_at == START + timedelta(seconds=0.8)
    assert [(story.after_ms(one), one.depth, one.text) for one in story.steps] == [
        (0, 0, "published to xs_orders by alice"),
        (100, 0, "in the log of xs_orders as publication 812, number 4 of its topic by alice"),
        (200, 0, "a copy to q_orders as copy-1"),
        (1200, 1, "q_orders → session ann of Ann, ann-orders as copy-2"),
        (1700, 0, "posted to live session 77 of carol"),
        (59200, 2, "not consumed by session ann of Ann: back to the deployed consumer in deployed-orders as copy-3"),
    ]
    assert [one.reason for one in story.steps if one.reason] == ["tenant: matches '^Avi'"]


@pytest.mark.parametrize("latency_ms", [10**17, 2**63 - 1, -(2**63)])
def test_a_story_begins_with_its_first_event_if_a_latency_is_impossible(latency_ms) -> None:
    (story,) = stories([replace(WAY[1], latency_ms=latency_ms)])

    assert story.started_at == WAY[1].occurred_at


def test_a_message_is_last_where_no_later_event_takes_it_away() -> None:
    (story,) = stories(WAY)

    assert [(one.name, one.state) for one in story.places] == [
        ("deployed-orders", f"queue of the deployed consumer: {UNRECORDED}"),
        ("live session 77 of carol", "posted"),
    ]


def test_the_document_of_a_story_has_each_event() -> None:
    (story,) = stories(WAY)

    document = story.document()

    steps = document["steps"]
    assert [one.get("event_id") for one in steps] == [None, *(one.event_id for one in WAY)]
    assert steps[3]["reason"] == "tenant: matches '^Avi'"
    assert steps[3]["labels"]["copy"] == "copy-2"
    assert document["places"][0]["place"] == "deployed-orders"


def test_a_batch_belongs_to_each_message_that_it_posted_and_alone_it_is_a_story() -> None:
    batch = event(
        "delivered:posted:b-2", 3, "live", "delivered", "posted", publications="812,900", session="5", user="u"
    )
    other = event("logged:m-2:xs_orders", 0, "exchange", "logged", "live", message_id="m-2", publication="900")

    first, second = stories([LOGGED, other, batch])
    (alone,) = stories([batch])

    assert [one.message_id for one in (first, second)] == ["m-2", "m-1"]
    assert all(story.steps[-1].event == batch for story in (first, second))
    assert (alone.message_id, len(alone.steps)) == ("812", 1)


def test_two_parts_of_a_way_become_one_story_once_an_event_links_them() -> None:
    """As for events of clocks that differ: the split is recorded before the copy that it splits."""
    late = event("routed:m-1:q", 9, "exchange", "routed", "delivered", **PUBLISHED, destination="q", copy="copy-1")

    (story,) = stories([SPLIT, LOGGED, late])

    assert story.message_id == "m-1"
    assert [one.depth for one in story.steps] == [0, 1, 0]


@pytest.mark.parametrize("messages", [1, 2, 1000])
def test_the_work_grows_with_the_number_of_events(messages) -> None:
    def calls(number: int) -> int:
        several = [
            event(f"r:{n}", n, "exchange", "routed", "delivered", message_id=f"m-{n % messages}", copy=f"k-{n}")
            for n in range(number)
        ]
        found: Counter[str] = Counter()
        sys.setprofile(lambda _frame, what, _argument: found.update([what]))
        assert len(stories(several)) == min(messages, number)
        sys.setprofile(None)
        return found["call"] + found["c_call"]

    assert calls(400) < 5 * calls(100)


def test_a_message_without_an_exchange_starts_in_its_queue() -> None:
    (story,) = stories([SPLIT])

    assert (story.message_id, story.topic, story.exchanges) == ("copy-1", None, ())
    assert story.steps[0].text == "sent to q_orders"
    assert story.after_ms(story.steps[1]) == 900


def test_an_event_of_no_message_is_a_story_of_its_own() -> None:
    bound = event("declared:binding:x", 0, "exchange", "declared", "binding", source="x", destination="q", topic="a.#")

    (story,) = stories([bound])

    assert (story.message_id, story.steps[0].text, story.places) == (
        "declared:binding:x",
        "x bound to q by 'a.#'",
        (),
    )


def test_copies_that_lead_to_each_other_have_no_endless_line() -> None:
    there = event("r:k:q", 1, "splitting", "returned", "original", message_id="k", destination="q", copy="l")
    back = event("r:l:p", 2, "splitting", "returned", "original", message_id="l", destination="p", copy="k")

    (story,) = stories([there, back])

    assert [one.depth for one in story.steps] == [2, 2]
    assert story.message_id == "k"


QUEUED = {"message_id": "m-1", "source": "x", "destination": "q"}
DELIVERED = event("r", 0, "exchange", "routed", "delivered", **QUEUED, copy="k")
REPLAYED = {"message_id": "m-1", "source": "q", "replay": "night", "copy": "n"}


@pytest.mark.parametrize(
    ("events", "places"),
    [
        ([event("r", 0, "exchange", "routed", "retried", **QUEUED)], [("q", "waits for a retry")]),
        (
            [
                event("r", 0, "exchange", "routed", "retried", **QUEUED),
                event("d", 1, "exchange", "routed", "delivered", **QUEUED),
            ],
            [("q", DECLARED)],
        ),
        (
            [DELIVERED, event("d", 1, "exchange", "dead_letter", "dead", **QUEUED, reason="too often", copy="k")],
            [("dead letters of q", "too often")],
        ),
        (
            [
                DELIVERED,
                event("d", 1, "exchange", "dead_letter", "dead", **QUEUED, copy="k"),
                event("p", 2, "exchange", "replayed", "dead_letters", **REPLAYED, destination="q_other"),
            ],
            [("q_other", DECLARED)],
        ),
        (
            [
                event("d", 1, "exchange", "dead_letter", "dead", **QUEUED, copy="k"),
                event("p", 2, "exchange", "replayed", "dead_letters", **REPLAYED, destination="x_again"),
                event("r", 3, "exchange", "routed", "delivered", message_id="n", source="x_again", destination="q",
                      copy="o"),
                event("d2", 4, "exchange", "dead_letter", "dead", message_id="n", source="x_again", destination="q",
                      copy="o"),
            ],
            [("dead letters of q", "")],
        ),
        (
            [
                event("r", 0, "exchange", "routed", "retried", **QUEUED),
                event("d", 1, "exchange", "dead_letter", "dead", **QUEUED, reason="too long"),
            ],
            [("dead letters of q", "too long")],
        ),
        (
            [event("u", 0, "exchange", "unrouted", "dropped", message_id="m", source="x", topic="a")],
            [("nowhere", "dropped: no binding of x matched")],
        ),
        ([event("u", 0, "exchange", "unrouted", "alternate", message_id="m", source="x", topic="a")], []),
        ([LOGGED], [("log of xs_orders", "in the log; no connection got it, as far as events say")]),
        ([event("d", 0, "live", "delivered", "dropped", reason="gone")], [("a connection without a session", "gone")]),
        ([event("d", 0, "live", "dead_letter", "dead", message_id="m")], [("dead letters of live", "")]),
        (
            [event("r", 0, "splitting", "returned", "original", message_id="m", destination="orders", copy="n")],
            [("orders", UNRECORDED)],
        ),
        (
            [event("r", 0, "splitting", "returned", "session", message_id="m", destination="b", copy="n", heir="bob")],
            [("b", f"queue of session bob: {UNRECORDED}")],
        ),
        (
            [
                event("s", 0, "splitting", "kept", "stored", message_id="m"),
                event("r", 1, "splitting", "kept", "replayed", message_id="m", destination="a", copy="k",
                      session="ann", owner="A"),
            ],
            [("a", f"queue of session ann of A: {UNRECORDED}")],
        ),
        (
            [
                event("r", 1, "splitting", "kept", "replayed", message_id="m", destination="a", copy="k"),
                event("d", 2, "splitting", "kept", "dropped", message_id="k", destination="a"),
            ],
            [],
        ),
        ([event("o", 0, "rendezvous", "offer", "parked", message_id="c")], [("client", "waits for a proxy")]),
        (
            [
                event("o", 0, "rendezvous", "offer", "parked", message_id="c"),
                event("t", 5, "rendezvous", "timeout", "expired", message_id="c", reason="silent proxy"),
                event("q", 6, "rendezvous", "queue", "deleted"),
            ],
            [("client", "silent proxy")],
        ),
        ([event("o", 0, "rendezvous", "offer", "duplicate", message_id="c")], [("client", "duplicate")]),
    ],
    ids=[
        "retried", "delivered after a retry", "dead in its queue", "replayed from there", "replayed into an exchange",
        "dead after a retry", "dropped", "alternate", "logged", "dropped by live",
        "dead letter of live", "returned", "returned to an heir", "replayed", "replayed and dropped",
        "offer", "timeout", "duplicate",
    ],
)  # fmt: skip
def test_the_last_places_of_a_message(events, places) -> None:
    assert [(one.name, one.state) for one in last_places(events)] == places


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (
            event("e", 0, "exchange", "routed", "delivered", destination="q", attempt=3, copy="k"),
            "a copy to q as k, attempt 3",
        ),
        (
            event("e", 0, "exchange", "unrouted", "dropped", source="x", topic="a", publisher="_"),
            "no binding of x matched 'a': dropped by an administrator",
        ),
        (event("e", 0, "exchange", "logged", "live", source="x"), "in the log of x"),
        (
            event("e", 0, "exchange", "replayed", "dead_letters", **REPLAYED, destination="q_other"),
            "replayed by night to q_other as n",
        ),
        (event("e", 0, "exchange", "dead_letter", "dead", source="x"), "dead letter of x"),
        (event("e", 0, "exchange", "dead_letter", "dead", destination="q"), "dead letter of q"),
        (event("e", 0, "exchange", "declared", "queue", destination="q"), "declared: queue"),
        (
            event("e", 0, "splitting", "routed", "deployed", source="orders", destination="d"),
            "orders → the deployed consumer, d: no session's filter took it",
        ),
        (
            event("e", 0, "splitting", "routed", "copied", source="orders", destination="b", session="bob", owner="B"),
            "orders → a copy for session bob of B, b",
        ),
        (
            event("e", 0, "splitting", "returned", "original", destination="orders", session="ann", owner="A"),
            "not consumed by session ann of A: back to the original queue in orders",
        ),
        (event("e", 0, "rendezvous", "answer", "delivered", attempt=1), "the client got the answer, after 1 proxy"),
        (event("e", 0, "rendezvous", "timeout", "expired", attempt=2), "the client waited in vain, for 2 proxies"),
        (
            event("e", 0, "rendezvous", "proxy_poll", "matched", proxy_type="webext"),
            "a proxy of type webext got the offer",
        ),
        (event("e", 0, "rendezvous", "proxy_answer", "success"), "the proxy answered"),
        (event("e", 0, "new", "kind", "outcome"), "kind: outcome"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_step_says_what_happened(step, text) -> None:
    assert step_of(step).text == text


def test_each_event_has_words() -> None:
    for capability, kind, outcome in WORDS:
        made = event("e", 0, capability, kind, outcome or "any", message_id="m", source="x", destination="q", topic="t")

        assert step_of(made).text


def test_the_last_place_of_a_returned_message_is_not_the_queue_that_it_left() -> None:
    assert [one.name for one in last_places([SPLIT, RETURNED])] == ["deployed-orders"]
    assert [one.name for one in last_places([POSTED])] == ["live session 77 of carol"]
