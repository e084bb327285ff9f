"""Calls of procedures by clients: past events, subscriptions, sessions, and calls that are passed on."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.read_limits import MEMBER, PATTERN, PastTooLarge, ReadsBusy
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.items import ItemId
from signalbox.live.outbox.overview_calls import OverviewCall
from signalbox.live.ports import Member
from signalbox.live.procedures.calls import MAXIMUM_TOPICS
from signalbox.live.procedures.session_meta import MAXIMUM_MESSAGE
from signalbox.live.procedures.subscription_meta import MAXIMUM_SUBSCRIPTIONS
from signalbox.live.wamp.audience import Audience, Listener
from signalbox.live.wamp.messages import Payload, PublicationId, RequestId, SessionId
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
    """Return the arguments and keywords of a call's RESULT, or the URI of its ERROR."""
    ((kind, *reply),) = client.say(48, 7, {}, procedure, list(arguments), keywords)
    assert reply[1 if kind == 8 else 0] == 7
    return reply[3] if kind == 8 else [*reply[2:], [], {}][:2]


def result(client: Client, procedure: str, *arguments: object) -> Any:
    ((found,), _) = call(client, procedure, *arguments)
    return found


def log(world: MemoryLive, number: int, topic: str, **details: Any) -> None:
    at = START + timedelta(seconds=number)
    payload = Payload((number,))
    event = LoggedEvent(PublicationId(number), RoutingKey(topic), at, payload, sequence=number, **details)
    world.log.append(REALM, event)


# --- past events


def test_past_events_of_a_pattern_are_in_the_order_of_their_publication(world, client) -> None:
    client.say(32, 1, {"match": "prefix"}, "trial.")
    for number, topic in ((1, "trial.a"), (3, "trial.a"), (2, "trial.b"), (4, "elsewhere")):
        log(world, number, topic)

    events, keywords = call(client, "wamp.subscription.get_events", ALL.subscription_id)

    assert [(event["publication"], event["details"]["topic"], event["args"]) for event in events] == [
        (1, "trial.a", [1]),
        (2, "trial.b", [2]),
        (3, "trial.a", [3]),
    ]
    assert keywords == {"complete": True, "more": False}
    assert world.log.readers == [(REALM, "subscriber")]  # another realm may have another user of that name


def test_past_events_of_one_topic_of_a_pattern_are_selected_by_name(world, client) -> None:
    client.say(32, 1, {"match": "prefix"}, "trial.")
    for number, topic in enumerate(["trial.a", "trial.b"], start=1):
        log(world, number, topic)

    events, _ = call(client, "wamp.subscription.get_events", ALL.subscription_id, topic="trial.b")

    assert [event["publication"] for event in events] == [2]
    assert call(client, "wamp.subscription.get_events", ALL.subscription_id, topic="elsewhere")[0] == []


def test_past_events_of_too_many_topics_are_refused_unless_one_is_named(world, client) -> None:
    client.say(32, 1, {"match": "prefix"}, "trial.")
    for number in range(1, MAXIMUM_TOPICS + 2):
        log(world, number, f"trial.{number}")

    assert call(client, "wamp.subscription.get_events", ALL.subscription_id) == "wamp.error.invalid_argument"
    assert len(call(client, "wamp.subscription.get_events", ALL.subscription_id, topic="trial.7")[0]) == 1


@pytest.mark.parametrize(
    ("bounds", "since"),
    [
        ({"from_time": START}, START),
        ({"after_time": START + timedelta(hours=1), "from_time": START}, START + timedelta(hours=1)),
        ({"from_time": START - timedelta(days=9)}, START - timedelta(days=1)),
        ({"from_time": START, "after_publication": 1}, START - timedelta(days=1)),
    ],
)
def test_topics_without_events_since_a_requested_time_are_not_listed(world, client, bounds, since) -> None:
    client.say(32, 1, {"match": "prefix"}, "trial.")
    keywords = {name: one if isinstance(one, int) else one.isoformat() for name, one in bounds.items()}

    call(client, "wamp.subscription.get_events", ALL.subscription_id, **keywords)

    assert abs(world.log.listed[-1] - since) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("problem", "error"),
    [(PastTooLarge("large"), "wamp.error.payload_size_exceeded"), (ReadsBusy("busy"), "wamp.error.unavailable")],
)
def test_past_events_that_a_function_cannot_hold_are_refused(world, client, problem, error) -> None:
    client.say(32, 1, {"match": "prefix"}, "trial.")
    world.log.problem = problem

    assert call(client, "wamp.subscription.get_events", ALL.subscription_id) == error


