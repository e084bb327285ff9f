"""The requests of joined sessions and their replies."""

from dataclasses import replace

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.model.effects import AnswerCall, Attach, Detach, Distribute, Drop, Leave, Post
from signalbox.live.model.state import KILLED, NOT_ADMITTED, PastRefused, RightsChanged, SessionState
from signalbox.live.session.requests import (
    MAXIMUM_PUBLISH_BYTES,
    MAXIMUM_SUBSCRIPTIONS,
    MAXIMUM_TOPIC_BYTES,
    NO_ROOM,
    PAST_REFUSAL,
)
from signalbox.live.wamp import uris
from signalbox.live.wamp.audience import UNRESTRICTED, Audience, Listener
from signalbox.live.wamp.messages import (
    Call,
    Cancel,
    Dictionary,
    Error,
    Goodbye,
    Payload,
    Publish,
    Register,
    RequestId,
    Subscribe,
    Subscribed,
    SubscriptionId,
    Unregister,
    Unsubscribe,
    Unsubscribed,
)
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.permissions import Role
from tests.unit.live.session.stage import (
    ADMIN,
    JOE,
    PUBLICATION,
    SESSION,
    WITHOUT_RIGHTS,
    Connection,
    account,
    joined,
    open_to,
)

ONE = RequestId(713845233)
NO_GRANT = (
    "this user may not subscribe to every topic that {} matches; an administrator may add the right with "
    "`signalbox grant add`"
)
A = TopicPattern.parse("open.a")


def error(connection: Connection, request: object) -> tuple[int, str, str]:
    """Return the refused message type, the error URI and its text; there is no other effect."""
    (effect,) = connection.receive(request).effects  # type: ignore[arg-type] # any request
    assert isinstance(effect, Post)
    assert isinstance(effect.message, Error)
    assert effect.message.request == ONE
    return effect.message.request_type, effect.message.error, str(*effect.message.payload.arguments)


def subscribe(topic: str = "open.a", **options: object) -> Subscribe:
    return Subscribe(ONE, options, topic)


def publish(topic: str = "open.a", **options: object) -> Publish:
    return Publish(ONE, options, topic, Payload(("Hello, world!",)))


def test_subscribed_is_posted_before_the_subscription_is_attached() -> None:
    connection = joined()

    outcome = connection.receive(subscribe())

    assert list(outcome.effects) == [
        Post(Subscribed(ONE, A.subscription_id)),
        Attach(A, get_retained=False, history=None),
    ]
    assert outcome.session.subscriptions == {A.subscription_id: A}


def test_requested_past_events_are_passed_on() -> None:
    pattern = TopicPattern.parse("open.", MatchPolicy.PREFIX)
    effects = joined().receive(subscribe("open.", match="prefix", get_retained=True, _history={"last": 3})).effects

    assert effects[-1] == Attach(pattern, get_retained=True, history=LastEvents(3))


def test_the_same_topic_again_is_the_same_subscription() -> None:
    """Basic profile, «Subscribing»: the existing subscription's id."""
    connection = joined()
    connection.receive(subscribe())

    assert connection.replies(Subscribe(RequestId(2), {}, "open.a")) == [Subscribed(RequestId(2), A.subscription_id)]
    assert len(connection.session.subscriptions) == 1


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (subscribe("a b"), (32, uris.INVALID_URI, "topic 'a b' has white space")),
        (subscribe("a..b"), (32, uris.INVALID_URI, "topic 'a..b' has an empty component, as only patterns may")),
        (
            subscribe(match="regex"),
            (32, uris.INVALID_ARGUMENT, "options.match: expected one of exact, prefix, wildcard, not 'regex'"),
        ),
        (
            subscribe("closed"),
            (32, uris.NOT_AUTHORIZED, NO_GRANT.format("'closed'")),
        ),
        (
            subscribe("", match="prefix"),
            (32, uris.NOT_AUTHORIZED, NO_GRANT.format("''")),
        ),
        (
            Unsubscribe(ONE, SubscriptionId(5)),
            (34, uris.NO_SUCH_SUBSCRIPTION, "this session has no such subscription"),
        ),
        (
            publish("closed", acknowledge=True),
            (16, uris.NOT_AUTHORIZED, "this user may not publish to this topic"),
        ),
        (
            publish("wamp.a", acknowledge=True),
            (16, uris.INVALID_URI, "topic 'wamp.a' begins with 'wamp', which is reserved for WAMP"),
        ),
        (
            publish(acknowledge=True, exclude="me"),
            (16, uris.INVALID_ARGUMENT, "options.exclude: expected a list of session ids, not 'me'"),
        ),
        (Call(ONE, {}, "com.myapp.add"), (48, uris.NO_SUCH_PROCEDURE, "there is no such procedure")),
        (Call(ONE, {}, ""), (48, uris.INVALID_URI, "procedure '' has an empty component, as only patterns may")),
        (Call(ONE, {}, "wamp.session.kill"), (48, uris.NOT_AUTHORIZED, "this user may not call this procedure")),
        (Register(ONE, {}, "com.myapp.add"), (64, uris.NOT_AUTHORIZED, "procedures cannot be registered here")),
        (Unregister(ONE, 3), (66, uris.NO_SUCH_REGISTRATION, "procedures cannot be registered here")),
    ],
)
def test_refused_requests_get_the_error_of_the_specification(request_: object, expected: tuple[int, str, str]) -> None:
    assert error(joined(), request_) == expected


