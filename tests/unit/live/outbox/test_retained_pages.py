"""Retained events in pages, for a subscription that also requests the events after a point in time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signalbox.exchange.model.records import LiveSettings, Retention
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.outbox.results import DeliveryOutcome
from signalbox.live.wamp.messages import PublicationId
from signalbox.live.wamp.options import AfterTime, AfterTopicSequences, BackfillStart
from tests.unit.live.outbox.test_writer import NOW, REALM, World, backfill, event, event_batch, subscribed

POINT = NOW - timedelta(hours=1)
TOPICS = [RoutingKey(f"open.{number}") for number in range(6)]
Log = Sequence[tuple[int, bool]]  # of a topic: minutes from the point, and whether it is retained
logs = st.lists(st.tuples(st.integers(-90, 50), st.booleans()), max_size=5)
histories = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 5))


def logged(found: Mapping[RoutingKey, Log]) -> list[LoggedEvent]:
    return [
        replace(
            event(number, topic, is_retained=is_retained, at=POINT + timedelta(minutes=minutes, seconds=1)),
            publication=PublicationId(100 * (1 + TOPICS.index(topic)) + number),
        )
        for topic, log in found.items()
        for number, (minutes, is_retained) in enumerate(sorted(log, key=lambda one: one[0]), start=1)
    ]


def is_requested(one: LoggedEvent, history: BackfillStart) -> bool:
    if isinstance(history, AfterTopicSequences) and one.topic in history.numbers:
        return (one.sequence or 0) > history.numbers[one.topic]
    return one.at > POINT


@given(
    st.dictionaries(st.sampled_from(TOPICS), logs),
    histories,
    st.integers(0, 4),
    st.lists(st.tuples(st.sampled_from(TOPICS), st.booleans()), max_size=3),
)
@example({topic: [(-30, False), (-20, True)] for topic in TOPICS}, {TOPICS[1]: 0}, 0, [])
@example({topic: [(int(topic != TOPICS[2]) - 1, True)] for topic in TOPICS[:4]}, {}, 3, [(TOPICS[2], False)])
def test_every_requested_event_and_retained_state_arrives_once_and_in_order(
    found: Mapping[RoutingKey, Log],
    numbers: Mapping[RoutingKey, int],
    small: int,
    new: Sequence[tuple[RoutingKey, bool]],
) -> None:
    """`new` are published while pages are posted, so that their items follow the request in the outbox."""
    known = {str(topic): min(number, len(found.get(topic, ()))) for topic, number in numbers.items()}
    history = AfterTopicSequences(POINT, known) if known else AfterTime(POINT)
    world, past, live = World(), logged(found), list[LoggedEvent]()
    world.log.small = small
    world.log.append(REALM, *past)
    world.deliver(subscribed())
    while world.deliver(backfill(history, get_retained=True)).outcome is not DeliveryOutcome.DONE:
        world.log.rows = 0
        for topic, is_retained in new[len(live) :][:1]:
            number = 1 + max((one.sequence or 0 for one in (*past, *live) if one.topic == topic), default=0)
            published = event(number, topic, is_retained=is_retained, at=NOW)
            live.append(replace(published, publication=PublicationId(10_000 + len(live))))
            world.log.append(REALM, live[-1])
    for number, one in enumerate(live):
        world.deliver(event_batch(one, item=f"l{number}"))

    posted = [message[3] for message in world.posted()[1:]]
    for topic in TOPICS:
        got = [(one["_seq"], one.get("retained", False)) for one in posted if one["topic"] == topic]
        kept = [one.sequence for one in (*past, *live) if one.topic == topic and one.is_retained]
        requested = [one.sequence for one in past if one.topic == topic and is_requested(one, history)]
        requested += [one.sequence for one in live if one.topic == topic]
        states = [number for number, is_state in got if is_state]
        assert [number for number, is_state in got if not is_state] == requested
        assert got == sorted(got)
        # The state of a topic that gets its first new event between pages may be repeated.
        assert not {*states} & {*requested}
        assert len({*states}) <= 1
        if kept and kept[-1] not in requested:
            assert {*states} == {kept[-1]}


def test_more_retained_events_than_a_request_may_read_are_posted_before_the_history(world: World) -> None:
    world.log.small, an_hour_ago = 50, NOW - timedelta(hours=2)
    topics = [RoutingKey(f"open.{number:03}") for number in range(220)]
    kept = [event(number, topic, is_retained=True, at=an_hour_ago) for number, topic in enumerate(topics, start=1)]
    world.log.append(REALM, *kept, event(500, topics[7], at=NOW), event(600, topics[9], is_retained=True, at=NOW))
    world.deliver(subscribed())

    outcomes = []
    while DeliveryOutcome.DONE not in outcomes:
        world.log.rows = 0
        outcomes.append(world.deliver(backfill(AfterTime(POINT), get_retained=True)).outcome)

    assert len(outcomes) == 5
    assert sorted(world.numbers()) == [*(one for one in range(1, 221) if one != 10), 500, 600]
    assert world.numbers()[:-2].index(8) > 190
    assert world.numbers()[-2:] == [500, 600]


def test_a_retained_event_whose_topic_has_no_requested_event_any_more_is_in_the_last_page(world: World) -> None:
    """The event of topic 3 expires while pages are posted, a second each."""
    world.log.small, world.seconds_per_post = 1, 1
    day = timedelta(hours=24)
    world.live = LiveSettings(retention=Retention(age=day))
    for number in range(1, 9):
        at = NOW - day + (timedelta(seconds=4.5) if number == 3 else timedelta(hours=-6))
        world.log.append(REALM, event(number, f"open.{number}", is_retained=True, at=at))
    world.deliver(subscribed())
    request = replace(backfill(AfterTime(NOW - 2 * day), get_retained=True), at=world.moment)

    while world.deliver(request).outcome is not DeliveryOutcome.DONE:
        world.log.rows = 0

    assert sorted(world.numbers()) == [*range(1, 9)]


@pytest.fixture
def world() -> World:
    return World()
