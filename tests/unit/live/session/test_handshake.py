"""The start of sessions, and its refusals."""

import json
from dataclasses import replace

import pytest

from signalbox.live.model.effects import Close, Enter
from signalbox.live.model.state import SessionState
from signalbox.live.procedures.table import FEATURES
from signalbox.live.session.handshake import WRONG
from signalbox.live.wamp import uris
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.authentication import AuthMethod, derived_key, signature
from signalbox.live.wamp.features import roles
from signalbox.live.wamp.messages import Abort, Authenticate, Challenge, Hello, Welcome
from signalbox.sarracenia.rights.permissions import Role
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
    account,
    posted,
)


def hello(authid: object = "joe", *methods: object) -> Hello:
    return Hello(REALM, {"authid": authid, "authmethods": list(methods), "roles": {}})


def the_abort(connection: Connection, heard: Hello | Authenticate) -> Abort:
    """Return the ABORT that refuses a client; the connection is closed after it."""
    outcome = connection.receive(heard)
    *_, abort, close = outcome.effects
    assert close == Close()
    assert outcome.session.state is SessionState.CLOSED
    message = getattr(abort, "message", None)
    assert isinstance(message, Abort)
    return message


def welcome_of(name: str, role: str, method: str) -> Welcome:
    who = {"authid": name, "authrole": role, "authmethod": method, "authprovider": "signalbox"}
    return Welcome(
        SESSION,
        {"realm": REALM, "roles": roles(FEATURES), "agent": "Signalbox", **who, "_at": "2026-11-21T20:00:00.000Z"},
    )


def test_a_client_joins_an_anonymous_realm_without_a_secret() -> None:
    connection = Connection()

    outcome = connection.receive(HELLO)

    assert [getattr(effect, "message", effect) for effect in outcome.effects] == [
        welcome_of("anonymous", "subscriber", "anonymous"),
        Enter(Listener(SESSION, "anonymous", "subscriber")),
    ]
    assert outcome.session.state is SessionState.JOINED
    assert outcome.session.features == {"subscription_revocation"}


def test_a_client_joins_by_a_ticket() -> None:
    connection = Connection()

    assert connection.replies(hello("joe", "ticket")) == [Challenge("ticket", {})]
    outcome = connection.receive(Authenticate(SECRET, {}))
    assert posted(outcome.effects) == [welcome_of("joe", "subscriber", "ticket")]
    assert outcome.session.state is SessionState.JOINED
    assert outcome.session.secret == JOE.credentials.digest


def test_a_client_joins_by_a_signature() -> None:
    connection = Connection()

    (challenge,) = connection.replies(hello("joe", "wampcra", "ticket"))

    assert isinstance(challenge, Challenge)
    assert challenge.method == "wampcra"
    assert challenge.extra.keys() == {"challenge", "salt", "keylen", "iterations"}
    asked = str(challenge.extra["challenge"])
    assert json.loads(asked)["session"] == SESSION
    connection.context = replace(connection.context, session=type(SESSION)(1))  # the session's id was said already
    signed = signature(derived_key(SECRET, salt="salt"), challenge=asked)
    assert connection.replies(Authenticate(signed, {})) == [welcome_of("joe", "subscriber", "wampcra")]
    assert connection.session.challenge == ""


@pytest.mark.parametrize("method", ["ticket", "wampcra"])
@pytest.mark.parametrize("user", [JOE, None], ids=["wrong secret", "unknown user"])
def test_unknown_users_and_wrong_secrets_get_the_same_answer(method: str, user: object) -> None:
    connection = Connection()
    connection.context = replace(connection.context, account=JOE if user else None)

    (challenge,) = connection.replies(hello("joe", method))
    abort = the_abort(connection, Authenticate("wrong", {}))

    assert isinstance(challenge, Challenge)
    assert challenge.method == method
    assert abort == Abort({"message": WRONG[AuthMethod(method)]}, uris.AUTHENTICATION_FAILED)


def test_a_ticket_is_not_a_valid_signature() -> None:
    connection = Connection()
    connection.receive(hello("joe", "wampcra"))

    assert the_abort(connection, Authenticate(SECRET, {})).reason == uris.AUTHENTICATION_FAILED


def test_a_user_without_a_key_is_challenged_as_others_and_refused() -> None:
    connection = Connection()
    user = account("joe", Role.ADMIN, with_key=False)
    connection.context = replace(connection.context, account=user)

    (challenge,) = connection.replies(hello("joe", "wampcra", "ticket"))
    assert isinstance(challenge, Challenge)
    signed = signature(derived_key(SECRET, salt="salt"), challenge=str(challenge.extra["challenge"]))
    abort = the_abort(connection, Authenticate(signed, {}))
    assert abort.details == {"message": "wrong authid or secret, or a secret without wampcra"}


