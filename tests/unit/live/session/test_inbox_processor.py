"""The processing of a connection's inbox: replies, stored state and sent messages."""

import json
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from signalbox.errors import EffectRefused
from signalbox.exchange.model.records import LiveSettings, OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.state import (
    JOIN_TIMEOUT,
    ConnectionId,
    FrameId,
    Killed,
    Lost,
    RightsChanged,
    Session,
    SessionState,
)
from signalbox.live.outbox.items import BackfillRequest, Reply
from signalbox.live.ports import Stored
from signalbox.live.session.inbox import InvalidInboxMessage, frame_body, signal_body
from signalbox.live.session.inbox_processor import REVOKED_AT_ONCE, Arrival, InboxProcessor, OutOfTime, SessionChanged
from signalbox.live.wamp.messages import PublicationId
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from tests.fakes.exchange import MemorySender
from tests.fakes.live import REALM, MemoryLive, MemoryOutboxes, MemorySessions, MemoryTopicLog
from tests.unit.live.session.conversation import FIRST, Client, published

A = TopicPattern.parse("trial.a")


@pytest.fixture
def world() -> MemoryLive:
    return MemoryLive()


@pytest.fixture
def client(world: MemoryLive) -> Client:
    return Client(world).open()


def test_a_protocol_violation_ends_the_session(world, client) -> None:
    client.join()
    client.say(32, 1, {}, "trial.a")

    abort, close = client.receive("f{}")

    assert abort[:1] + abort[2:] == [3, "wamp.error.protocol_violation"]
    assert close == "close"
    assert world.realm_sessions.every(REALM) == []
    assert world.subscribers.of_topic(REALM, "trial.a") == []
    assert world.sessions.closed == {"c1"}
    assert [(event.kind, event.outcome, event.reason) for event in world.recorded][-2:] == [
        ("subscription", "unsubscribed", None),
        ("session", "ended", "wamp.error.protocol_violation"),
    ]


@pytest.mark.parametrize(
    ("realm", "reason"),
    [
        ("xs_nobody.fifo", "wamp.error.no_such_realm"),
        ("no-exchange", "wamp.error.no_such_realm"),
        ("a realm", "wamp.error.invalid_uri"),
    ],
)
def test_only_live_exchanges_can_be_joined(world, client, realm, reason) -> None:
    world.declare(None, "xs_nobody.fifo")

    ((kind, details, found), close) = client.say(1, realm, {"authid": "source", "authmethods": ["ticket"]})

    assert (kind, found, close) == (3, reason, "close")
    assert reason != "wamp.error.no_such_realm" or "--live" in details["message"]


def test_wrong_secrets_of_others_never_refuse_the_right_one(world, client) -> None:
    details = {"authid": "source", "authmethods": ["ticket"]}
    messages = []
    for number in range(30):
        stranger = Client(world, ConnectionId(f"stranger-{number}")).open()
        stranger.say(1, REALM, details)
        ((_, answer, reason), _) = stranger.say(5, "wrong", {})
        assert reason == "wamp.error.authentication_failed"
        messages.append(answer["message"])

    client.say(1, REALM, details)
    ((kind, _, answer),) = client.say(5, "source-secret", {})

    assert (kind, answer["authid"]) == (2, "source")
    assert messages[:20] == ["wrong name or ticket"] * 20
    assert all("more than 20 times within a minute" in message for message in messages[20:])
    assert world.accounts.failures == {"source": 20}
    assert [event.outcome for event in world.recorded] == [*["refused"] * 30, "started"]


def test_a_realm_that_stopped_being_live_grants_no_rights(world, client) -> None:
    client.join()
    world.declare(None)

    assert client.say(32, 1, {}, "trial.a")[0][4] == "wamp.error.not_authorized"


def test_past_events_are_requested_after_the_subscription_is_attached(world, client) -> None:
    client.join()

    client.say(32, 1, {"_history": {"last": 3}}, "trial.a")

    subscribed, past = world.outboxes.items[client.connection][-2:]
    assert isinstance(subscribed, Reply)
    assert (subscribed.begins, subscribed.expects_backfill) == (A.subscription_id, True)
    assert past == BackfillRequest(past.item_id, A, get_retained=False, history=past.history, at=world.moment)
    assert world.subscribers.of_topic(REALM, "trial.a")