@pytest.mark.parametrize(
    ("user_agent", "features"),
    [
        ("", {"subscription_revocation"}),
        ("", {PAST_REFUSAL}),
        ("AutobahnPython/25.6.1", {"subscription_revocation", PAST_REFUSAL}),
    ],
)
def test_too_many_past_events_end_their_subscription_or_the_session_of_a_client_that_does_not_go_on(
    user_agent: str, features: set[str]
) -> None:
    refused = PastRefused(A.subscription_id, "too many")
    connection, other = joined(), joined(user_agent=user_agent)
    for one, announced in ((connection, {"subscription_revocation", PAST_REFUSAL}), (other, features)):
        one.session = replace(one.session, features=frozenset(announced))
        one.receive(subscribe())

    ended, again, over = connection.receive(refused), connection.receive(refused), other.receive(refused)

    why = {"subscription": A.subscription_id, "reason": uris.PAYLOAD_SIZE_EXCEEDED, "message": "too many"}
    assert ended.effects == (Detach(A), Post(Unsubscribed(RequestId(0), why), ends=A.subscription_id))
    assert (ended.session.state, ended.session.subscriptions, again.effects) == (SessionState.JOINED, {}, ())
    assert over.effects[1:] == (Post(Goodbye({"message": "too many"}, uris.PAYLOAD_SIZE_EXCEEDED)),)
    assert (over.session.state, over.session.subscriptions) == (SessionState.CLOSING, {})


@pytest.mark.parametrize("request_", [subscribe(), publish(acknowledge=True), Call(ONE, {}, "wamp.session.list")])
def test_current_rights_decide(request_: object) -> None:
    connection = joined()
    connection.context = replace(connection.context, account=WITHOUT_RIGHTS)

    assert error(connection, request_)[1] == uris.NOT_AUTHORIZED


@pytest.mark.parametrize("received", [subscribe(), publish(), Call(ONE, {}, "wamp.session.list"), RightsChanged()])
def test_a_session_that_its_realm_does_not_admit_any_more_ends_with_its_next_request(received: object) -> None:
    connection = joined()
    connection.receive(subscribe())
    connection.context = replace(connection.context, account=None)

    outcome = connection.receive(received)

    leave, goodbye = outcome.effects
    assert isinstance(leave, Leave)
    assert leave.subscriptions == {A}
    assert goodbye == Post(Goodbye({"message": NOT_ADMITTED}, KILLED))
    assert outcome.session.state is SessionState.CLOSING


