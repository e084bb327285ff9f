"""Sessions of token users: how they join, renew their tokens in place, and end with them."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.records import LiveSettings
from signalbox.live.identity.tokens import TokenIdentity, TokenProblem, TokenRefusal, VerifiedToken
from signalbox.live.identity.trust import trust_of
from signalbox.live.model.state import MAXIMUM_TIMER, ConnectionId, Elapsed, RightsChanged, SessionState
from signalbox.live.session.inbox import frame_body
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Right, Role
from tests.fakes.live import REALM, START, MemoryLive
from tests.unit.live.session.conversation import ROLES, Client

NAME, TOKEN, OTHER = "ann@lab", "eyJ.ann.1", "eyJ.ann.2"
ISSUER = Issuer("https://id.example.org", "signalbox", "lab")
ENDS_AT = START + timedelta(hours=1)
SECOND = timedelta(seconds=1)
TRUST = trust_of(ISSUER, [ISSUER])
IDENTITY = TokenIdentity(ISSUER.url, Role.SUBSCRIBER, ("imaging",), ENDS_AT - 60 * SECOND, 60, TRUST)
VALID = VerifiedToken(NAME, "lab", IDENTITY, START)
RENEW = "signalbox.session.renew"
A = TopicPattern.parse("trial.a")


@pytest.fixture
def world() -> MemoryLive:
    world = MemoryLive()
    world.declare(LiveSettings(issuers=(ISSUER,)))
    world.grant(NAME, Right.READ, Right.WRITE)
    world.tokens.results[TOKEN] = VALID
    return world


@pytest.fixture
def client(world: MemoryLive) -> Client:
    return Client(world).open()


def greet(client: Client, authid: str | None = None) -> None:
    details = {"authmethods": ["ticket"], "roles": ROLES} | ({} if authid is None else {"authid": authid})
    assert client.say(1, REALM, details) == [[4, "ticket", {}]]


def joined(client: Client, token: str = TOKEN) -> Client:
    greet(client)
    ((kind, client.session, _),) = client.say(5, token, {})
    assert kind == 2
    return client


def renewal(client: Client, *arguments: object) -> list[object]:
    return client.say(48, 9, {}, RENEW, list(arguments))


def state(world: MemoryLive) -> SessionState:
    return world.sessions.records["c1"].session.state


@pytest.mark.parametrize("authid", [None, "", NAME])
def test_a_token_names_its_user(world, client, authid) -> None:
    greet(client, authid)

    ((kind, _, details),) = client.say(5, TOKEN, {})

    assert kind == 2
    assert {name: details[name] for name in ("authid", "authrole", "authmethod", "authprovider")} == {
        "authid": NAME,
        "authrole": "subscriber",
        "authmethod": "ticket",
        "authprovider": "lab",
    }
    assert world.sessions.records["c1"].session.token == IDENTITY
    assert [member.listener.authid for member in world.realm_sessions.every(REALM)] == [NAME]
    (started,) = world.recorded
    assert (started.outcome, started.labels) == ("started", {"user": NAME, "role": "subscriber"})
    assert "eyJ" not in json.dumps([one.body for one in world.outboxes.items["c1"] if hasattr(one, "body")])


def test_a_secret_without_a_name_is_refused(world, client) -> None:
    greet(client)

    ((_, details, reason), close) = client.say(5, "source-secret", {})

    assert (reason, details["message"], close) == (
        "wamp.error.authentication_failed",
        "wrong name or ticket",
        "close",
    )


def test_a_realm_without_issuers_asks_nobody_about_a_token(world, client) -> None:
    world.declare(LiveSettings())

    assert client.say(1, REALM, {"authmethods": ["ticket"]})[0][2] == "wamp.error.authentication_required"
    second = Client(world, "c2").open()
    greet(second, "source")
    assert second.say(5, TOKEN, {})[0][2] == "wamp.error.authentication_failed"
    assert world.tokens.asked == []


@pytest.mark.parametrize("problem", list(TokenProblem))
def test_a_refused_token_is_recorded_without_its_claims(world, client, problem) -> None:
    world.tokens.results[TOKEN] = TokenRefusal(problem)
    greet(client, NAME)

    ((kind, details, reason), close) = client.say(5, TOKEN, {})

    is_temporary = problem is TokenProblem.UNAVAILABLE
    assert (kind, close) == (3, "close")
    assert reason == ("wamp.error.unavailable" if is_temporary else "wamp.error.authentication_failed")
    assert details["message"] == problem.text
    (refused,) = world.recorded
    assert (refused.kind, refused.outcome, refused.reason) == ("session", "refused", f"token: {problem.word}")
    assert refused.labels == {}
    assert state(world) is SessionState.CLOSED


@pytest.mark.parametrize(
    ("announced", "authid", "problem"),
    [
        ("ben@lab", NAME, TokenProblem.AUTHID),
        (None, "source", TokenProblem.STAGE_USER),
        (None, "zzzzz-tpzed-000000000000001", TokenProblem.CLUSTER_NAME),
    ],
    ids=["another user", "a user of the stage", "like those of the realm's cluster"],
)
def test_a_token_joins_by_no_other_name(world, client, announced, authid, problem) -> None:
    world.declare(LiveSettings(issuers=(ISSUER,), arvados_api="https://api.example.org"))
    world.tokens.results[TOKEN] = replace(VALID, authid=authid)
    greet(client, announced)

    assert client.say(5, TOKEN, {})[0][1:] == [{"message": problem.text}, "wamp.error.authentication_failed"]


def test_a_token_s_user_without_rights_cannot_join(world, client) -> None:
    world.tokens.results[TOKEN] = replace(VALID, authid="eve@lab")
    greet(client)

    assert client.say(5, TOKEN, {})[0][2] == "wamp.error.not_authorized"


def test_a_storm_of_wrong_tokens_locks_nobody_out(world) -> None:
    for number in range(1_000):
        attacker = Client(world, f"a{number}").open()
        greet(attacker, NAME if number % 2 else "source")
        assert attacker.say(5, f"eyJ.wrong.{number}", {})[0][0] == 3

    assert joined(Client(world, "c-ann").open()).session
    assert Client(world, "c-source").open().join("source").session
    assert not world.accounts.failures
    assert [one.outcome for one in world.recorded].count("refused") == 1_000


def test_a_token_s_user_subscribes_and_publishes_by_grants(world, client) -> None:
    joined(client)

    assert client.say(32, 1, {}, "trial.a") == [[33, 1, A.subscription_id]]
    assert client.say(16, 2, {"acknowledge": True}, "trial.b", [1]) == []
    assert client.say(32, 3, {}, "other")[0][4] == "wamp.error.not_authorized"


def test_a_user_of_the_stage_who_gets_the_name_ends_the_session_of_a_token_s_user(world, client) -> None:
    world.tokens.results[TOKEN] = replace(VALID, authid="ann")
    world.grant("ann", Right.READ)
    joined(client)
    client.say(32, 1, {}, "trial.a")
    world.add_user("ann", Role.SUBSCRIBER)

    (goodbye,) = client.notify(RightsChanged())

    assert goodbye[::2] == [6, "wamp.close.killed"]


def test_the_timer_of_a_long_token_is_a_chain(world, client) -> None:
    joined(client)
    assert world.timers.delays == [MAXIMUM_TIMER]
    client.notify(Elapsed())  # the timer of the join
    assert world.timers.delays == [MAXIMUM_TIMER]

    while world.moment < ENDS_AT:
        world.moment += world.timers.delays[-1]
        replies = client.notify(Elapsed())

    assert world.moment == ENDS_AT
    assert sum(world.timers.delays[:-1], timedelta(0)) == ENDS_AT - START
    ((kind, details, reason),) = replies
    assert (kind, reason) == (6, "signalbox.close.token_expired")
    assert details["message"] == "the token has expired: join again"
    assert world.realm_sessions.every(REALM) == []
    assert state(world) is SessionState.CLOSING
    assert world.recorded[-1].outcome == "ended"


def test_a_timer_is_started_again_for_a_frame_that_is_received_again(world, client) -> None:
    greet(client)
    body = frame_body(json.dumps([5, TOKEN, {}]))
    client.receive(body, frame="f")
    client.receive(body, frame="f")

    assert world.timers.delays == [MAXIMUM_TIMER] * 2


def test_a_request_after_the_end_of_the_token_ends_the_session(world, client) -> None:
    joined(client)
    world.moment = ENDS_AT

    ((kind, _, reason),) = client.say(16, 2, {"acknowledge": True}, "trial.b", [1])

    assert (kind, reason) == (6, "signalbox.close.token_expired")
    assert not world.sender.sent


def test_a_client_may_leave_after_the_end_of_the_token(world, client) -> None:
    joined(client)
    world.moment = ENDS_AT

    assert client.say(6, {}, "wamp.close.normal")[0][2] == "wamp.close.goodbye_and_out"


def test_a_session_goes_on_with_a_renewed_token(world, client) -> None:
    joined(client)
    later = replace(IDENTITY, expires_at=ENDS_AT + timedelta(hours=1), groups=())
    world.tokens.results[OTHER] = replace(VALID, identity=later)

    assert renewal(client, OTHER) == [[50, 9, {}, [], {"expires_at": "2026-11-21T22:00:00.000Z"}]]

    assert world.sessions.records["c1"].session.token == later
    world.moment = ENDS_AT
    client.notify(Elapsed())
    assert client.say(32, 1, {}, "trial.a") == [[33, 1, A.subscription_id]]


def test_a_renewed_token_that_ends_earlier_has_an_earlier_timer(world, client) -> None:
    joined(client)
    world.tokens.results[OTHER] = replace(VALID, identity=replace(IDENTITY, expires_at=START, skew_seconds=120))

    renewal(client, OTHER)

    assert world.timers.delays == [MAXIMUM_TIMER, 120 * SECOND]


def test_subscriptions_without_rights_end_at_a_renewal(world, client) -> None:
    joined(client)
    client.say(32, 1, {}, "trial.a")
    world.accounts.grants[REALM, NAME].clear()
    world.grant(NAME, Right.READ, pattern="trial.b", match="exact")
    client.say(32, 2, {}, "trial.b")
    world.tokens.results[OTHER] = VALID

    unsubscribed, result = renewal(client, OTHER)

    assert unsubscribed[:2] == [35, 0]
    assert unsubscribed[2]["subscription"] == A.subscription_id
    assert result[0] == 50
    assert world.subscribers.of_topic(REALM, "trial.a") == []


@pytest.mark.parametrize(
    ("renewed", "problem"),
    [
        (TokenRefusal(TokenProblem.EXPIRED), TokenProblem.EXPIRED),
        (replace(VALID, authid="ben@lab"), TokenProblem.AUTHID),
        (replace(VALID, identity=replace(IDENTITY, issuer="other")), TokenProblem.AUTHID),
        (TokenRefusal(TokenProblem.UNAVAILABLE), TokenProblem.UNAVAILABLE),
    ],
)
def test_a_refused_renewal_leaves_the_session_as_it_is(world, client, renewed, problem) -> None:
    joined(client)
    world.tokens.results[OTHER] = renewed

    ((kind, call, _, _, error, arguments),) = renewal(client, OTHER)

    assert (kind, call, arguments) == (8, 48, [problem.text])
    is_temporary = problem is TokenProblem.UNAVAILABLE
    assert error == ("wamp.error.unavailable" if is_temporary else "wamp.error.authentication_failed")
    assert world.sessions.records["c1"].session.token == IDENTITY
    assert world.recorded[-1].reason == f"token: {problem.word}"
    assert client.say(32, 1, {}, "trial.a") == [[33, 1, A.subscription_id]]


def test_a_refused_renewal_lends_its_rights_to_no_later_message_of_its_frame(world) -> None:
    world.tokens.results[OTHER] = replace(VALID, authid="bob@lab")
    world.grant("bob@lab", Right.READ, Right.WRITE)
    client = joined(Client(world).open(is_batched=True))
    world.accounts.grants.pop((REALM, UserName(NAME)))

    refused, subscription = client.say_all([48, 9, {}, RENEW, [OTHER]], [32, 1, {}, "trial.a"])

    assert refused[5] == [TokenProblem.AUTHID.text]
    assert subscription[4] == "wamp.error.not_authorized"


def test_a_renewal_for_a_name_that_a_user_of_the_stage_got_is_refused(world, client) -> None:
    world.tokens.results[TOKEN] = replace(VALID, authid="ann")
    world.grant("ann", Right.READ)
    joined(client)
    world.add_user("ann", Role.SUBSCRIBER)

    assert renewal(client, TOKEN)[0][5] == [TokenProblem.STAGE_USER.text]


@pytest.mark.parametrize("arguments", [(), (1,), (None,)])
def test_a_renewal_has_the_new_token_as_its_argument(client, arguments) -> None:
    joined(client)

    assert renewal(client, *arguments)[0][4] == "wamp.error.invalid_argument"


def test_a_session_without_a_token_has_nothing_to_renew(client) -> None:
    client.join("source")

    assert renewal(client, TOKEN)[0][4] == "wamp.error.not_authorized"


def test_a_renewal_at_the_last_moment_is_refused(world, client) -> None:
    joined(client)
    world.moment = ENDS_AT - 5 * SECOND

    assert renewal(client, TOKEN)[0][5] == [TokenProblem.LATE.text]


def test_another_role_needs_a_new_session(world, client) -> None:
    joined(client)
    world.tokens.results[OTHER] = replace(VALID, identity=replace(IDENTITY, role=Role.SOURCE))

    ((kind, _, reason),) = renewal(client, OTHER)

    assert (kind, reason) == (6, "signalbox.close.role_changed")
    assert state(world) is SessionState.CLOSING


def test_a_killed_session_cannot_be_opened_again_with_an_old_token(world, client) -> None:
    """Not even if its client has closed the connection before the signal comes."""
    joined(client)
    world.moment += SECOND
    admin = Client(world, ConnectionId("c9")).open().join("admin")
    assert admin.say(48, 7, {}, "wamp.session.kill", [client.session])[0][0] == 50

    second = Client(world, "c2").open()
    greet(second)
    assert second.say(5, TOKEN, {})[0][1]["message"] == TokenProblem.ENDED.text

    third = Client(world, "c3").open()
    world.tokens.results[OTHER] = replace(VALID, issued_at=None)
    greet(third)
    assert third.say(5, OTHER, {})[0][1]["message"] == TokenProblem.ENDED.text

    world.tokens.results[OTHER] = replace(VALID, issued_at=world.moment)
    assert joined(Client(world, "c4").open(), OTHER).session


def test_a_realm_that_is_deleted_while_a_client_joins_is_gone(world, client) -> None:
    greet(client)
    world.declare(None)

    assert client.say(5, TOKEN, {})[0][2] == "wamp.error.no_such_realm"


def test_an_overview_call_carries_the_identity_of_the_token(world, client) -> None:
    joined(client)
    client.say(48, 3, {}, "signalbox.topics")

    (call,) = world.overview_calls.calls.values()
    assert (call.user, call.token) == (NAME, IDENTITY)