def test_an_ended_subscription_is_detached(world, client) -> None:
    client.join()
    client.say(32, 1, {}, "trial.a")

    assert client.say(34, 2, A.subscription_id) == [[35, 2]]

    assert world.subscribers.of_topic(REALM, "trial.a") == []
    assert world.outboxes.items[client.connection][-1].ends == A.subscription_id


def test_revoked_rights_end_subscriptions_and_notify_the_client(world, client) -> None:
    client.join()
    client.say(32, 1, {}, "trial.a")
    world.accounts.grants[REALM, UserName("subscriber")] = []

    answer = client.notify(RightsChanged())

    assert answer == [[35, 0, {"subscription": A.subscription_id, "reason": "wamp.error.not_authorized"}]]
    assert world.subscribers.of_topic(REALM, "trial.a") == []
    assert (world.recorded[-1].outcome, world.recorded[-1].topic) == ("revoked", "trial.a")
    assert client.say(16, 2, {"acknowledge": True}, "trial.a")[0][4] == "wamp.error.not_authorized"


def test_rights_are_read_again_when_they_changed_within_a_batch(world, client) -> None:
    client.join()
    client.processor = processor_of(client)
    client.say(32, 1, {}, "trial.a")
    world.accounts.grants[REALM, UserName("subscriber")] = []

    assert client.notify(RightsChanged())[0][0] == 35
    assert client.say(32, 2, {}, "trial.a")[0][4] == "wamp.error.not_authorized"


def test_a_refused_publication_without_acknowledgement_is_counted(world, client) -> None:
    client.join()

    assert client.say(16, 2, {}, "elsewhere", ["x"]) == []

    event = world.recorded[-1]
    assert (event.kind, event.outcome, event.reason) == ("publication", "dropped", "wamp.error.not_authorized")
    assert published(world) == []


def test_a_publication_to_a_deleted_exchange_is_refused(world, client) -> None:
    client.join()
    world.sender = GoneSender()

    error = client.say(16, 2, {"acknowledge": True}, "trial.a", ["x"])[0]
    assert client.say(16, 3, {}, "trial.a", ["x"]) == []

    assert error == [8, 16, 2, {}, "wamp.error.unavailable", ["there is no such queue"]]
    assert (world.recorded[-1].outcome, world.recorded[-1].reason) == ("dropped", "wamp.error.unavailable")


@pytest.mark.parametrize(
    ("order_by", "groups"),
    [
        (OrderBy.TOPIC, {"trial.a", "trial.b"}),
        (OrderBy.PUBLISHER, {FIRST}),
        (OrderBy.EXCHANGE, {"exchange"}),
    ],
)
def test_the_message_group_follows_from_the_ordering_mode(world, client, order_by, groups) -> None:
    world.declare(LiveSettings(order_by=order_by))
    client.join()
    for topic in ("trial.a", "trial.b"):
        client.say(16, 2, {}, topic, [1])

    assert {sent.message.group_id for sent in published(world)} == groups


def test_a_lost_connection_leaves_no_session_and_no_subscription(world, client) -> None:
    client.join()
    client.say(32, 1, {"match": "prefix"}, "trial.")

    assert client.notify(Lost()) == ["close"]
    assert client.notify(Lost()) == []

    assert world.subscribers.rows[REALM] == {}
    assert world.realm_sessions.every(REALM) == []
    assert world.recorded[-1].reason == "lost"
    assert world.sessions.find(client.connection).session.state is SessionState.CLOSED


@pytest.mark.parametrize(("code", "name"), [(6, "goodbye"), (3, "abort")])
def test_the_reason_that_a_client_gives_is_not_recorded(world, client, code, name) -> None:
    client.join()
    client.say(code, {"message": "my secret"}, "my.secret")

    assert world.recorded[-1].reason == name
    assert "my" not in world.recorded[-1].to_json()


