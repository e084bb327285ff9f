"""The events that the capabilities really write are linked: an exchange, its queue, a split, a return, a connection."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from signalbox.history.event import HistoryEvent
from signalbox.history.lookup import EventWindow
from signalbox.history.trace.search import linked_events
from signalbox.history.trace.story import stories
from signalbox.live.outbox.events import delivery_events
from signalbox.live.wamp.messages import PublicationId
from signalbox.messages import Message, MessageId
from signalbox.splitting.model import events as split_events
from tests.fakes.history import MemoryEventLookup
from tests.unit.exchange.routing.routing_world import copy_id
from tests.unit.exchange.routing.test_router_live import LOG, live_world
from tests.unit.live.outbox.test_writer import World as Connection
from tests.unit.live.outbox.test_writer import event as logged_event
from tests.unit.live.outbox.test_writer import event_batch
from tests.unit.splitting.forwarding.test_splitter import SplitterStage, session
from tests.unit.splitting.forwarding.test_splitter import message as received

EVER = EventWindow(datetime(2020, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC))
QUEUE = "q_log.fifo"


@pytest.fixture(scope="module")
def written() -> list[HistoryEvent]:
    """The events of one message, which was published to a live exchange and left a session's queue unconsumed."""
    world, _ = live_world()
    world.bind(LOG, "#", queue=QUEUE)
    world.publish(LOG, "open.a", "hello")
    routed = list(world.route(LOG).events)
    (publication,) = [one for one in routed if one.kind == "logged"]
    copy = replace(received("hello", "red"), message_id=copy_id(MessageId(publication.message_id or ""), QUEUE))
    stage = SplitterStage(session("ann", "red"))
    split = list(stage.forward(copy).events)
    return [*routed, *split, _returned(copy, split[0], stage), *_posted(publication)]


def _returned(copy: Message, split: HistoryEvent, stage: SplitterStage) -> HistoryEvent:
    message = replace(copy, message_id=MessageId(split.labels["copy"]))
    (queue,) = [one for one in stage.split.queues if one.original == split.source]
    return split_events.returned(
        message, None, left_by=None, split=stage.split, queue=queue, at=split.occurred_at, copy=MessageId("again")
    )


def _posted(publication: HistoryEvent) -> list[HistoryEvent]:
    connection = Connection()
    logged = replace(logged_event(1), publication=PublicationId(int(publication.labels["publication"])))
    return list(delivery_events(connection.deliver(event_batch(logged)), now=connection.moment))


def test_every_id_of_a_message_finds_all_of_its_events(written) -> None:
    ids = {one.message_id for one in written} | {"again", *(one.event_id for one in written)}

    for id_ in filter(None, ids):
        found = linked_events(MemoryEventLookup(written), [id_], EVER)
        assert {one.event_id for one in found.events} == {one.event_id for one in written}, id_


def test_its_story_is_one(written) -> None:
    (story,) = stories(written)

    assert [(one.event.capability, one.event.kind) for one in story.steps if one.event] == [
        (one.capability, one.kind) for one in sorted(written, key=lambda one: (one.occurred_at, one.event_id))
    ]
    assert {one.capability for one in written} == {"exchange", "splitting", "live"}