def test_the_topics_of_a_session_s_subscriptions_are_limited_in_bytes() -> None:
    connection, topic = joined(), "open." + "é" * 95
    for number in range(MAXIMUM_TOPIC_BYTES // 200):
        assert connection.receive(subscribe(f"{topic}{number:05}")).session.subscriptions

    assert error(connection, subscribe("open.more")) == (
        32,
        uris.TOO_MANY_SUBSCRIPTIONS,
        "the topics of a session's subscriptions have 40000 bytes at most: subscribe to patterns",
    )


def test_the_number_of_subscriptions_is_limited() -> None:
    connection = joined()
    for number in range(MAXIMUM_SUBSCRIPTIONS):
        connection.receive(subscribe(f"open.{number}"))

    assert error(connection, subscribe("open.more")) == (
        32,
        uris.TOO_MANY_SUBSCRIPTIONS,
        "a session has 1000 subscriptions at most: subscribe to patterns",
    )
    assert len(connection.receive(subscribe("open.0")).effects) == 2


@pytest.mark.parametrize(
    ("most", "components", "limit"),
    [(100, 5, "100 prefixes and wildcards at most"), (10, 100, "1000 components at most")],
)
def test_the_prefixes_and_wildcards_of_a_session_are_limited(most: int, components: int, limit: str) -> None:
    connection = joined()
    rest = ".a" * (components - 3) + "."
    for number in range(most):
        connection.receive(subscribe(f"open.{number}{rest}", match="wildcard" if number % 2 else "prefix"))

    _, refusal, text = error(connection, subscribe(f"open.more{rest}", match="prefix"))

    assert refusal == uris.TOO_MANY_SUBSCRIPTIONS
    assert limit in text
    assert len(connection.receive(subscribe(f"open.0{rest}", match="prefix")).effects) == 2
    assert len(connection.receive(subscribe("open.more")).effects) == 2


@pytest.mark.parametrize("match", ["prefix", "wildcard"])
def test_a_pattern_for_which_the_realm_has_no_room_is_refused(match: str) -> None:
    connection = joined()
    connection.context = replace(connection.context, room=5)
    assert len(connection.receive(subscribe("open.a.b.c.", match=match)).effects) == 2

    _, refusal, text = error(connection, subscribe("open.a.b.c.d.", match=match))

    assert (refusal, text) == (uris.TOO_MANY_SUBSCRIPTIONS, NO_ROOM)
    connection.context = replace(connection.context, room=3)
    assert error(connection, subscribe("open.", match=match))[1] == uris.TOO_MANY_SUBSCRIPTIONS
    assert len(connection.receive(subscribe("open.a.b.c.", match=match)).effects) == 2
    assert len(connection.receive(subscribe("open.a.b.c.d")).effects) == 2


def test_unsubscribing_detaches_before_the_reply() -> None:
    connection = joined()
    connection.receive(subscribe())

    outcome = connection.receive(Unsubscribe(ONE, A.subscription_id))

    assert list(outcome.effects) == [Detach(A), Post(Unsubscribed(ONE), ends=A.subscription_id)]
    assert outcome.session.subscriptions == {}
    assert error(connection, Unsubscribe(ONE, A.subscription_id))[1] == uris.NO_SUCH_SUBSCRIPTION


def test_an_unacknowledged_publication_has_no_reply() -> None:
    assert joined().receive(publish()).effects == (
        Distribute(
            PUBLICATION,
            RoutingKey("open.a"),
            Payload(("Hello, world!",)),
            Audience(excluded_publisher=SESSION),
            disclosed=None,
            is_retained=False,
            request=None,
        ),
    )


def test_a_publication_may_use_every_option() -> None:
    wanted = publish(acknowledge=True, exclude_me=False, disclose_me=True, retain=True)

    assert joined().receive(wanted).effects == (
        Distribute(
            PUBLICATION,
            RoutingKey("open.a"),
            Payload(("Hello, world!",)),
            UNRESTRICTED,
            disclosed=Listener(SESSION, "joe", "subscriber"),
            is_retained=True,
            request=ONE,
        ),
    )


@pytest.mark.parametrize("options", [{}, {"acknowledge": False}, {"acknowledge": 1}], ids=["unsaid", "no", "not a yes"])
def test_a_publication_without_acknowledgement_gets_no_error(options: Dictionary) -> None:
    """Basic profile, «Publish ERROR»: only with acknowledge. It is counted."""
    assert joined().receive(publish("a b", **options)).effects == (Drop(uris.INVALID_URI),)


def test_a_publication_that_is_too_large_gets_the_limit_and_the_alternative() -> None:
    connection = joined()
    connection.context = replace(connection.context, size_bytes=MAXIMUM_PUBLISH_BYTES)
    assert isinstance(connection.receive(publish()).effects[0], Distribute)

    connection.context = replace(connection.context, size_bytes=MAXIMUM_PUBLISH_BYTES + 1)

    assert error(connection, publish(acknowledge=True)) == (
        16,
        uris.PAYLOAD_SIZE_EXCEEDED,
        "129025 bytes; at most 129024 are allowed in a message; publish what is larger by SQS",
    )


def test_permitted_calls_are_answered_by_an_effect() -> None:
    payload = Payload((A.subscription_id,), {"limit": 10})

    assert joined().receive(Call(ONE, {}, "wamp.subscription.get_events", payload)).effects == (
        AnswerCall(ONE, "wamp.subscription.get_events", payload),
    )


def test_administrators_may_call_granted_procedures() -> None:
    assert joined(ADMIN).receive(Call(ONE, {}, "wamp.session.list")).effects == (
        AnswerCall(ONE, "wamp.session.list", Payload()),
    )


def test_cancel_is_ignored_and_the_call_is_answered() -> None:
    assert joined().receive(Cancel(ONE, {})).effects == ()


REVOKED = Unsubscribed(RequestId(0), {"subscription": A.subscription_id, "reason": uris.NOT_AUTHORIZED})


@pytest.mark.parametrize(
    ("user_agent", "expected"),
    [("", [Post(REVOKED, ends=A.subscription_id)]), ("AutobahnPython/26.10.2", [])],
    ids=["announced it", "announced it, and would drop the connection"],
)
def test_a_revocation_is_reported_to_clients_that_accept_it(user_agent: str, expected: list[Post]) -> None:
    connection = joined(user_agent=user_agent)
    connection.receive(subscribe())
    connection.receive(subscribe("open.kept"))
    connection.context = replace(connection.context, account=account("joe", Role.SUBSCRIBER, *open_to("open.kept")))

    outcome = connection.receive(RightsChanged())

    assert list(outcome.effects) == [Detach(A), *expected]
    assert list(outcome.session.subscriptions.values()) == [TopicPattern.parse("open.kept")]


def test_clients_without_the_revocation_feature_are_not_notified() -> None:
    """Advanced profile, «Subscription Revocation»: MUST NOT."""
    connection = joined()
    connection.session = replace(connection.session, features=frozenset())
    connection.receive(subscribe())
    connection.context = replace(connection.context, account=WITHOUT_RIGHTS)

    assert connection.receive(RightsChanged()).effects == (Detach(A),)


def test_rights_that_still_cover_all_subscriptions_change_nothing() -> None:
    connection = joined()
    connection.receive(subscribe())
    connection.context = replace(connection.context, account=JOE)

    assert connection.receive(RightsChanged()).effects == ()