def test_a_killed_session_starts_a_timer(world, client) -> None:
    client.join()
    assert world.timers.started == []

    assert client.notify(Killed("wamp.close.killed", "by root")) == [[6, {"message": "by root"}, "wamp.close.killed"]]
    assert client.say(6, {}, "wamp.close.goodbye_and_out") == ["close"]

    assert world.timers.started == ["c1"]
    assert world.recorded[-1].reason == "wamp.close.killed"


def test_messages_of_an_unknown_connection_have_no_effect(world) -> None:
    assert Client(world, ConnectionId("nobody")).say(1, REALM, {}) == []


def test_a_frame_that_is_received_twice_is_answered_once(world, client) -> None:
    client.join()
    for _ in range(3):
        client.say(32, 1, {"get_retained": True}, "trial.a", frame="f")
        client.say(16, 2, {"acknowledge": True}, "trial.a", [1], frame="g")

    items = [item.item_id for item in world.outboxes.items[client.connection]]
    assert len(items) == len(set(items))
    assert len(published(world)) == 1


class StaleSessions(MemorySessions):
    """`Sessions` in which another writer changes every session after it is read."""

    def find(self, connection: ConnectionId) -> Stored | None:
        found = super().find(connection)
        return found and replace(found, version=found.version - 1)


def test_a_concurrent_change_of_the_session_is_not_overwritten(world, client) -> None:
    world.sessions = StaleSessions(world.sessions.records)

    with pytest.raises(SessionChanged, match="c1"):
        client.say(1, REALM, {"authid": "source", "authmethods": ["ticket"]})

    assert client.replies() == []


# --- the end of a session with a backlog


def call(number: int) -> str:
    return frame_body(json.dumps([48, number, {}, "wamp.subscription.lookup", ["a"]]))


def replies(client: Client) -> list[int]:
    return [reply if isinstance(reply, str) else reply[0] for reply in client.replies()]


@pytest.mark.parametrize("backlog", [1, 10])
def test_a_killed_session_ends_with_its_next_frame_whatever_waits_before_the_signal(world, client, backlog) -> None:
    client.join()
    admin = Client(world, ConnectionId("admin")).open().join("admin")

    admin.say(48, 1, {}, "wamp.session.kill", [client.session], {"reason": "trial.bye"})
    done = client.receive_all(*(call(number) for number in range(backlog)))

    client.frames += backlog
    assert (len(done), replies(client)) == (backlog, [6])
    assert client.say(6, {}, "wamp.close.goodbye_and_out") == ["close"]
    assert client.notify(Killed("trial.bye", "")) == []


@dataclass
class KillingSessions(MemorySessions):
    """`Sessions` of which one is killed after its record was read."""

    reads: int = 0

    def find(self, connection: ConnectionId) -> Stored | None:
        found = super().find(connection)
        self.reads += 1
        if found and not found.killed:
            self.kill(connection, Killed("trial.bye", "at once"))
        return found


def test_a_session_that_is_killed_while_its_frames_are_decided_executes_none_of_them(world, client) -> None:
    client.join()
    world.sessions = KillingSessions(world.sessions.records)

    client.receive_all(call(1), frame_body(json.dumps([16, 2, {}, "trial.a", [1]])))

    assert replies(client) == [6]
    assert published(world) == []


def test_no_frame_of_an_ended_session_is_read_and_none_is_stored(world, client) -> None:
    client.join()
    client.notify(Lost())
    before = world.sessions.records[client.connection]

    assert len(client.receive_all("no frame and no signal", call(1))) == 2
    assert world.sessions.records[client.connection] == before


def test_the_wait_for_goodbye_ends_at_its_time_whatever_waits_before_the_timer(world, client) -> None:
    client.join()
    client.notify(Killed("trial.bye", ""))
    sent_at, world.moment = world.moment, world.moment + JOIN_TIMEOUT
    client.replies()

    list(world.processor(client.connection).process([Arrival(FrameId("late"), client.connection, call(1), sent_at)]))

    assert replies(client) == ["close"]


