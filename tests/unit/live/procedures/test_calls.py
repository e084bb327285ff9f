"""What calls are answered: of past events, of subscriptions, of sessions, and of the stage."""

from datetime import timedelta
from typing import Any

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.procedures.calls import MAXIMUM_TOPICS
from signalbox.live.session.ports import Member
from signalbox.live.session.state import ConnectionId
from signalbox.live.wamp.audience import Audience, Listener
from signalbox.live.wamp.messages import Payload, PublicationId, SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import UserName
from tests.fakes.live import REALM, START, MemoryLive
from tests.unit.live.session.conversation import Client

A, B = TopicPattern.parse("trial.a"), TopicPattern.parse("trial.b")
ALL = TopicPattern.parse("trial.", MatchPolicy.PREFIX)


@pytest.fixture
def world() -> MemoryLive:
    return MemoryLive()


@pytest.fixture
def admin(world: MemoryLive) -> Client:
    return Client(world, ConnectionId("admin")).open().join("admin")


@pytest.fixture
def client(world: MemoryLive) -> Client:
    return Client(world).open().join()


def call(client: Client, procedure: str, *arguments: object, **keywords: object) -> Any:
    """Return what a call yields: arguments and keywords, or the URI of an error."""
    ((kind, *reply),) = client.say(48, 7, {}, procedure, list(arguments), keywords)
    assert reply[1 if kind == 8 else 0] == 7
    return reply[3] if kind == 8 else [*reply[2:], [], {}][:2]


def result(client: Client, procedure: str, *arguments: object) -> Any:
    ((found,), _) = call(client, procedure, *arguments)
    return found


def log(world: MemoryLive, number: int, topic: str, **told: Any) -> None:
    at = START + timedelta(seconds=number)
    payload = Payload((number,))
    event = LoggedEvent(PublicationId(number), RoutingKey(topic), at, payload, sequence=number, **told)
    world.log.append(REALM, event)


# --- past events


def test_past_events_of_a_pattern_stand_in_the_order_of_their_publication(world, client) -> None:
    client.say(32, 1, {"match": "prefix"}, "trial.")
    for number, topic in ((1, "trial.a"), (3, "trial.a"), (2, "trial.b"), (4, "elsewhere")):
        log(world, number, topic)

    events, told = call(client, "wamp.subscription.get_events", ALL.subscription_id)

    assert [(event["publication"], event["details"]["topic"], event["args"]) for event in events] == [
        (1, "trial.a", [1]),
        (2, "trial.b", [2]),
        (3, "trial.a", [3]),
    ]
    assert told == {"complete": True, "more": False}


def test_past_events_of_one_topic_of_a_pattern_are_asked_for_by_its_name(world, client) -> None:
    client.say(32, 1, {"match": "prefix"}, "trial.")
    for number, topic in enumerate(["trial.a", "trial.b"], start=1):
        log(world, number, topic)

    events, _ = call(client, "wamp.subscription.get_events", ALL.subscription_id, topic="trial.b")

    assert [event["publication"] for event in events] == [2]
    assert call(client, "wamp.subscription.get_events", ALL.subscription_id, topic="elsewhere")[0] == []


def test_past_events_of_very_many_topics_are_asked_for_one_by_one(world, client) -> None:
    client.say(32, 1, {"match": "prefix"}, "trial.")
    for number in range(1, MAXIMUM_TOPICS + 2):
        log(world, number, f"trial.{number}")

    assert call(client, "wamp.subscription.get_events", ALL.subscription_id) == "wamp.error.invalid_argument"
    assert len(call(client, "wamp.subscription.get_events", ALL.subscription_id, topic="trial.7")[0]) == 1


def test_past_events_are_only_for_those_for_whom_they_were(world, client) -> None:
    client.say(32, 1, {}, "trial.a")
    log(world, 1, "trial.a", audience=Audience(eligible_authid=frozenset({"somebody else"})))
    log(world, 2, "trial.a")

    assert [event["publication"] for event in call(client, "wamp.subscription.get_events", A.subscription_id)[0]] == [2]


def test_past_events_of_what_may_not_be_seen_any_more_are_not_told(world, client) -> None:
    client.say(32, 1, {}, "trial.a")
    log(world, 1, "trial.a")
    world.accounts.grants[REALM, UserName("subscriber")] = []

    assert call(client, "wamp.subscription.get_events", A.subscription_id)[0] == []


def test_past_events_of_a_user_who_is_gone_are_not_told(world, client) -> None:
    client.say(32, 1, {}, "trial.a")
    log(world, 1, "trial.a")
    world.users.remove(UserName("subscriber"))
    world.declare(None)

    assert call(client, "wamp.subscription.get_events", A.subscription_id)[0] == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((A.subscription_id,), "wamp.error.no_such_subscription"),
        (("a",), "wamp.error.invalid_argument"),
        ((), "wamp.error.invalid_argument"),
    ],
)
def test_past_events_of_no_subscription_of_the_session_are_refused(world, client, arguments, error) -> None:
    assert call(client, "wamp.subscription.get_events", *arguments) == error


# --- subscriptions


