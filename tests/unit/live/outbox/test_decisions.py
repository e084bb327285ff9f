"""The writer's decisions for each item; the simulation has crashes, redelivery and late routers."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.effects import Post
from signalbox.live.outbox.decisions import (
    KEPT_ITEMS,
    MAXIMUM_WAIT,
    WATERMARKS_KEPT_FOR,
    ItemAction,
    OutboxState,
    Watermarks,
    begin_reply,
    defer,
    event_action,
    finish_backfill,
    finish_reply,
    mark_of,
    mark_posted,
    may_post,
    progress_of,
    pruned,
    reply_action,
    with_progress,
)
from signalbox.live.outbox.items import ItemId, Reply, SubscriptionEvent, reply_item
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.messages import (
    PublicationId,
    RequestId,
    Subscribe,
    Subscribed,
    SubscriptionId,
    Unsubscribed,
)
from signalbox.live.wamp.patterns import TopicPattern
from tests.unit.live.session.stage import JOE, NOW, WITHOUT_RIGHTS, Connection, joined

A = TopicPattern.parse("open.a")
ID = A.subscription_id
TOPIC = RoutingKey("open.a")
AT_ONCE = timedelta(0)
KNOWN = OutboxState(subscribed=frozenset({ID}))


def event(number: int = 1, pattern: TopicPattern = A, *, topic: str = TOPIC) -> SubscriptionEvent:
    return SubscriptionEvent(pattern, LoggedEvent(PublicationId(number), RoutingKey(topic), NOW, sequence=number))


def subscribed(item: str = "1", **changed: Any) -> Reply:
    return replace(reply_item(Post(Subscribed(RequestId(1), ID)), ItemId(item)), **changed)


def unsubscribed(item: str = "2", ends: SubscriptionId | None = None) -> Reply:
    return reply_item(Post(Unsubscribed(RequestId(2)), ends=ends), ItemId(item))


def subscribed_connection() -> Connection:
    connection = joined()
    connection.receive(Subscribe(RequestId(1), {}, "open.a"))
    return connection


@pytest.mark.parametrize(
    ("outbox", "is_subscribed", "rights", "is_posted"),
    [
        (KNOWN, True, JOE.rights, True),
        (OutboxState(), True, JOE.rights, False),
        (KNOWN, False, JOE.rights, False),
        (KNOWN, True, WITHOUT_RIGHTS.rights, False),
    ],
    ids=["all conditions hold", "SUBSCRIBED not posted", "unsubscribed since", "without the right"],
)
def test_an_event_is_posted_if_the_session_is_subscribed_and_the_user_has_the_right(
    outbox: OutboxState,
    is_subscribed: bool,  # noqa: FBT001
    rights: Rights,
    is_posted: bool,  # noqa: FBT001
) -> None:
    session = (subscribed_connection() if is_subscribed else joined()).session

    assert may_post(event(), outbox, session=session, rights=rights) is is_posted


def action_of(addressed: SubscriptionEvent, outbox: OutboxState, *, waited: timedelta = AT_ONCE) -> ItemAction:
    session = subscribed_connection().session
    return event_action(addressed, outbox, session=session, rights=JOE.rights, waited=waited)


def test_no_event_is_posted_without_a_session() -> None:
    assert not may_post(event(), KNOWN, session=None, rights=JOE.rights)


def test_a_reply_is_posted_once_and_an_unconfirmed_one_closes_the_connection() -> None:
    item = subscribed()
    assert reply_action(item.item_id, OutboxState(), waited=AT_ONCE) is ItemAction.POST

    begun = begin_reply(OutboxState(), item.item_id)
    assert reply_action(item.item_id, begun, waited=AT_ONCE) is ItemAction.CLOSE

    done = finish_reply(begun, item)
    assert reply_action(item.item_id, done, waited=AT_ONCE) is ItemAction.SKIP
    assert done == OutboxState(subscribed=frozenset({ID}), done=(ItemId("1"),))


def test_the_connection_of_a_slow_client_is_closed() -> None:
    late = MAXIMUM_WAIT + timedelta(seconds=1)

    assert [action_of(event(), KNOWN, waited=waited) for waited in (MAXIMUM_WAIT, late)] == [
        ItemAction.POST,
        ItemAction.CLOSE,
    ]
    steps = [reply_action(ItemId("2"), KNOWN, waited=waited) for waited in (MAXIMUM_WAIT, late)]
    assert steps == [ItemAction.POST, ItemAction.CLOSE]


def test_an_event_that_is_skipped_closes_no_connection() -> None:
    late = MAXIMUM_WAIT + timedelta(seconds=1)

    assert reply_action(ItemId("1"), OutboxState(done=(ItemId("1"),)), waited=late) is ItemAction.SKIP
    assert action_of(event(), OutboxState(), waited=late) is ItemAction.SKIP


def test_unsubscribed_removes_the_subscription_and_its_state() -> None:
    outbox = replace(KNOWN, pending_backfills={ID: {}}, watermarks={ID: Watermarks(NOW)})

    assert finish_reply(outbox, unsubscribed(ends=ID)) == OutboxState(done=(ItemId("2"),))


def test_only_items_that_can_be_redelivered_are_remembered() -> None:
    outbox = OutboxState()
    for number in range(KEPT_ITEMS + 5):
        outbox = finish_reply(outbox, unsubscribed(str(number)))

    assert outbox.done == tuple(ItemId(str(number)) for number in range(5, KEPT_ITEMS + 5))


def test_live_events_are_deferred_to_a_pending_backfill() -> None:
    outbox = finish_reply(OutboxState(), subscribed(expects_backfill=True))

    assert action_of(event(3), outbox) is ItemAction.DEFER
    for number, topic in ((3, "open.a"), (4, "open.a"), (9, "open.b")):
        outbox = defer(outbox, event(number, topic=topic))
    assert outbox.pending_backfills == {ID: {"open.a": 3, "open.b": 9}}


def test_live_events_up_to_the_watermark_are_skipped_and_newer_ones_posted() -> None:
    outbox = finish_reply(OutboxState(), subscribed(expects_backfill=True))
    for number in (4, 3):
        outbox = mark_posted(outbox, event(number), now=NOW)
    outbox = finish_backfill(outbox, ItemId("2"), ID, {}, now=NOW)

    assert [action_of(event(number), outbox) for number in (3, 4, 5)] == [
        ItemAction.SKIP,
        ItemAction.SKIP,
        ItemAction.POST,
    ]
    done, marks = (ItemId("1"), ItemId("2")), {ID: Watermarks(NOW, {mark_of(TOPIC): 4})}
    assert outbox == OutboxState(KNOWN.subscribed, done=done, watermarks=marks, caught_up_at=NOW)


def test_events_that_the_backfill_read_but_did_not_post_are_skipped() -> None:
    outbox = finish_reply(OutboxState(), subscribed(expects_backfill=True))
    outbox = finish_backfill(
        mark_posted(outbox, event(4), now=NOW), ItemId("2"), ID, {TOPIC: 3, RoutingKey("open.b"): 7}, now=NOW
    )

    assert outbox.watermarks == {ID: Watermarks(NOW, {mark_of(TOPIC): 4, mark_of(RoutingKey("open.b")): 7})}


def test_watermarks_are_pruned_after_five_minutes() -> None:
    outbox = mark_posted(KNOWN, event(), now=NOW)

    assert pruned(outbox, now=NOW + WATERMARKS_KEPT_FOR).watermarks == outbox.watermarks
    assert pruned(outbox, now=NOW + WATERMARKS_KEPT_FOR + timedelta(seconds=1)).watermarks == {}


def test_a_redelivered_batch_continues_where_it_stopped() -> None:
    outbox = with_progress(KNOWN, ItemId("3"), 7)

    assert [progress_of(one, ItemId("3")) for one in (outbox, KNOWN)] == [7, 0]
    assert progress_of(outbox, ItemId("4")) == 0


def test_a_new_subscription_starts_without_watermarks() -> None:
    outbox = mark_posted(KNOWN, event(), now=NOW)

    assert finish_reply(outbox, subscribed()).watermarks == {}
