"""The writer's decisions under crashes, redelivery and late routers."""

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent, event_for
from signalbox.live.model.effects import Attach, Detach, Post
from signalbox.live.model.state import RightsChanged
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
    mark_posted,
    may_post,
    progress_of,
    pruned,
    reply_action,
    with_progress,
)
from signalbox.live.outbox.items import ItemId, Reply, SubscriptionEvent, reply_item
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.codec import parse
from signalbox.live.wamp.messages import (
    Event,
    Message,
    PublicationId,
    RequestId,
    Subscribe,
    Subscribed,
    SubscriptionId,
    Unsubscribe,
    Unsubscribed,
)
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
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
    done, marks = (ItemId("1"), ItemId("2")), {ID: Watermarks(NOW, {TOPIC: 4})}
    assert outbox == OutboxState(KNOWN.subscribed, done=done, watermarks=marks, caught_up_at=NOW)


def test_events_that_the_backfill_read_but_did_not_post_are_skipped() -> None:
    outbox = finish_reply(OutboxState(), subscribed(expects_backfill=True))
    outbox = finish_backfill(
        mark_posted(outbox, event(4), now=NOW), ItemId("2"), ID, {TOPIC: 3, RoutingKey("open.b"): 7}, now=NOW
    )

    assert outbox.watermarks == {ID: Watermarks(NOW, {TOPIC: 4, RoutingKey("open.b"): 7})}


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


@dataclass(slots=True)
class World:
    """A connection with its queue, a writer that may crash, and routers with outdated subscribers."""

    connection: Connection = field(default_factory=joined)
    queue: deque[Reply | SubscriptionEvent] = field(default_factory=deque)
    outbox: OutboxState = field(default_factory=OutboxState)
    handled: list[Reply | SubscriptionEvent] = field(default_factory=list)
    seen: list[Message] = field(default_factory=list)
    attached: set[TopicPattern] = field(default_factory=set)
    once_attached: set[TopicPattern] = field(default_factory=set)
    is_closed: bool = False
    items: int = 0

    def put(self, said: Post | SubscriptionEvent) -> None:
        self.items += 1
        self.queue.append(reply_item(said, ItemId(str(self.items))) if isinstance(said, Post) else said)

    def ask(self, request: Subscribe | Unsubscribe | RightsChanged) -> None:
        for effect in self.connection.receive(request).effects:
            if isinstance(effect, Post):
                self.put(effect)
            elif isinstance(effect, Attach):
                self.attached.add(effect.pattern)
            elif isinstance(effect, Detach):
                self.once_attached.add(effect.pattern)
                self.attached.discard(effect.pattern)

    def publish(self, *, stale: bool) -> None:
        """A router that has not read a detach yet sends events to the subscription."""
        for pattern in sorted(self.attached | (self.once_attached if stale else set()), key=str):
            self.put(event(self.items, pattern))

    def write(self, *, dies: str) -> None:
        if not self.queue or self.is_closed:
            return
        item = self.queue[0]
        account = self.connection.context.account
        rights = account.rights if account else WITHOUT_RIGHTS.rights
        step = (
            reply_action(item.item_id, self.outbox, waited=AT_ONCE)
            if isinstance(item, Reply)
            else event_action(item, self.outbox, session=self.connection.session, rights=rights, waited=AT_ONCE)
        )
        self.is_closed = step is ItemAction.CLOSE
        if step is ItemAction.POST and not self._post(item, dies):
            return
        self.handled.append(self.queue.popleft())

    def _post(self, item: Reply | SubscriptionEvent, dies: str) -> bool:
        if isinstance(item, SubscriptionEvent):
            self.seen.append(event_for(item.pattern, item.event))
            return dies != "after"
        self.outbox = begin_reply(self.outbox, item.item_id)
        if dies == "before":
            return False
        self.seen.append(parse(item.message))
        if dies == "after":
            return False
        self.outbox = finish_reply(self.outbox, item)
        return True

    def redeliver(self, count: int) -> None:
        """A batch whose function crashed is redelivered although all of it was handled."""
        back = self.handled[-count:]
        del self.handled[-count:]
        self.queue.extendleft(reversed(back))