def test_administrators_see_all_subscriptions(world, admin, client) -> None:
    client.say(32, 1, {}, "trial.a")
    admin.say(32, 1, {"match": "prefix"}, "trial.")
    admin.say(32, 1, {}, "trial.a")

    assert result(admin, "wamp.subscription.list") == {
        "exact": [A.subscription_id],
        "prefix": [ALL.subscription_id],
        "wildcard": [],
    }
    assert set(result(admin, "wamp.subscription.match", "trial.a")) == {A.subscription_id, ALL.subscription_id}
    assert result(admin, "wamp.subscription.list_subscribers", A.subscription_id) == [admin.session, client.session]
    assert result(admin, "wamp.subscription.count_subscribers", A.subscription_id) == 2


def test_a_subscription_is_described_with_its_beginning(world, admin, client) -> None:
    client.say(32, 1, {}, "trial.a")
    world.moment += timedelta(minutes=5)
    admin.say(32, 1, {}, "trial.a")
    described = {"id": A.subscription_id, "created": "2026-11-21T20:00:00.000Z", "uri": "trial.a", "match": "exact"}

    assert result(admin, "wamp.subscription.get", A.subscription_id) == described
    assert call(admin, "wamp.subscription.get", B.subscription_id) == "wamp.error.no_such_subscription"
    assert call(admin, "wamp.subscription.get", "x") == "wamp.error.invalid_argument"


def test_everybody_may_look_up_what_somebody_subscribed_to(world, admin, client) -> None:
    admin.say(32, 1, {"match": "prefix"}, "trial.")

    assert result(client, "wamp.subscription.lookup", "trial.", {"match": "prefix"}) == ALL.subscription_id
    assert result(client, "wamp.subscription.lookup", "trial.a") is None


def test_who_has_left_is_no_subscriber(world, admin, client) -> None:
    client.say(32, 1, {}, "trial.a")
    world.sessions.records[client.connection] = world.sessions.records[admin.connection]

    assert call(admin, "wamp.subscription.count_subscribers", A.subscription_id) == "wamp.error.no_such_subscription"


# --- sessions


def test_administrators_count_and_list_sessions_also_by_roles(world, admin, client) -> None:
    assert result(admin, "wamp.session.count") == 2
    assert result(admin, "wamp.session.count", ["admin"]) == 1
    assert result(admin, "wamp.session.list") == sorted([admin.session, client.session])
    assert result(admin, "wamp.session.list", ["subscriber", "source"]) == [client.session]
    assert call(admin, "wamp.session.list", "admin") == "wamp.error.invalid_argument"
    assert call(admin, "wamp.session.list", [1]) == "wamp.error.invalid_argument"


def test_administrators_see_who_a_session_is(world, admin, client) -> None:
    assert result(admin, "wamp.session.get", client.session) == {
        "session": client.session,
        "authid": "subscriber",
        "authrole": "subscriber",
        "authmethod": "ticket",
        "authprovider": "signalbox",
    }
    assert call(admin, "wamp.session.get", 1) == "wamp.error.no_such_session"
    assert call(admin, "wamp.session.get", *[True]) == "wamp.error.invalid_argument"
    assert call(admin, "wamp.session.get") == "wamp.error.invalid_argument"


def test_of_a_session_whose_record_is_gone_nothing_is_told(world, admin, client) -> None:
    del world.sessions.records[client.connection]

    assert call(admin, "wamp.session.get", client.session) == "wamp.error.no_such_session"


def test_administrators_end_sessions(world, admin, client) -> None:
    assert call(admin, "wamp.session.kill", client.session, message="enough") == [[], {}]

    ((body,),) = [world.inbox.bodies[client.connection]]
    assert client.hear(body) == [[6, {"message": "enough"}, "wamp.close.killed"]]


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"reason": "not a uri"}, "wamp.error.invalid_uri"),
        ({"reason": 7}, "wamp.error.invalid_argument"),
        ({"message": 7}, "wamp.error.invalid_argument"),
    ],
)
def test_a_session_is_not_ended_for_a_reason_that_is_none(world, admin, client, keywords, error) -> None:
    assert call(admin, "wamp.session.kill", client.session, **keywords) == error
    assert world.inbox.bodies == {}


def test_a_session_does_not_end_itself_so(world, admin) -> None:
    assert call(admin, "wamp.session.kill", admin.session) == "wamp.error.no_such_session"


@pytest.mark.parametrize("procedure", ["wamp.session.list", "wamp.subscription.list", "signalbox.overview"])
def test_others_see_nothing_of_others(world, client, procedure) -> None:
    assert call(client, procedure) == "wamp.error.not_authorized"


# --- the stage


def test_the_stage_is_shown(world, admin, client) -> None:
    assert result(client, "signalbox.topics") == []
    assert result(admin, "signalbox.topics") == [{"topic": "a", "retained_at": None}]
    assert result(admin, "signalbox.overview")["told"] == "much"
    assert result(admin, "signalbox.report") == []


def test_what_is_not_to_be_had_now_is_an_error(world, admin) -> None:
    world.glances.is_up = False

    assert call(admin, "signalbox.report") == "wamp.error.unavailable"


def test_an_answer_that_is_too_large_is_an_error(world, admin) -> None:
    for number in range(2**52, 2**52 + 8_000):
        listener = Listener(SessionId(number), "x", "source")
        world.roster.enter(REALM, Member(ConnectionId(str(number)), listener, START), expires_at=START)

    assert call(admin, "wamp.session.list") == "wamp.error.payload_size_exceeded"