def test_the_end_of_many_subscriptions_continues_where_an_invocation_ended(world, client) -> None:
    """Each invocation has time for one part."""
    client.join()
    for number in range(REVOKED_AT_ONCE + 20):
        client.say(32, number + 1, {}, f"trial.{number}")
    client.replies()
    world.accounts.grants[REALM, UserName("subscriber")].clear()
    arrival = Arrival(FrameId("rights"), client.connection, signal_body(RightsChanged()), world.moment)
    detached: list[int] = []

    for is_last in (False, True):
        processor = replace(world.processor(client.connection), is_late=lambda: True)
        with nullcontext() if is_last else pytest.raises(OutOfTime):
            assert list(processor.process([arrival])) == ["rights"]
        detached.append(len(client.replies()))

    assert detached == [REVOKED_AT_ONCE, 20]
    assert world.subscribers.rows[REALM] == {}


# --- several frames in a row


@dataclass
class CountingSessions(MemorySessions):
    """`Sessions` that count writes."""

    saved: int = 0

    def save(self, session: Session, *, replacing: Stored) -> Stored | None:
        self.saved += 1
        return super().save(session, replacing=replacing)


def frame(*message: object) -> str:
    return frame_body(json.dumps(message))


def test_the_messages_of_a_batch_are_stored_in_one_write(world, client) -> None:
    client.join()
    world.sessions = CountingSessions(world.sessions.records)

    done = client.receive_all(*(frame(16, number, {}, "trial.a", [number]) for number in range(10)))

    assert len(done) == 10
    assert world.sessions.saved == 1
    assert [sent.body for sent in published(world)] == list(range(10))


def test_large_frames_are_stored_in_several_writes(world, client) -> None:
    client.join()
    world.sessions = CountingSessions(world.sessions.records)

    client.receive_all(*(frame(16, number, {}, "trial.a", ["x" * 40_000]) for number in range(4)))

    assert world.sessions.saved == 2
    assert len(published(world)) == 4


def test_messages_before_an_unreadable_one_are_processed(world, client) -> None:
    client.join()
    bodies = [frame(16, 1, {}, "trial.a", [1]), "nonsense", frame(16, 2, {}, "trial.a", [2])]

    arrivals = [
        Arrival(FrameId(f"n{number}"), client.connection, body, world.moment) for number, body in enumerate(bodies)
    ]
    hearing = processor_of(client).process(arrivals)

    assert next(hearing) == "n0"
    with pytest.raises(InvalidInboxMessage):
        next(hearing)

    assert [sent.body for sent in published(world)] == [1]


def test_poison_is_refused_unread_after_those_before_it_are_processed(world, client) -> None:
    client.join()
    body = frame(16, 1, {}, "trial.a", [1])
    arrivals = [
        Arrival(FrameId(one), client.connection, body, world.moment, one if one == "n1" else None)
        for one in ("n0", "n1")
    ]

    hearing = processor_of(client).process(arrivals)

    assert next(hearing) == "n0"
    with pytest.raises(InvalidInboxMessage, match="n1"):
        next(hearing)


def test_messages_of_an_unknown_connection_are_done(world) -> None:
    assert len(Client(world, ConnectionId("nobody")).receive_all("nonsense", frame(1, REALM, {}))) == 2


# --- meta events


@pytest.fixture
def admin(world: MemoryLive) -> Client:
    """An administrator who subscribes to all meta events."""
    found = Client(world, ConnectionId("admin")).open().join("admin")
    found.say(32, 1, {"match": "prefix"}, "wamp.")
    return found


def test_subscribers_of_meta_events_get_those_of_sessions(world, admin, client) -> None:
    client.join()
    client.notify(Lost())

    joined, left = (sent for sent in published(world) if sent.topic.startswith("wamp.session"))
    assert (joined.topic, joined.body["session"], joined.body["authid"], joined.body["authmethod"]) == (
        "wamp.session.on_join",
        client.session,
        "subscriber",
        "ticket",
    )
    assert (left.topic, left.body["args"]) == ("wamp.session.on_leave", [client.session, "subscriber", "subscriber"])
    assert joined.message.attributes["publisher"].text == "wamp.meta"


