"""The cursor of the soak distinguishes permitted redeliveries from violations."""

from signalbox.live.wamp.messages import Event, Payload, PublicationId, SubscriptionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.soak.cursors import StrictCursor


def event(number: int | None, *, publication: int | None = None, topic: str = "trial.a") -> Event:
    details: dict[str, object] = {"topic": topic} if number is None else {"topic": topic, "_seq": number}
    return Event(SubscriptionId(1), PublicationId(publication or 100 + (number or 0)), details, Payload((number,)))


def received(*events: Event) -> tuple[StrictCursor, list[int | None]]:
    """Return the cursor, and the numbers of the events that the application gets."""
    cursor = StrictCursor(TopicPattern.parse("trial.", MatchPolicy.PREFIX))
    found = [cursor.received(one) for one in events]
    return cursor, [one.sequence for one in found if one is not None]


def test_an_event_that_arrives_again_is_a_redelivery() -> None:
    cursor, seen = received(event(1), event(2), event(1), event(2), event(3))

    assert (seen, cursor.redelivered, cursor.violations) == ([1, 2, 3], 2, [])


def test_an_event_that_arrives_first_after_a_later_one_is_a_violation() -> None:
    cursor, seen = received(event(1), event(3), event(2))

    assert (seen, cursor.redelivered) == ([1, 3], 0)
    assert cursor.violations == ["trial.a: event 2 arrived first after a later one"]


def test_two_events_with_one_number_are_a_violation() -> None:
    cursor, seen = received(event(1), event(1, publication=7))

    assert (seen, cursor.redelivered) == ([1], 0)
    assert cursor.violations == ["trial.a has two events 1: 101 and 7"]


def test_an_event_without_a_number_is_a_violation() -> None:
    cursor, _ = received(event(None))

    assert cursor.violations == ["an event of trial.a has no _seq"]


def test_topics_have_numbers_of_their_own() -> None:
    cursor, seen = received(event(2), event(1, topic="trial.b"), event(1, topic="trial.b"))

    assert (seen, cursor.redelivered, cursor.violations) == ([2, 1], 1, [])
