"""The events that a client receives in one WebSocket message."""

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.outbox.frames import MAXIMUM_EVENTS, Frame
from signalbox.live.wamp.codec import MAXIMUM_FRAME_BYTES
from signalbox.live.wamp.messages import PublicationId
from tests.unit.live.session.stage import NOW

EVENT = LoggedEvent(PublicationId(1), RoutingKey("a"), NOW)


@pytest.mark.parametrize(("size", "fits"), [(MAXIMUM_FRAME_BYTES - 5, True), (MAXIMUM_FRAME_BYTES - 4, False)])
def test_a_batch_is_not_larger_than_what_costs_one_message(size: int, *, fits: bool) -> None:
    frame = Frame("|")
    frame.add(EVENT, "[1]")

    assert frame.add(EVENT, "x" * size) is fits
    assert len(frame.text) <= MAXIMUM_FRAME_BYTES


def test_the_number_of_events_of_a_batch_is_limited() -> None:
    frame = Frame("|")

    assert sum(frame.add(EVENT, "[1]") for _ in range(MAXIMUM_EVENTS + 1)) == MAXIMUM_EVENTS
    assert frame.is_full