def test_subscribers_of_meta_events_get_those_of_subscriptions(world, admin, client) -> None:
    other = Client(world, ConnectionId("c2")).open().join("source")
    client.join()
    world.sender.sent.clear()

    for one in (client, other):
        one.say(32, 1, {}, "trial.a")
    for one in (client, other):
        one.say(34, 2, A.subscription_id)

    answer = [(sent.topic.removeprefix("wamp.subscription.on_"), sent.body["args"]) for sent in published(world)]
    assert answer == [
        ("create", [client.session, {**DETAILS, "created": "2026-11-21T20:00:00.000Z"}]),
        ("subscribe", [client.session, A.subscription_id]),
        ("subscribe", [other.session, A.subscription_id]),
        ("unsubscribe", [client.session, A.subscription_id]),
        ("unsubscribe", [other.session, A.subscription_id]),
        ("delete", [other.session, A.subscription_id]),
    ]


DETAILS = {"id": A.subscription_id, "uri": "trial.a", "match": "exact"}


def test_a_user_s_changes_of_subscriptions_are_announced_as_far_as_they_may_be(world, admin, client) -> None:
    client.join()
    world.sender.sent.clear()
    world.subscribers.announcements = 2

    for number in range(3):
        client.say(32, number + 1, {}, f"trial.{number}")

    assert [sent.topic.rpartition("_")[2] for sent in published(world)] == 2 * ["create", "subscribe"]


def test_meta_events_without_subscribers_are_not_published(world, client) -> None:
    client.join()
    client.say(32, 1, {}, "trial.a")
    client.notify(Lost())

    assert published(world) == []


def test_meta_events_of_a_deleted_exchange_are_dropped(world, admin, client) -> None:
    client.join()
    world.sender = GoneSender()

    assert client.say(6, {}, "wamp.close.goodbye_and_out")[1:] == ["close"]


class GoneSender(MemorySender):
    def send(self, queue: QueueName, message: Message) -> MessageId:
        raise EffectRefused("there is no such queue")


def processor_of(client: Client) -> InboxProcessor:
    return client.world.processor(client.connection)


def test_the_messages_of_a_batch_are_processed_in_order(world) -> None:
    client = Client(world).open(is_batched=True).join()

    answers = client.say_all([32, 1, {}, "trial.a"], [32, 2, {}, "trial.b"], [34, 3, A.subscription_id])

    assert [answer[:2] for answer in answers] == [[33, 1], [33, 2], [35, 3]]


def test_a_pattern_before_the_join_ends_the_session(world) -> None:
    replies = Client(world, ConnectionId("early")).open().say(32, 1, {"match": "prefix"}, "trial.")

    assert replies[0][0] == 3


def test_each_pattern_of_a_batch_takes_room_in_the_realm(world) -> None:
    client = Client(world).open(is_batched=True).join()
    world.subscribers.left = 9
    prefix = {"match": "prefix"}

    answers = client.say_all(*([32, one, prefix, f"trial.{one}."] for one in (1, 2, 3)), [32, 4, {}, "trial.a"])

    assert [answer[0] for answer in answers] == [33, 33, 8, 33]
    assert answers[2][:5] == [8, 32, 3, {}, "signalbox.error.too_many_subscriptions"]
    assert world.subscribers.asked == [("subscriber", False)] * 3


@dataclass
class SlowLog(MemoryTopicLog):
    """A log whose first read takes 1.2 s, in which the reader's rights end and an event is published."""

    world: MemoryLive | None = None

    def events(self, realm: ExchangeName, topic: RoutingKey, **given: Any) -> list[LoggedEvent]:
        if self.world is not None:
            self.world.accounts.grants[REALM, UserName("subscriber")].clear()
            self.world.moment += timedelta(seconds=1.2)
            self.append(realm, LoggedEvent(PublicationId(2), topic, self.world.moment, sequence=2))
            self.world = None
        return MemoryTopicLog.events(self, realm, topic, **given)