uris = st.sampled_from(["open.a", "open.b"])
matches = st.sampled_from([MatchPolicy.EXACT, MatchPolicy.PREFIX])
steps = st.one_of(
    st.tuples(st.just("subscribe"), uris, matches),
    st.tuples(st.just("unsubscribe"), uris, matches),
    st.tuples(st.just("publish"), st.booleans()),
    st.tuples(st.just("publish"), st.booleans()),
    st.tuples(st.just("rights"), st.booleans()),
    st.tuples(st.just("redeliver"), st.integers(1, 10)),
    *[st.tuples(st.just("write"), st.sampled_from(["", "", "", "", "", "before", "after"]))] * 4,
)


def act(world: World, step: tuple, number: int) -> None:  # type: ignore[type-arg] # of any kind
    kind, *arguments = step
    if kind == "subscribe":
        world.ask(Subscribe(RequestId(number), {"match": arguments[1].value}, arguments[0]))
    elif kind == "unsubscribe":
        world.ask(Unsubscribe(RequestId(number), TopicPattern(arguments[1], arguments[0]).subscription_id))
    elif kind == "publish":
        world.publish(stale=arguments[0])
    elif kind == "rights":
        world.connection.context = replace(world.connection.context, account=JOE if arguments[0] else WITHOUT_RIGHTS)
        world.ask(RightsChanged())
    elif kind == "redeliver":
        world.redeliver(arguments[0])
    else:
        world.write(dies=arguments[0])


@given(st.lists(steps, max_size=60))
def test_no_event_is_posted_before_subscribed_or_after_unsubscribed_and_no_reply_twice(steps_: list[tuple]) -> None:  # type: ignore[type-arg]
    world = World()
    asked: dict[RequestId, SubscriptionId] = {}
    for number, step in enumerate(steps_, start=1):
        if step[0] == "unsubscribe":
            asked[RequestId(number)] = TopicPattern(step[2], step[1]).subscription_id
        act(world, step, number)

    known: set[object] = set()
    for message in world.seen:
        if isinstance(message, Event):
            assert message.subscription in known
        elif isinstance(message, Subscribed):
            known.add(message.subscription)
        elif isinstance(message, Unsubscribed):
            known.discard(message.details["subscription"] if message.details else asked[message.request])
    replies = Counter(getattr(message, "request", None) for message in world.seen if not isinstance(message, Event))
    assert all(count == 1 for request, count in replies.items() if request)


@given(st.lists(st.booleans(), max_size=30))
def test_a_user_without_rights_receives_no_event_from_the_outbox(publishes: list[bool]) -> None:
    world = World()
    world.ask(Subscribe(RequestId(1), {}, "open.a"))
    for is_written in publishes:
        world.publish(stale=False)
        if is_written:
            world.write(dies="")
    seen = len(world.seen)

    world.connection.context = replace(world.connection.context, account=WITHOUT_RIGHTS)
    world.ask(RightsChanged())
    while world.queue:
        world.write(dies="")

    assert not [message for message in world.seen[seen:] if isinstance(message, Event)]


def test_events_are_posted_at_least_once_and_in_order() -> None:
    world = World()
    world.ask(Subscribe(RequestId(1), {}, "open.a"))
    for _ in range(5):
        world.publish(stale=False)
    world.write(dies="")
    world.write(dies="after")
    while world.queue:
        world.write(dies="")
    world.redeliver(3)
    while world.queue:
        world.write(dies="")

    assert [message.publication for message in world.seen if isinstance(message, Event)] == [1, 1, 2, 3, 4, 5, 3, 4, 5]


def test_an_event_of_an_earlier_subscription_is_not_posted_before_the_new_subscribed() -> None:
    world = World()
    world.ask(Subscribe(RequestId(1), {}, "open.a"))
    world.ask(Unsubscribe(RequestId(2), ID))
    world.publish(stale=True)
    world.ask(Subscribe(RequestId(3), {}, "open.a"))
    world.publish(stale=False)
    while world.queue:
        world.write(dies="")

    assert [type(message) for message in world.seen] == [Subscribed, Unsubscribed, Subscribed, Event]
