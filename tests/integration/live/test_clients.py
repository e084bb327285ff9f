"""Autobahn for Python and JavaScript, and wampy, unmodified, against the deployed stage."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.clients.live.client import LiveClient, RequestUnconfirmed
from signalbox.exchange.model.records import OrderBy
from signalbox.live.wamp.messages import Payload
from tests.integration.live.stage import TrialRealm, new_topic
from tests.integration.live.wamp_clients import IN_JAVASCRIPT, KINDS, Client, Refused, command_of, joined, started
from tests.integration.shared.tcp_proxy import tcp_proxy

pytestmark = pytest.mark.emulator

Start = Callable[..., Client]
# U+0000 marks binary data in WAMP's JSON, and no parser takes all that another one writes.
HOSTILE_BODIES = (
    r'"\u0000not base64!"',
    r'["\u0000\u0000\u0001 line"]',
    r'{"args": ["\u0000x"], "kwargs": {"k": "\u0000?"}}',
    r'{"\u0000key": 1, "__proto__": {"a": 1}}',
    r'"\ud800"',
    "NaN",
    "1e999",
    "9" * 400,
    "[" * 2_000 + "]" * 2_000,
    '{"args": {"0": 1}}',
)


@pytest.fixture(scope="module")
def publisher(place: TrialRealm) -> Iterator[LiveClient]:
    with place.publisher() as client:
        yield client


@pytest.fixture(params=KINDS, scope="module")
def start(request: pytest.FixtureRequest, place: TrialRealm) -> Iterator[Start]:
    """Starts joined clients of one kind; a running client of the same user is reused."""
    command, running = command_of(request.param), dict[str, Client]()
    with ExitStack() as stack:

        def begin(role: str = "subscriber", *, joins: bool = True, **changed: str | None) -> Client:
            if role in running and not changed:
                return running[role]
            login = place.login(role, **changed)
            client = joined(stack, command, login) if joins else stack.enter_context(started(command, login))
            return client if changed else running.setdefault(role, client)

        yield begin


def publish(client: LiveClient, topic: str, *values: object, **options: object) -> list[int]:
    return [client.publish(topic, Payload((value,)), options=options) for value in values]


def reason(client: Client) -> str:
    """Return the reason of a refused client."""
    found = client.wait_for(
        lambda: next((one for one in client.output if "left" in one or "failed" in one), None), "left"
    )
    return f"{found.get('left')} {found.get('text')} {found.get('failed')}"


# --- joining


def test_a_client_joins_with_its_ticket(start, place):
    found = start("source").wait_for_join()

    assert (found["joined"], found["role"]) == (place.users["source"][0], "source")


def test_a_client_joins_without_sending_its_secret(start, place):
    found = start("source", method="wampcra").wait_for_join()

    assert found["joined"] == place.users["source"][0]


@pytest.mark.parametrize(
    ("changed", "error"),
    [({"secret": "wrong"}, "wamp.error.authentication_failed"), ({"realm": "none.fifo"}, "wamp.error.no_such_realm")],
    ids=["ticket", "realm"],
)
def test_a_refused_client_gets_the_reason(start, changed, error):
    assert error in reason(start(joins=False, **changed))


# --- subscribing and publishing


@pytest.mark.parametrize("match", ["exact", "prefix", "wildcard"])
def test_topics_are_matched_by_each_policy(start, publisher, match):
    topic, client = new_topic(), start()
    patterns = {"exact": f"{topic}.a", "prefix": f"{topic}.b", "wildcard": f"{topic}..c"}

    client.ask("subscribe", name=topic, topic=patterns[match], options={"match": match})
    for end in ("a", "b.c", "b.d", "b"):
        publish(publisher, f"{topic}.{end}", end)

    found = {"exact": ["a"], "prefix": ["b.c", "b.d", "b"], "wildcard": ["b.c"]}[match]
    client.wait_for(lambda: len(client.events(topic)) >= len(found), f"{len(found)} events")
    assert sorted(client.values(topic)) == sorted(found)
    assert {one["topic"] for one in client.events(topic)} == {f"{topic}.{end}" for end in found}


def test_events_arrive_in_order_and_unchanged(start, publisher):
    topic, client = new_topic(), start()
    client.ask("subscribe", name=topic, topic=topic)

    payload = {"text": "ü\u0000", "number": 2**53 - 1, "none": None, "list": [1.5, True]}
    publish(publisher, topic, *range(20), payload)

    client.wait_for_values(topic, [*range(20), payload])


def test_a_publication_is_acknowledged_and_not_sent_to_its_publisher(start):
    topic, client = new_topic(), start("source")
    other = start()
    other.ask("subscribe", name=topic, topic=topic)
    client.ask("subscribe", name=f"own {topic}", topic=topic)

    publication = client.ask("publish", topic=topic, args=[1], kwargs={"a": 2})

    other.wait_for_values(topic, [1])
    assert isinstance(publication, int)
    assert [one["kwargs"] for one in other.events(topic)] == [{"a": 2}]
    client.ask("call", procedure="wamp.subscription.lookup", args=[topic])
    assert client.events(f"own {topic}") == []


def test_receivers_may_be_excluded_and_selected(start, place, publisher):
    topic, one, two = new_topic(), start(), start("admin")
    for client in (one, two):
        client.ask("subscribe", name=topic, topic=topic)
    sessions = [client.wait_for_join()["session"] for client in (one, two)]

    publish(publisher, topic, 1, exclude_authid=[place.users["admin"][0]])
    publish(publisher, topic, 2, eligible_authrole=["admin"])
    if all(sessions):
        publish(publisher, topic, 3, exclude=[sessions[0]])
        publish(publisher, topic, 4, eligible=[sessions[0]])
    publish(publisher, topic, 5)

    named = [4] if all(sessions) else []
    one.wait_for_values(topic, [1, *named, 5])
    two.wait_for_values(topic, [2, *([3] if named else []), 5])


def test_a_publisher_may_be_disclosed(start, place, publisher):
    topic, client = new_topic(), start()
    client.ask("subscribe", name=topic, topic=topic)

    publish(publisher, topic, 1, disclose_me=True)
    publish(publisher, topic, 2)

    client.wait_for_values(topic, [1, 2])
    assert [one["authid"] for one in client.events(topic)] == [place.users["source"][0], None]


def test_no_event_arrives_after_unsubscribing(start, publisher):
    topic, client = new_topic(), start()
    client.ask("subscribe", name=topic, topic=topic)
    publish(publisher, topic, 1)
    client.wait_for_values(topic, [1])

    client.ask("unsubscribe", name=topic)
    publish(publisher, topic, 2)
    client.ask("subscribe", name=f"again {topic}", topic=topic)
    publish(publisher, topic, 3)

    client.wait_for_values(f"again {topic}", [3])
    assert client.values(topic) == [1]


@pytest.mark.parametrize(
    ("do", "given", "error"),
    [
        ("subscribe", {"name": "it", "topic": "elsewhere"}, "wamp.error.not_authorized"),
        ("publish", {"topic": "elsewhere"}, "wamp.error.not_authorized"),
        ("call", {"procedure": "no.such.procedure"}, "wamp.error.no_such_procedure"),
        ("call", {"procedure": "wamp.session.kill", "args": [1]}, "wamp.error.not_authorized"),
        ("call", {"procedure": "wamp.subscription.get_events"}, "wamp.error.invalid_argument"),
    ],
    ids=lambda value: value.get("topic", value.get("procedure")) if isinstance(value, dict) else None,
)
def test_a_refused_request_is_an_error_and_the_session_continues(start, do, given, error):
    client = start()

    with pytest.raises(Refused) as refused:
        client.ask(do, **given)

    assert refused.value.error == error
    assert client.ask("subscribe", name="next", topic=new_topic()) > 0


@pytest.mark.parametrize("text", ["\0not base64!", "\0\0\1 line"])
def test_a_text_that_no_client_can_read_ends_its_publisher_alone(start, place, publisher, text):
    topic, client = new_topic(), start()
    client.ask("subscribe", name=topic, topic=topic)

    with pytest.raises(RequestUnconfirmed), place.publisher() as hostile:
        hostile.publish(topic, Payload((text,)))

    publish(publisher, topic, "last")
    client.wait_for_values(topic, ["last"])


def test_no_body_of_an_sqs_message_ends_a_subscriber(start, place, deployment):
    topic, client = new_topic(), start()
    client.ask("subscribe", name=topic, topic=topic)
    posts = [
        PublishRequest(topic, body, {"payload": "wamp"} if "args" in body else {}, f"{topic}-{number}")
        for number, body in enumerate([*HOSTILE_BODIES, '"last"'])
    ]

    list(client_of(deployment).publish_all(place.realm, posts, order_by=OrderBy.TOPIC))

    client.wait_for(lambda: client.values(topic)[-1:] == ["last"], "the last event")
    assert len(client.values(topic)) == len(posts)
    assert client.ask("subscribe", name=f"next {topic}", topic=f"{topic}.next") > 0


# --- the past


def test_the_retained_event_arrives_first(start, publisher):
    topic, client = new_topic(), start()
    publish(publisher, topic, "first", "latest", retain=True)
    publish(publisher, topic, "not retained")

    client.ask("subscribe", name=topic, topic=topic, options={"get_retained": True})
    publish(publisher, topic, "live")

    client.wait_for_values(topic, ["latest", "live"])
    assert [one["retained"] for one in client.events(topic)] == [True, False]


def test_past_events_can_be_requested(start, publisher):
    topic, client = new_topic(), start()
    publications = publish(publisher, topic, *range(6))
    subscription = client.ask("subscribe", name=topic, topic=topic)

    def asked(**query: object) -> list[Any]:
        found = client.ask("call", procedure="wamp.subscription.get_events", args=[subscription], kwargs=query)
        return [event["args"][0] for event in found["args"]]

    assert asked() == list(range(6))
    assert asked(limit=2, reverse=True) == [5, 4]
    assert asked(after_publication=publications[3]) == [4, 5]
    assert asked(before_publication=publications[1]) == [0]


# Autobahn for Python lets applications pass no options of others: they call the procedure, as in the test above.
@pytest.mark.parametrize("start", IN_JAVASCRIPT, indirect=True)
def test_a_subscription_may_start_with_past_events(start, publisher):
    topic, client = new_topic(), start()
    publish(publisher, topic, *range(6))

    client.ask("subscribe", name=topic, topic=topic, options={"_history": {"last": 3}})
    # The newest events are those of the moment when the log is read, after SUBSCRIBED.
    client.wait_for_values(topic, [3, 4, 5])
    publish(publisher, topic, 6)

    client.wait_for_values(topic, [3, 4, 5, 6])


# --- lost connections


def test_a_client_reconnects_after_a_cut_connection(start, place, publisher):
    topic = new_topic()
    with tcp_proxy(place.url) as line:
        client = start(url=line.url(place.url))
        client.ask("subscribe", name=topic, topic=topic)
        publish(publisher, topic, 1)
        client.wait_for_values(topic, [1])

        line.cut()
        client.wait_for_join(2)
        client.ask("call", procedure="wamp.subscription.lookup", args=[topic])
        publish(publisher, topic, 2)

        client.wait_for_values(topic, [1, 2])


# --- batches


def test_autobahn_receives_batches_in_order(place, deployment):
    """`ApplicationRunner` offers them; API Gateway charges for each WebSocket message, so they are preferred."""
    topic = new_topic()
    posts = [PublishRequest(topic, json.dumps(number), {}, f"{topic}-{number}") for number in range(100)]
    with ExitStack() as stack:
        administrator = client_of(deployment)
        client = joined(stack, command_of("autobahn-runner"), place.login("subscriber", topic=topic))
        list(administrator.publish_all(place.realm, posts, order_by=OrderBy.TOPIC))

        def values() -> list[object]:
            return [one["value"] for one in client.output if "value" in one]

        client.wait_for(lambda: len(values()) >= len(posts), "all events")
        assert client.wait_for_join()["by"] == "json.batched"
        assert values() == list(range(len(posts)))
