"""What a client sees, whatever is in flight, dies, or comes again."""

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.exchange.topics import RoutingKey
from signalbox.live.effects import Attach, Detach, Post
from signalbox.live.grants import Rights
from signalbox.live.messages import (
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
from signalbox.live.outbox import (
    KEPT_ITEMS,
    MAXIMUM_WAIT,
    Item,
    ItemId,
    Outbox,
    PostedEvent,
    Step,
    begin,
    finish,
    may_post,
    next_step,
)
from signalbox.live.patterns import Match, TopicPattern
from signalbox.live.state import RightsChanged
from tests.unit.live.stage import JOE, NOBODY, Connection, joined

A = TopicPattern.parse("open.a")
ID = A.subscription_id
TOPIC = RoutingKey("open.a")
AT_ONCE = timedelta(0)
KNOWN = Outbox(subscribed=frozenset({ID}))


def event(number: int = 1, subscription: SubscriptionId = ID) -> PostedEvent:
    return PostedEvent(Event(subscription, PublicationId(number), {}), TOPIC)


def subscribed_connection() -> Connection:
    connection = joined()
    connection.hear(Subscribe(RequestId(1), {}, "open.a"))
    return connection


@pytest.mark.parametrize(
    ("outbox", "is_subscribed", "rights", "is_posted"),
    [
        (KNOWN, True, JOE.rights, True),
        (Outbox(), True, JOE.rights, False),
        (KNOWN, False, JOE.rights, False),
        (KNOWN, True, NOBODY.rights, False),
    ],
    ids=["all is well", "SUBSCRIBED not posted", "unsubscribed since", "without the right"],
)
def test_an_event_is_posted_when_the_client_knows_and_the_session_wants_and_the_user_may(
    outbox: Outbox,
    is_subscribed: bool,  # noqa: FBT001
    rights: Rights,
    is_posted: bool,  # noqa: FBT001
) -> None:
    session = (subscribed_connection() if is_subscribed else joined()).session

    assert may_post(event(), outbox, session=session, rights=rights) is is_posted


def test_a_reply_is_posted_once_and_a_doubtful_one_closes_the_connection() -> None:
    session = joined().session
    item = Item(ItemId("1"), Post(Subscribed(RequestId(1), ID)))
    assert next_step(item, Outbox(), session=session, rights=JOE.rights, waited=AT_ONCE) is Step.POST

    begun = begin(Outbox(), item.item_id)
    assert next_step(item, begun, session=session, rights=JOE.rights, waited=AT_ONCE) is Step.CLOSE

    done = finish(begun, item.item_id, Post(Subscribed(RequestId(1), ID)))
    assert next_step(item, done, session=session, rights=JOE.rights, waited=AT_ONCE) is Step.SKIP
    assert done == Outbox(subscribed=frozenset({ID}), done=(ItemId("1"),))


@pytest.mark.parametrize("said", [event(), Post(Unsubscribed(RequestId(2)))], ids=["an event", "a reply"])
def test_who_is_too_slow_is_closed(said: Post | PostedEvent) -> None:
    session, item, late = subscribed_connection().session, Item(ItemId("1"), said), MAXIMUM_WAIT + timedelta(seconds=1)

    in_time = next_step(item, KNOWN, session=session, rights=JOE.rights, waited=MAXIMUM_WAIT)
    too_late = next_step(item, KNOWN, session=session, rights=JOE.rights, waited=late)

    assert (in_time, too_late) == (Step.POST, Step.CLOSE)


def test_nobody_is_closed_for_what_is_not_posted() -> None:
    session, late = joined().session, MAXIMUM_WAIT + timedelta(seconds=1)
    done = Outbox(done=(ItemId("1"),))
    reply = Item(ItemId("1"), Post(Unsubscribed(RequestId(2))))

    assert next_step(reply, done, session=session, rights=JOE.rights, waited=late) is Step.SKIP
    assert next_step(Item(ItemId("2"), event()), done, session=session, rights=JOE.rights, waited=late) is Step.SKIP


def test_unsubscribed_ends_what_the_client_knows() -> None:
    ended = finish(KNOWN, ItemId("2"), Post(Unsubscribed(RequestId(2)), ends=ID))

    assert ended.subscribed == frozenset()


def test_no_more_is_remembered_than_can_come_again() -> None:
    outbox = Outbox()
    for number in range(KEPT_ITEMS + 5):
        outbox = finish(outbox, ItemId(str(number)), Post(Unsubscribed(RequestId(number))))

    assert outbox.done == tuple(ItemId(str(number)) for number in range(5, KEPT_ITEMS + 5))


@dataclass(slots=True)
class World:
    """A connection with its queue, its writer that may die, and routers that know late who is subscribed."""

    connection: Connection = field(default_factory=joined)
    queue: deque[Item] = field(default_factory=deque)
    outbox: Outbox = field(default_factory=Outbox)
    handled: list[Item] = field(default_factory=list)
    seen: list[Message] = field(default_factory=list)
    attached: set[SubscriptionId] = field(default_factory=set)
    once_attached: set[SubscriptionId] = field(default_factory=set)
    is_closed: bool = False
    items: int = 0

    def put(self, said: Post | PostedEvent) -> None:
        self.items += 1
        self.queue.append(Item(ItemId(str(self.items)), said))

    def ask(self, request: Subscribe | Unsubscribe | RightsChanged) -> None:
        for effect in self.connection.hear(request).effects:
            if isinstance(effect, Post):
                self.put(effect)
            elif isinstance(effect, Attach):
                self.attached.add(effect.subscription)
            elif isinstance(effect, Detach):
                self.once_attached.add(effect.subscription)
                self.attached.discard(effect.subscription)

    def publish(self, *, stale: bool) -> None:
        """A router that has not heard yet of what was detached sends events to it, too."""
        for subscription in sorted(self.attached | (self.once_attached if stale else set())):
            self.put(event(self.items, subscription))

    def write(self, *, dies: str) -> None:
        if not self.queue or self.is_closed:
            return
        item = self.queue[0]
        account = self.connection.given.account
        rights = account.rights if account else NOBODY.rights
        step = next_step(item, self.outbox, session=self.connection.session, rights=rights, waited=AT_ONCE)
        self.is_closed = step is Step.CLOSE
        if step is Step.POST and not self._post(item.said, item.item_id, dies):
            return
        self.handled.append(self.queue.popleft())

    def _post(self, said: Post | PostedEvent, item_id: ItemId, dies: str) -> bool:
        if isinstance(said, PostedEvent):
            self.seen.append(said.event)
            return dies != "after"
        self.outbox = begin(self.outbox, item_id)
        if dies == "before":
            return False
        self.seen.append(said.message)
        if dies == "after":
            return False
        self.outbox = finish(self.outbox, item_id, said)
        return True

    def redeliver(self, count: int) -> None:
        """A batch whose function died comes again, and all of it was handled."""
        back = self.handled[-count:]
        del self.handled[-count:]
        self.queue.extendleft(reversed(back))


uris = st.sampled_from(["open.a", "open.b"])
matches = st.sampled_from([Match.EXACT, Match.PREFIX])
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
    kind, *told = step
    if kind == "subscribe":
        world.ask(Subscribe(RequestId(number), {"match": told[1].value}, told[0]))
    elif kind == "unsubscribe":
        world.ask(Unsubscribe(RequestId(number), TopicPattern(told[1], told[0]).subscription_id))
    elif kind == "publish":
        world.publish(stale=told[0])
    elif kind == "rights":
        world.connection.given = replace(world.connection.given, account=JOE if told[0] else NOBODY)
        world.ask(RightsChanged())
    elif kind == "redeliver":
        world.redeliver(told[0])
    else:
        world.write(dies=told[0])


@given(st.lists(steps, max_size=60))
def test_no_client_sees_an_event_before_subscribed_or_after_unsubscribed_or_a_second_reply(steps_: list[tuple]) -> None:  # type: ignore[type-arg]
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
def test_a_revoked_user_sees_nothing_whatever_is_in_the_outbox(publishes: list[bool]) -> None:
    world = World()
    world.ask(Subscribe(RequestId(1), {}, "open.a"))
    for is_written in publishes:
        world.publish(stale=False)
        if is_written:
            world.write(dies="")
    seen = len(world.seen)

    world.connection.given = replace(world.connection.given, account=NOBODY)
    world.ask(RightsChanged())
    while world.queue:
        world.write(dies="")

    assert not [message for message in world.seen[seen:] if isinstance(message, Event)]


def test_events_come_at_least_once_and_in_order_when_nothing_is_taken_away() -> None:
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


def test_an_old_event_does_not_come_before_the_new_subscribed() -> None:
    world = World()
    world.ask(Subscribe(RequestId(1), {}, "open.a"))
    world.ask(Unsubscribe(RequestId(2), ID))
    world.publish(stale=True)
    world.ask(Subscribe(RequestId(3), {}, "open.a"))
    world.publish(stale=False)
    while world.queue:
        world.write(dies="")

    assert [type(message) for message in world.seen] == [Subscribed, Unsubscribed, Subscribed, Event]
