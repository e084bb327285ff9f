"""The session machine as a whole: its table, the end of sessions, and properties of every sequence of messages."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.live.model.effects import AnswerCall, Attach, Close, Detach, Distribute, Effect, Enter, Leave, Post
from signalbox.live.model.state import Elapsed, FrameId, Killed, Lost, Received, RightsChanged, SessionState
from signalbox.live.session.machine import OTHERWISE, RULES, rule
from signalbox.live.wamp import messages, uris
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.codec import TYPE_CODES, MalformedFrame, parse
from signalbox.live.wamp.messages import (
    Abort,
    Authenticate,
    Call,
    Cancel,
    Dictionary,
    Goodbye,
    Hello,
    Message,
    Payload,
    Publish,
    Register,
    RequestId,
    Subscribe,
    SubscriptionId,
    Unregister,
    Unsubscribe,
)
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.unit.live.session.stage import (
    CLOSED_REALM,
    HELLO,
    JOE,
    OPEN_REALM,
    REALM,
    SECRET,
    SESSION,
    WITHOUT_RIGHTS,
    Connection,
    joined,
)
from tests.unit.live.wamp.vectors import READ, text_of

A_TOPIC = TopicPattern.parse("open.a")
KILLED = Killed("wamp.close.killed", "by root")
CLIENTS = Listener(SESSION, "joe", "subscriber")


def violation(text: str) -> list[Effect]:
    return [Post(Abort({"message": text}, uris.PROTOCOL_VIOLATION)), Close()]


# --- the table


def test_every_state_has_rules() -> None:
    assert list(RULES) == list(OTHERWISE) == list(SessionState)


def test_closed_is_final_and_every_state_is_reachable() -> None:
    leads_to = {
        state: set[SessionState]().union(*(one.leads_to for one in RULES[state].values())) for state in SessionState
    }

    assert leads_to == {
        SessionState.OPEN: {SessionState.OPEN, SessionState.CHALLENGED, SessionState.JOINED, SessionState.CLOSED},
        SessionState.CHALLENGED: {SessionState.CHALLENGED, SessionState.JOINED, SessionState.CLOSED},
        SessionState.JOINED: {SessionState.JOINED, SessionState.CLOSING, SessionState.CLOSED},
        SessionState.CLOSING: {SessionState.CLOSING, SessionState.CLOSED},
        SessionState.CLOSED: set(),
    }


def in_state(state: SessionState) -> Connection:
    connection = joined() if state in (SessionState.JOINED, SessionState.CLOSING) else Connection()
    if state is SessionState.CHALLENGED:
        connection.receive(Hello(REALM, {"authid": "joe", "authmethods": ["ticket"]}))
    if state is SessionState.CLOSING:
        connection.receive(KILLED)
    if state is SessionState.CLOSED:
        connection.receive(Lost())
    assert connection.session.state is state
    return connection


ROUTERS = ["WELCOME", "CHALLENGE", "PUBLISHED", "SUBSCRIBED", "UNSUBSCRIBED", "EVENT", "RESULT", "REGISTERED"]
REFUSED = {
    SessionState.OPEN: [
        *ROUTERS,
        "AUTHENTICATE",
        "GOODBYE",
        "ERROR",
        "SUBSCRIBE",
        "PUBLISH",
        "CALL",
        "YIELD",
        "CANCEL",
    ],
    SessionState.CHALLENGED: [*ROUTERS, "HELLO", "GOODBYE", "ERROR", "SUBSCRIBE", "PUBLISH", "CALL", "UNSUBSCRIBE"],
    SessionState.JOINED: [
        *ROUTERS,
        "HELLO",
        "AUTHENTICATE",
        "ERROR",
        "YIELD",
        "UNREGISTERED",
        "INVOCATION",
        "INTERRUPT",
    ],
}


@pytest.mark.parametrize(("state", "name"), [(state, name) for state, names in REFUSED.items() for name in names])
def test_a_message_that_is_not_allowed_is_a_protocol_violation(state: SessionState, name: str) -> None:
    """Basic profile, «Protocol Errors»."""
    connection = in_state(state)

    effects = connection.receive(parse(text_of(name))).effects

    leave = [Leave(CLIENTS_AS_ANONYMOUS, frozenset())] if state is SessionState.JOINED else []
    assert list(effects) == leave + violation(f"received {name} message in state {state}")
    assert connection.session.state is SessionState.CLOSED


CLIENTS_AS_ANONYMOUS = Listener(SESSION, "joe", "subscriber")


@pytest.mark.parametrize("state", [SessionState.OPEN, SessionState.CHALLENGED, SessionState.JOINED])
def test_a_malformed_message_is_a_protocol_violation(state: SessionState) -> None:
    assert list(in_state(state).receive(MalformedFrame("expected JSON")).effects)[-2:] == violation("expected JSON")


# --- ends


def test_goodbye_is_answered_and_the_connection_closed() -> None:
    connection = joined()
    connection.receive(Subscribe(RequestId(1), {}, "open.a"))

    outcome = connection.receive(Goodbye({}, "wamp.close.close_realm"))

    assert list(outcome.effects) == [
        Leave(CLIENTS, frozenset({A_TOPIC})),
        Post(Goodbye({}, "wamp.close.goodbye_and_out")),
        Close(),
    ]
    assert outcome.session.state is SessionState.CLOSED
    assert outcome.session.subscriptions == {}


@pytest.mark.parametrize("state", [state for state in SessionState if state is not SessionState.CLOSED])
def test_abort_is_not_answered(state: SessionState) -> None:
    connection = in_state(state)

    effects = connection.receive(Abort({}, "any.reason")).effects

    assert [effect for effect in effects if not isinstance(effect, Leave)] == [Close()]
    assert connection.session.state is SessionState.CLOSED


def test_a_lost_connection_gets_no_message() -> None:
    connection = joined()

    assert list(connection.receive(Lost()).effects) == [Leave(CLIENTS, frozenset()), Close()]
    assert connection.receive(Lost()).effects == ()


def test_a_killed_session_gets_goodbye_and_its_answer_is_awaited() -> None:
    connection = joined()
    connection.receive(Subscribe(RequestId(1), {}, "open.a"))

    assert list(connection.receive(KILLED).effects) == [
        Leave(CLIENTS, frozenset({A_TOPIC})),
        Post(Goodbye({"message": "by root"}, "wamp.close.killed")),
    ]
    assert connection.receive(Publish(RequestId(2), {"acknowledge": True}, "open.a")).effects == ()
    assert connection.receive(KILLED).effects == ()
    assert connection.receive(Elapsed()).effects == ()
    assert connection.receive(Goodbye({}, "wamp.close.goodbye_and_out")).effects == (Close(),)


def test_a_client_that_does_not_answer_goodbye_is_closed_at_the_deadline() -> None:
    connection = in_state(SessionState.CLOSING)
    connection.wait(10)

    assert connection.receive(Elapsed()).effects == (Close(),)
    assert connection.receive(Elapsed()).effects == ()


@pytest.mark.parametrize("state", [SessionState.OPEN, SessionState.CHALLENGED])
def test_a_session_that_is_killed_before_it_joined_is_aborted(state: SessionState) -> None:
    assert list(in_state(state).receive(KILLED).effects) == [
        Post(Abort({"message": "by root"}, "wamp.close.killed")),
        Close(),
    ]


@pytest.mark.parametrize("state", [SessionState.OPEN, SessionState.CHALLENGED])
def test_a_connection_that_does_not_join_is_closed(state: SessionState) -> None:
    connection = in_state(state)

    assert connection.receive(Elapsed()).effects == ()
    assert connection.receive(RightsChanged()).effects == ()
    connection.wait(10)
    abort = Post(Abort({"message": "not joined within 10 s"}, uris.TIMEOUT))
    assert connection.receive(Elapsed()).effects == (abort, Close())


def test_a_joined_session_has_no_deadline() -> None:
    connection = joined()
    connection.wait(7_000)

    assert connection.receive(Elapsed()).effects == ()
    assert connection.session.state is SessionState.JOINED


def test_a_connection_that_is_lost_after_the_deadline_gets_no_abort() -> None:
    connection = Connection()
    connection.wait(10)

    assert connection.receive(Lost()).effects == (Close(),)


# --- frames that come again


def test_the_newest_frame_returns_its_effects_again_and_older_ones_return_none() -> None:
    connection = joined()
    first, second = Subscribe(RequestId(1), {}, "open.a"), Goodbye({}, "x")
    connection.context = replace(connection.context, frame=FrameId("1"))
    subscribed = connection.receive(first)
    assert connection.receive(first) == subscribed
    connection.context = replace(connection.context, frame=FrameId("2"))
    gone = connection.receive(second)

    assert connection.receive(second) == gone
    connection.context = replace(connection.context, frame=FrameId("1"))
    assert connection.receive(first).effects == ()
    assert connection.session == gone.session


def test_only_as_many_frames_are_kept_as_can_be_received_again() -> None:
    connection = joined()
    for number in range(50):
        connection.context = replace(connection.context, frame=FrameId(str(number)))
        connection.receive(Cancel(RequestId(1), {}))

    assert connection.session.frames == tuple(FrameId(str(number)) for number in range(30, 50))


# --- laws

requests = st.integers(0, 3).map(RequestId)
topics = st.sampled_from(["open.a", "open.b", "open.", "closed", "a b", "", "wamp.x"])
booleans = st.sampled_from([True, False, 1])
subscribe_options = st.fixed_dictionaries(
    {}, optional={"match": st.sampled_from(["exact", "prefix", "wildcard", "?"]), "get_retained": booleans}
)
publish_options = st.fixed_dictionaries({}, optional={"acknowledge": booleans, "exclude": st.just("x")})
policies = st.sampled_from(MatchPolicy)
subscriptions = st.builds(lambda uri, match: TopicPattern(match, uri).subscription_id, topics, policies)
procedures = st.sampled_from(["wamp.subscription.get_events", "wamp.session.kill", "my.own", "", "a b"])
hellos = st.builds(
    lambda methods: Hello(REALM, {"authid": "joe", "authmethods": methods}),
    st.lists(st.sampled_from(["anonymous", "ticket", "wampcra"]), max_size=2),
)
nothing: Dictionary = {}
asked = (
    st.builds(Subscribe, requests, subscribe_options, topics)
    | st.builds(Unsubscribe, requests, subscriptions)
    | st.builds(Publish, requests, publish_options, topics)
    | st.builds(Call, requests, st.just(nothing), procedures)
    | st.builds(Register, requests, st.just(nothing), topics)
    | st.builds(Unregister, requests, st.integers(0, 3))
)
others = st.sampled_from(
    [
        *(parse(form.texts[-1]) for form in READ),
        Authenticate(SECRET, {}),
        MalformedFrame("expected JSON"),
        Elapsed(),
        Lost(),
        KILLED,
        RightsChanged(),
    ]
)
# Mostly what may be said, so that sessions live for a while.
heard_things: st.SearchStrategy[Received] = st.one_of(hellos, asked, asked, asked, asked, others)
situations = st.tuples(
    heard_things, st.sampled_from([JOE, JOE, WITHOUT_RIGHTS, None]), st.sampled_from([OPEN_REALM, CLOSED_REALM, None])
)
REPLIES = messages.Subscribed | messages.Unsubscribed | messages.Error | messages.Published | messages.Result


def replies_to(request: Message, effects: tuple[Effect, ...]) -> int:
    """Return the number of replies to a request, posted by the session or by another function."""
    number = 0
    for effect in effects:
        if isinstance(effect, Distribute | AnswerCall):
            number += effect.request is not None
        elif isinstance(effect, Post) and isinstance(effect.message, REPLIES):
            is_for_it = effect.message.request == getattr(request, "request", None)
            if isinstance(effect.message, messages.Error):
                is_for_it = is_for_it and effect.message.request_type == TYPE_CODES[type(request)]
            number += is_for_it
    return number


@given(st.lists(situations, max_size=25))
def test_no_sequence_of_messages_leaves_the_table_or_outlives_its_end(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    connection, all_effects = Connection(), list[Effect]()
    for heard, user, realm in steps:
        before = connection.session
        connection.context = replace(connection.context, account=user, realm=realm)
        outcome = connection.receive(heard)

        effective = Killed("", "") if before.state is SessionState.JOINED and connection.context.is_refused else heard
        assert outcome.session.state in rule(before.state, effective).leads_to
        assert before.state is not SessionState.CLOSED or outcome.effects == ()
        all_effects += outcome.effects

    kinds = Counter(type(effect) for effect in all_effects)
    ends = [one for one in all_effects if isinstance(one, Post) and isinstance(one.message, Abort | Goodbye)]
    assert kinds[Close] <= 1
    assert kinds[Leave] <= kinds[Enter] <= 1
    assert len(ends) <= 1
    if Close() in all_effects:
        assert all_effects[-1] == Close()


@given(st.lists(st.tuples(asked, st.sampled_from([JOE, WITHOUT_RIGHTS])), max_size=12))
def test_every_request_has_one_reply_and_a_publication_one_if_requested(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    connection = joined()
    for request, user in steps:
        connection.context = replace(connection.context, account=user)
        outcome = connection.receive(request)

        is_wanted = not isinstance(request, Publish) or request.options.get("acknowledge") is True
        assert replies_to(request, outcome.effects) == (1 if is_wanted else 0)
        assert outcome.session.state is SessionState.JOINED


@given(st.lists(st.tuples(heard_things, st.sampled_from([JOE, WITHOUT_RIGHTS])), max_size=25))
def test_the_attached_patterns_are_the_subscriptions_of_the_session(steps: list[tuple]) -> None:  # type: ignore[type-arg]
    """No pattern is attached before its SUBSCRIBED is in the outbox, or detached after its UNSUBSCRIBED."""
    connection, attached, confirmed = joined(), set[SubscriptionId](), set[SubscriptionId]()
    for heard, user in steps:
        connection.context = replace(connection.context, account=user)
        for effect in connection.receive(heard).effects:
            if isinstance(effect, Post) and isinstance(effect.message, messages.Subscribed):
                confirmed.add(effect.message.subscription)
            if isinstance(effect, Attach):
                assert effect.pattern.subscription_id in confirmed
                attached.add(effect.pattern.subscription_id)
            if isinstance(effect, Detach):
                attached.remove(effect.pattern.subscription_id)
            if isinstance(effect, Leave):
                attached -= {pattern.subscription_id for pattern in effect.subscriptions}

        assert attached == connection.session.subscriptions.keys()
        assert all(pattern.subscription_id == one for one, pattern in connection.session.subscriptions.items())


def test_the_first_message_of_every_session_is_welcome_challenge_or_abort() -> None:
    for form in READ:
        effects = Connection().receive(parse(form.texts[-1])).effects

        assert not effects or isinstance(effects[0], Close | Post)
        assert not isinstance(effects[0], Post) or isinstance(effects[0].message, messages.Welcome | Abort)


def test_payloads_pass_through() -> None:
    payload = Payload(("\0aGVsbG8=", 1.5, None), {"k": [1]})
    (distribute,) = joined().receive(Publish(RequestId(1), {}, "open.a", payload)).effects

    assert isinstance(distribute, Distribute)
    assert distribute.payload is payload
    assert HELLO.realm == REALM