def test_past_events_are_filtered_by_their_audience(world, client) -> None:
    client.say(32, 1, {}, "trial.a")
    log(world, 1, "trial.a", audience=Audience(eligible_authid=frozenset({"another user"})))
    log(world, 2, "trial.a")

    assert [event["publication"] for event in call(client, "wamp.subscription.get_events", A.subscription_id)[0]] == [2]


def test_past_events_of_topics_without_a_right_any_more_are_left_out(world, client) -> None:
    client.say(32, 1, {}, "trial.a")
    log(world, 1, "trial.a")
    world.accounts.grants[REALM, UserName("subscriber")] = []

    assert call(client, "wamp.subscription.get_events", A.subscription_id)[0] == []


def test_a_removed_user_gets_no_past_events(world, client) -> None:
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
def test_past_events_of_an_unknown_subscription_are_refused(world, client, arguments, error) -> None:
    assert call(client, "wamp.subscription.get_events", *arguments) == error


# --- subscriptions


def test_administrators_list_and_match_all_subscriptions(world, admin, client) -> None:
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


@pytest.mark.parametrize(
    ("said", "cost"),
    [
        (("wamp.session.count",), 2 * MEMBER),
        (("wamp.session.list",), 2 * MEMBER),
        (("wamp.subscription.list",), 2 * MEMBER + 2 * PATTERN),
        (("wamp.subscription.match", "trial.a"), 2 * MEMBER + 2 * PATTERN),
        (("wamp.subscription.count_subscribers", A.subscription_id), 2 * MEMBER + 2 * PATTERN),
    ],
)
def test_a_call_that_reads_a_realm_counts_as_its_users_reads(world, admin, client, said, cost) -> None:
    """The owner of a realm may call it; all users share the functions that answer."""
    for number, topic in enumerate(("trial.a", "trial.b")):
        client.say(32, number + 1, {}, topic)

    call(admin, *said)

    assert (world.log.readers, world.log.spent) == ([(REALM, "admin")], cost)


