"""Authentication: tickets, signatures and stored credentials."""

import base64
import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.live.wamp.authentication import (
    AuthMethod,
    Identity,
    StoredSecret,
    challenge_text,
    chosen_method,
    derived_key,
    signature,
)
from signalbox.live.wamp.messages import SessionId

NOW = datetime(2026, 11, 21, 20, 30, 0, 123456, UTC)
PETER = Identity("peter", "subscriber", AuthMethod.WAMPCRA)
texts = st.text(st.characters(codec=None), max_size=8)


def test_challenges_are_signed_as_in_rfc_4231() -> None:
    """RFC 4231, 4.3, in base64 as WAMP requires."""
    expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"

    assert base64.b64decode(signature("Jefe", challenge="what do ya want for nothing?")).hex() == expected


# The specification gives no secret for its example; autobahn-python 26.10.2 computed this signature.
CHALLENGE = (
    '{ "nonce": "LHRTC9zeOIrt_9U3", "authprovider": "userdb", "authid": "peter", '
    '"timestamp": "2014-06-22T16:36:25.448Z", "authrole": "user", "authmethod": "wampcra", "session": 3251278072152162}'
)


def test_the_signature_of_the_specifications_challenge_equals_autobahns() -> None:
    credentials = StoredSecret.of("secret1", salt="salt123", with_key=True)

    assert credentials.accepts_signature("QOHdDPVpF0yfu50oO35WjoVN0CYN2Jwm+IY5YyRbKLk=", challenge=CHALLENGE)
    assert credentials.challenge_extra == {"salt": "salt123", "keylen": 32, "iterations": 1000}


@given(texts, texts)
def test_only_the_secret_is_accepted_as_ticket(secret: str, other: str) -> None:
    credentials = StoredSecret.of(secret, salt="salt", with_key=False)

    assert credentials.accepts_ticket(secret)
    # HMAC pads keys with zeros.
    assert credentials.accepts_ticket(other) == (secret.rstrip("\0") == other.rstrip("\0"))


@given(texts, texts)
def test_only_the_key_signs_a_challenge(challenge: str, given_signature: str) -> None:
    credentials = StoredSecret.of("secret", salt="salt", with_key=True)
    key = derived_key("secret", salt="salt")

    assert credentials.accepts_signature(signature(key, challenge=challenge), challenge=challenge)
    assert not credentials.accepts_signature(given_signature, challenge=challenge)
    assert not credentials.accepts_signature(signature(key, challenge=challenge + "x"), challenge=challenge)


def test_the_key_is_stored_only_for_users_of_wampcra() -> None:
    credentials = StoredSecret.of("secret", salt="salt", with_key=False)

    assert credentials.methods == {AuthMethod.TICKET}
    assert derived_key("secret", salt="salt") not in (credentials.key, credentials.verifier)
    assert not credentials.accepts_signature(signature("", challenge="c"), challenge="c")


def test_repr_shows_neither_secret_nor_key() -> None:
    assert repr(StoredSecret.of("secret", salt="salt", with_key=True)) == "Credentials(…)"


def test_decoy_credentials_look_real_and_match_no_secret() -> None:
    unknown = StoredSecret.decoy("eve", pepper="p")

    assert unknown == StoredSecret.decoy("eve", pepper="p")
    assert unknown.salt != StoredSecret.decoy("mallory", pepper="p").salt
    assert unknown.salt != StoredSecret.decoy("eve", pepper="q").salt
    assert unknown.methods == {AuthMethod.TICKET, AuthMethod.WAMPCRA}
    assert not unknown.accepts_ticket("")
    assert not unknown.accepts_signature(signature(unknown.key or "", challenge="c"), challenge="c")


@pytest.mark.parametrize(
    ("offered", "accepted", "chosen"),
    [
        (["wampcra", "ticket"], [AuthMethod.TICKET, AuthMethod.WAMPCRA], AuthMethod.WAMPCRA),
        (["scram", "wampcra", "ticket"], [AuthMethod.TICKET], AuthMethod.TICKET),
        (["cryptosign"], [AuthMethod.TICKET], None),
        ([], [AuthMethod.TICKET], None),
        (["ticket"], [], None),
    ],
)
def test_the_clients_first_accepted_method_is_chosen(
    offered: list[str], accepted: list[AuthMethod], chosen: AuthMethod | None
) -> None:
    assert chosen_method(offered, accepted=accepted) == chosen


def test_a_challenge_has_the_fields_of_the_specification_without_the_role() -> None:
    text = challenge_text(PETER, session=SessionId(3251278072152162), nonce="n", now=NOW)

    assert json.loads(text) == {
        "authid": "peter",
        "authmethod": "wampcra",
        "authprovider": "signalbox",
        "nonce": "n",
        "timestamp": "2026-11-21T20:30:00.123Z",
        "session": 3251278072152162,
    }