@pytest.mark.parametrize(
    ("heard", "reason", "message"),
    [
        (Hello("no realm", {}), uris.INVALID_URI, "the realm is not a URI"),
        (
            hello("joe", "scram"),
            uris.NO_MATCHING_AUTH_METHOD,
            "join with a name (authid), and by ticket or wampcra",
        ),
        (hello("joe"), uris.AUTHENTICATION_REQUIRED, "join with a name (authid), and by ticket or wampcra"),
        (
            hello("joe", "anonymous"),
            uris.AUTHENTICATION_REQUIRED,
            "join with a name (authid), and by ticket or wampcra",
        ),
        (hello("", "ticket"), uris.AUTHENTICATION_REQUIRED, "join with a name (authid), and by ticket or wampcra"),
        (hello(None, "ticket"), uris.AUTHENTICATION_REQUIRED, "join with a name (authid), and by ticket or wampcra"),
        (HELLO, uris.AUTHENTICATION_REQUIRED, "join with a name (authid), and by ticket or wampcra"),
        (
            hello(7, 8),
            uris.PROTOCOL_VIOLATION,
            "details.authmethods[0]: expected a text, not 8; details.authid: expected a text, not 7",
        ),
    ],
)
def test_a_refused_client_gets_the_reason(heard: Hello, reason: str, message: str) -> None:
    connection = Connection()
    connection.context = replace(connection.context, realm=CLOSED_REALM)

    assert the_abort(connection, heard) == Abort({"message": message}, reason)


def test_an_unknown_realm_cannot_be_joined() -> None:
    connection = Connection()
    connection.context = replace(connection.context, realm=None)

    assert the_abort(connection, HELLO).reason == uris.NO_SUCH_REALM


def test_a_realm_that_was_deleted_during_the_challenge_cannot_be_joined() -> None:
    connection = Connection()
    connection.receive(hello("joe", "ticket"))
    connection.context = replace(connection.context, realm=None)

    assert the_abort(connection, Authenticate(SECRET, {})).reason == uris.NO_SUCH_REALM


def test_a_user_without_rights_cannot_join() -> None:
    connection = Connection()
    connection.context = replace(connection.context, account=WITHOUT_RIGHTS)
    connection.receive(hello("nobody", "ticket"))

    assert the_abort(connection, Authenticate(SECRET, {})).reason == uris.NOT_AUTHORIZED


def test_anonymous_is_chosen_if_the_client_lists_it_first() -> None:
    connection = Connection()
    connection.context = replace(connection.context, realm=OPEN_REALM)

    assert connection.replies(hello("joe", "anonymous", "ticket")) == [
        welcome_of("anonymous", "subscriber", "anonymous")
    ]


def test_long_texts_of_a_hello_are_not_kept() -> None:
    connection = Connection()
    features = {"x" * 51: True, **{f"feature_{number}": True for number in range(100)}}

    kept = connection.receive(Hello(REALM, {"authid": "", "roles": {"subscriber": {"features": features}}}))

    assert len(kept.session.features) == 30
    assert max(map(len, kept.session.features)) < 51
    refused = Connection().receive(Hello(REALM, {"authid": "x" * 256, "authmethods": ["ticket"]}))
    assert "256 characters; at most 255 are allowed" in str(refused.effects)


@pytest.mark.parametrize(
    "details",
    [{}, {"roles": []}, {"roles": {"subscriber": 1}}, {"roles": {"subscriber": {"features": {"x": 1}}}}],
    ids=["no roles", "a list", "a number", "not true"],
)
def test_malformed_announcements_of_features_are_ignored(details: dict[str, object]) -> None:
    connection = Connection()

    assert connection.receive(Hello(REALM, details)).session.features == frozenset()


@pytest.mark.parametrize("seconds", [10, 100])
@pytest.mark.parametrize("first", [None, hello("joe", "ticket")], ids=["before HELLO", "before AUTHENTICATE"])
def test_a_client_that_is_too_late_cannot_join(first: Hello | None, seconds: int) -> None:
    connection = Connection()
    if first:
        connection.receive(first)
    connection.wait(seconds)

    abort = the_abort(connection, Authenticate(SECRET, {}) if first else HELLO)

    assert abort == Abort({"message": "not joined within 10 s"}, uris.TIMEOUT)


def test_hello_does_not_restart_the_join_timeout() -> None:
    connection = Connection()
    connection.wait(9)
    connection.receive(hello("joe", "ticket"))
    connection.wait(1)

    assert the_abort(connection, Authenticate(SECRET, {})).reason == uris.TIMEOUT
