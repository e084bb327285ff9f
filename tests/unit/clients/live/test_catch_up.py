"""The client of the core requests and delivers by the cases that all clients share."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest

from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.live.wamp.messages import Event, PublicationId
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.cases import catch_up


@pytest.mark.parametrize("case", catch_up.cases(), ids=lambda case: case["name"])
def test_the_cursor_catches_up(case: dict[str, Any]) -> None:
    subscription, received = case["subscription"], list[ReceivedEvent]()
    pattern = TopicPattern.parse(subscription["topic"], MatchPolicy(subscription["match"]))
    last = LastEvents(subscription["last"]) if subscription["last"] else None
    cursor = PatternCursor(pattern, last, get_retained=subscription["retained"])

    for connection in case["connections"]:
        options = cursor.options
        catch_up.check_request(_plain(options.get("_history")), connection["requested"]["by_number"])
        assert bool(options.get("get_retained")) == subscription["retained"]
        joined_at = connection["joined_at"]
        received += _deliver(cursor, connection.get("retained", []), joined_at, retained=True)
        received += _deliver(cursor, connection["past"], joined_at)
        if connection["is_caught_up"]:
            cursor.caught_up(datetime.fromisoformat(joined_at))
        received += _deliver(cursor, connection.get("live", []), connection.get("live_at", ""))

    assert [one.publication for one in received] == catch_up.delivered(case)
    assert [_gap(one) for one in received if one.skipped] == case.get("gaps", [])


def _deliver(cursor: PatternCursor, events: Iterable[Any], at: str, **details: object) -> list[ReceivedEvent]:
    found = []
    for event in catch_up.expanded(list(events)):
        numbered = {} if event["sequence"] is None else {"_seq": event["sequence"]}
        given = {"topic": event["topic"], "_at": at, **numbered, **details}
        publication = PublicationId(event["publication"])
        found.append(cursor.received(Event(cursor.pattern.subscription_id, publication, given)))
    return [one for one in found if one is not None]


def _gap(event: ReceivedEvent) -> dict[str, object]:
    assert event.sequence is not None
    return {"topic": event.topic, "from": event.sequence - event.skipped, "to": event.sequence - 1}


def _plain(history: Any) -> Any:
    """Return a history request with its time as the cases write times."""
    after = history.get("after") if isinstance(history, dict) else None
    if not isinstance(after, dict):
        return history
    return {"after": {**after, "since": after["since"].replace("+00:00", "Z")}}