def test_calls_of_one_frame_return_nothing_that_was_published_after_a_revocation(world) -> None:
    client = Client(world).open(is_batched=True).join()
    client.say(32, 1, {}, "trial.a")
    world.log = SlowLog(world=world)
    world.log.append(REALM, LoggedEvent(PublicationId(1), RoutingKey("trial.a"), world.moment, sequence=1))

    answers = client.say_all(*([48, one, {}, "wamp.subscription.get_events", [A.subscription_id]] for one in (2, 3)))

    assert [answer[3:] for answer in answers] == [[[], {"complete": True, "more": False}]] * 2
    assert len(world.log.logged[REALM]["trial.a"]) == 2


def test_a_publication_that_was_decided_before_a_revocation_is_not_published_after_it(world) -> None:
    client = Client(world).open(is_batched=True).join()
    world.sender = GoneSender()
    publications = [[16, number, {"acknowledge": number == 1}, "trial.a", [1]] for number in (1, 2)]
    client.say_all(*publications, frame="pending")
    world.sender, world.outboxes = MemorySender(), MemoryOutboxes()
    world.accounts.grants[REALM, UserName("subscriber")].clear()
    client.read = 0

    (refused,) = client.say_all(*publications, frame="pending")

    assert refused[:5] == [8, 16, 1, {}, "wamp.error.not_authorized"]
    assert published(world) == []
    assert world.recorded[-1].reason == "wamp.error.not_authorized"


def test_a_batch_that_is_received_again_has_the_same_effects(world) -> None:
    client = Client(world).open(is_batched=True).join()
    messages = [[16, 1, {"acknowledge": True}, "trial.a", [1]], [32, 2, {}, "trial.b"]]
    client.say_all(*messages, frame="twice")
    frames = world.sessions.records[client.connection].session.frames

    client.say_all(*messages, frame="twice")

    assert len({one.message.deduplication_id for one in published(world)}) == 1
    assert world.sessions.records[client.connection].session.frames == frames
    assert frames[-1] == "twice"


@pytest.mark.parametrize("count", [0, 11])
def test_a_batch_without_a_message_or_with_too_many_violates_the_protocol(world, count) -> None:
    """The specification: a peer fails the transport when it receives an empty batch."""
    client = Client(world).open(is_batched=True).join()

    abort, close = client.say_all(*[[48, 1, {}, "wamp.session.count"]] * count)

    assert (abort[0], abort[2], close) == (3, "wamp.error.protocol_violation", "close")
    assert f"{count} messages, not 1 to 10" in abort[1]["message"]


def test_a_message_of_a_batch_that_violates_the_protocol_ends_the_session(world) -> None:
    client = Client(world).open(is_batched=True).join()

    subscribed, abort, close = client.say_all([32, 1, {}, "trial.a"], [2, 1, {}], [32, 2, {}, "trial.b"])

    assert (subscribed[0], abort[0], close) == (33, 3, "close")


def test_a_signal_is_no_batch(world) -> None:
    client = Client(world).open(is_batched=True).join()

    assert client.notify(RightsChanged()) == []
    assert client.notify(Lost()) == ["close"]


@pytest.mark.parametrize("is_known", [False, True], ids=["new frames", "behind a frame that is received again"])
def test_a_session_whose_record_has_no_room_for_a_frame_ends_and_the_frame_is_done(world, client, is_known) -> None:
    client.join()
    client.say(32, 1, {}, "trial.a", frame="before")
    world.sessions.maximum_characters = 2_000
    publish = json.dumps([16, 2, {"acknowledge": True}, "trial.a", ["x" * 2_000]])
    bodies = [frame_body(publish), signal_body(RightsChanged())]
    arrivals = [Arrival(FrameId(f"f{number}"), FIRST, body, world.moment) for number, body in enumerate(bodies)]
    if is_known:
        arrivals.insert(0, Arrival(FrameId("before"), FIRST, frame_body('[32, 1, {}, "trial.a"]'), world.moment))

    done = list(world.processor(FIRST).process(arrivals))

    assert done == [one.frame for one in arrivals]
    (goodbye,) = client.replies()
    assert goodbye == [6, {"message": goodbye[1]["message"]}, "wamp.error.payload_size_exceeded"]
    assert world.sessions.find(FIRST).session.state is SessionState.CLOSING
    assert (published(world), world.realm_sessions.every(REALM)) == ([], [])
    assert world.subscribers.of_topic(REALM, "trial.a") == []