def test_the_subscriptions_of_a_realm_are_read_up_to_a_limit(world, admin, client) -> None:
    """A session may have 1,000 subscriptions, and a realm any number of sessions."""
    patterns = [f"trial.{number}" for number in range(1_000)]
    subscribed(world, client, patterns)
    for number in range(MAXIMUM_SUBSCRIPTIONS // len(patterns)):
        listener = Listener(SessionId(number + 1), "source", "source")
        world.realm_sessions.enter(REALM, Member(client.connection, listener, START), expires_at=START)

    assert call(admin, "wamp.subscription.list") == "wamp.error.payload_size_exceeded"
    assert call(admin, "wamp.session.count")[0] == [MAXIMUM_SUBSCRIPTIONS // len(patterns) + 2]


def pages(client: Client) -> list[list[dict[str, Any]]]:
    """Return the pages of the details of all subscriptions."""
    found, place = [], [0, 0]
    while place is not None:
        (page,), keywords = call(client, "wamp.subscription.list", after=place)
        found.append(page)
        place = keywords["after"]
    return found


def subscribed(world: MemoryLive, client: Client, names: Iterable[str]) -> None:
    stored = world.sessions.find(client.connection)
    patterns = map(TopicPattern.parse, names)
    full = replace(stored.session, subscriptions={one.subscription_id: one for one in patterns})
    assert world.sessions.save(full, replacing=stored)


def test_a_subscription_that_ends_while_it_is_described_is_unknown(world, admin) -> None:
    """The session's record still has it, the directory does not."""
    subscribed(world, admin, [A.uri])

    assert call(admin, "wamp.subscription.get", A.subscription_id) == "wamp.error.no_such_subscription"


def test_the_details_of_any_number_of_subscriptions_are_listed_in_pages(world, admin) -> None:
    """Also of names whose characters JSON escapes, and with many sessions without subscriptions."""
    names = [f"trial.{number}{chr(1) * 240}" for number in range(1_000)]
    for start in range(0, len(names), 100):
        subscribed(world, Client(world, ConnectionId(f"many {start}")).open().join(), names[start : start + 100])
    subscribed(world, admin, ["trial.a", names[0]])
    others = [Client(world, ConnectionId(f"other {number}")).open().join() for number in range(300)]

    found = pages(admin)

    assert sorted(one["uri"] for page in found for one in page) == sorted([*names, "trial.a", names[0]])
    assert len(found) > 10
    assert found[0][0].keys() == {"id", "created", "uri", "match"}
    assert len(others) == 300


@pytest.mark.parametrize("place", [None, [], [0], [0, "a"], [0, 0, 0], [-1, 0]])
def test_a_page_behind_no_place_is_refused(admin, place) -> None:
    assert call(admin, "wamp.subscription.list", after=place) == "wamp.error.invalid_argument"


def test_the_details_of_a_subscription_have_its_creation_time(world, admin, client) -> None:
    client.say(32, 1, {}, "trial.a")
    world.moment += timedelta(minutes=5)
    admin.say(32, 1, {}, "trial.a")
    described = {"id": A.subscription_id, "created": "2026-11-21T20:00:00.000Z", "uri": "trial.a", "match": "exact"}

    assert result(admin, "wamp.subscription.get", A.subscription_id) == described
    assert call(admin, "wamp.subscription.get", B.subscription_id) == "wamp.error.no_such_subscription"
    assert call(admin, "wamp.subscription.get", "x") == "wamp.error.invalid_argument"


def test_every_session_may_look_up_a_subscription(world, admin, client) -> None:
    admin.say(32, 1, {"match": "prefix"}, "trial.")

    assert result(client, "wamp.subscription.lookup", "trial.", {"match": "prefix"}) == ALL.subscription_id
    assert result(client, "wamp.subscription.lookup", "trial.a") is None


def test_a_session_that_has_left_is_not_a_subscriber(world, admin, client) -> None:
    client.say(32, 1, {}, "trial.a")
    world.sessions.records[client.connection] = world.sessions.records[admin.connection]

    assert call(admin, "wamp.subscription.count_subscribers", A.subscription_id) == "wamp.error.no_such_subscription"


# --- sessions


def test_administrators_count_and_list_sessions_by_role(world, admin, client) -> None:
    assert result(admin, "wamp.session.count") == 2
    assert result(admin, "wamp.session.count", ["admin"]) == 1
    assert result(admin, "wamp.session.list") == sorted([admin.session, client.session])
    assert result(admin, "wamp.session.list", ["subscriber", "source"]) == [client.session]
    assert call(admin, "wamp.session.list", "admin") == "wamp.error.invalid_argument"
    assert call(admin, "wamp.session.list", [1]) == "wamp.error.invalid_argument"


def test_administrators_get_the_details_of_a_session(world, admin, client) -> None:
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


def test_a_session_without_a_record_does_not_exist(world, admin, client) -> None:
    del world.sessions.records[client.connection]

    assert call(admin, "wamp.session.get", client.session) == "wamp.error.no_such_session"


@pytest.mark.parametrize(
    ("given", "received"), [("enough", "enough"), ("half \ud83d", "half ?"), ("x" * 5_000, "x" * MAXIMUM_MESSAGE)]
)
def test_administrators_kill_sessions(world, admin, client, given, received) -> None:
    assert call(admin, "wamp.session.kill", client.session, message=given) == [[], {}]

    ((body,),) = [world.inbox.bodies[client.connection]]
    assert client.receive(body) == [[6, {"message": received}, "wamp.close.killed"]]


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"reason": "not a uri"}, "wamp.error.invalid_uri"),
        ({"reason": 7}, "wamp.error.invalid_argument"),
        ({"message": 7}, "wamp.error.invalid_argument"),
    ],
)
def test_invalid_reasons_of_a_kill_are_refused(world, admin, client, keywords, error) -> None:
    assert call(admin, "wamp.session.kill", client.session, **keywords) == error
    assert world.inbox.bodies == {}


def test_a_session_cannot_kill_itself(world, admin) -> None:
    assert call(admin, "wamp.session.kill", admin.session) == "wamp.error.no_such_session"


@pytest.mark.parametrize("procedure", ["wamp.session.list", "wamp.subscription.list", "signalbox.overview"])
def test_other_users_may_not_call_granted_procedures(world, client, procedure) -> None:
    assert call(client, procedure) == "wamp.error.not_authorized"


# --- calls for the function `overview`


def test_a_call_of_an_overview_procedure_is_passed_on_without_a_reply(world, client) -> None:
    assert client.say(48, 7, {}, "signalbox.topics", [], {"prefix": "trial."}, frame="frame") == []

    assert list(world.overview_calls.calls.values()) == [
        OverviewCall(
            connection=client.connection,
            item_id=ItemId("frame:0"),
            realm=REALM,
            user=UserName("subscriber"),
            at=world.moment,
            request=RequestId(7),
            procedure="signalbox.topics",
            payload=Payload((), {"prefix": "trial."}),
        )
    ]


def test_a_call_that_is_received_twice_is_passed_on_once(world, admin) -> None:
    for _ in range(2):
        assert admin.say(48, 7, {}, "signalbox.report", ["a.svg"], frame="frame") == []

    assert len(world.overview_calls.calls) == 1


def test_a_result_that_is_too_large_is_an_error(world, admin) -> None:
    for number in range(2**52, 2**52 + 8_000):
        listener = Listener(SessionId(number), "x", "source")
        world.realm_sessions.enter(REALM, Member(ConnectionId(str(number)), listener, START), expires_at=START)

    assert call(admin, "wamp.session.list") == "wamp.error.payload_size_exceeded"
