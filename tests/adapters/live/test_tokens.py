"""The verification of tokens: a table of valid and of forged ones, with real keys and an issuer on loopback."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import jwt
import pytest

from signalbox.aws.live.issuers import IssuerKeys
from signalbox.aws.live.json_documents import JsonDocuments
from signalbox.aws.live.tokens import JwtVerifier
from signalbox.exchange.model.issuers import Issuer
from signalbox.live.identity.tokens import TokenProblem, TokenRefusal, VerifiedToken
from signalbox.sarracenia.rights.permissions import Role
from tests.fakes.issuer import AUDIENCE, LoopbackIssuer, encoded, private_key, public_jwk, public_pem, running_issuer

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")


@pytest.fixture(scope="module")
def issuer() -> Iterator[LoopbackIssuer]:
    with running_issuer(lambda url: LoopbackIssuer(url, ALGORITHMS)) as running:
        yield running


@pytest.fixture(scope="module")
def verifier() -> JwtVerifier:
    return JwtVerifier(IssuerKeys(JsonDocuments(allows_loopback=True)))


def trusted(issuer: LoopbackIssuer, **settings: object) -> Issuer:
    return replace(Issuer(issuer.url, AUDIENCE), **settings)


def verified(verifier: JwtVerifier, issuer: LoopbackIssuer, token: str, **settings: object) -> VerifiedToken:
    found = verifier.verify(token, [trusted(issuer, **settings)])
    assert isinstance(found, VerifiedToken), found
    return found


def problem(verifier: JwtVerifier, issuer: LoopbackIssuer, token: str, **settings: object) -> TokenProblem:
    found = verifier.verify(token, [trusted(issuer, **settings)])
    assert isinstance(found, TokenRefusal), found
    return found.problem


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_token_with_any_asymmetric_algorithm_is_accepted(verifier, issuer, algorithm) -> None:
    claims = {"groups": ["imaging", "lab"], "exp": 4_000_000_000, "iat": 1_700_000_000}

    found = verified(verifier, issuer, issuer.token(algorithm, **claims))

    assert (found.authid, found.provider, found.issued_at) == (
        "ann",
        "127.0.0.1",
        datetime.fromtimestamp(1_700_000_000, UTC),
    )
    identity = found.identity
    assert (identity.issuer, identity.role, identity.groups) == (issuer.url, Role.SUBSCRIBER, ("imaging", "lab"))
    assert (identity.expires_at, identity.skew_seconds) == (datetime.fromtimestamp(4_000_000_000, UTC), 60)


@pytest.mark.parametrize("kind", ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", None])
def test_id_tokens_and_access_tokens_are_accepted(verifier, issuer, kind) -> None:
    assert verified(verifier, issuer, issuer.token(header={"typ": kind}))


def test_clocks_may_differ_by_the_skew(verifier, issuer) -> None:
    now = int(time.time())

    assert verified(verifier, issuer, issuer.token(exp=now - 100), skew_seconds=300)
    assert verified(verifier, issuer, issuer.token(nbf=now + 100, iat=now + 100), skew_seconds=300)


def test_a_token_for_several_audiences_names_the_client(verifier, issuer) -> None:
    both = [AUDIENCE, "other"]

    assert verified(verifier, issuer, issuer.token(aud=both, azp=AUDIENCE))
    assert verified(verifier, issuer, issuer.token(aud=both, azp="page"), client_id="page")
    assert verified(verifier, issuer, issuer.token(aud=both, header={"typ": "at+jwt"}))
    assert verified(verifier, issuer, issuer.token(aud=[AUDIENCE]))
    assert problem(verifier, issuer, issuer.token(aud=both)) is TokenProblem.PARTY


def test_a_token_without_a_key_id_is_tried_with_the_keys_of_its_kind(verifier, issuer) -> None:
    assert verified(verifier, issuer, issuer.token("RS512", header={"kid": None}))
    forged = issuer.token("RS512", number=1, header={"kid": None})
    assert problem(verifier, issuer, forged) is TokenProblem.SIGNATURE


def _forged(issuer: LoopbackIssuer) -> dict[str, tuple[str, TokenProblem]]:
    """Return forged and unfit tokens by name, and why each is refused."""
    valid, now = issuer.token(), int(time.time())
    header, claims, signature = valid.split(".")
    none = encoded({"alg": "none", "typ": "JWT"})
    own_key = public_jwk("RS256", "mine", 1)
    hmac = jwt.PyJWT()  # PyJWT refuses a public key as a secret: the attacker has it as bytes, in another form
    secret = public_pem("RS256").replace(b"-----", b"=====")
    return {
        "unsigned": (f"{none}.{claims}.", TokenProblem.ALGORITHM),
        "unsigned, in capitals": (f"{encoded({'alg': 'NONE'})}.{claims}.", TokenProblem.ALGORITHM),
        "unsigned, with the signature of another": (f"{none}.{claims}.{signature}", TokenProblem.ALGORITHM),
        "without a signature": (f"{header}.{claims}.", TokenProblem.SIGNATURE),
        "with another algorithm in its header": (
            f"{encoded({'alg': 'RS512', 'kid': 'RS256'})}.{claims}.{signature}",
            TokenProblem.SIGNATURE,
        ),
        "HS256 with the public key as the secret": (
            hmac.encode(issuer.claims(), secret, algorithm="HS256", headers={"kid": "RS256"}),
            TokenProblem.ALGORITHM,
        ),
        "an algorithm of another kind than the key": (
            issuer.token("ES256", header={"kid": "RS256"}),
            TokenProblem.KEY,
        ),
        "an algorithm of another curve than the key": (
            issuer.token("ES256", header={"kid": "ES384"}),
            TokenProblem.KEY,
        ),
        "a key that is not published": (issuer.token(header={"kid": "other"}), TokenProblem.KEY),
        "another's key under a published id": (issuer.token(number=1), TokenProblem.SIGNATURE),
        "its own key in the header": (issuer.token(number=1, header={"jwk": own_key}), TokenProblem.HEADER),
        "a key set's address in the header": (
            issuer.token(number=1, header={"jku": "https://evil.example.org/keys"}),
            TokenProblem.HEADER,
        ),
        "a certificate's address in the header": (
            issuer.token(number=1, header={"x5u": "https://evil.example.org/chain"}),
            TokenProblem.HEADER,
        ),
        "a certificate in the header": (issuer.token(number=1, header={"x5c": ["MIIB"]}), TokenProblem.HEADER),
        "an unknown critical extension": (
            f"{encoded({'alg': 'RS256', 'crit': ['exp'], 'exp': 1})}.{claims}.{signature}",
            TokenProblem.HEADER,
        ),
        "a logout token": (issuer.token(header={"typ": "logout+jwt"}), TokenProblem.TYPE),
        "a logout token without a type": (issuer.token(events={}), TokenProblem.TYPE),
        "bound to a key": (issuer.token(cnf={"jkt": "x"}), TokenProblem.BOUND),
        "changed after it was signed": (
            f"{header}.{encoded(issuer.claims(sub='root'))}.{signature}",
            TokenProblem.SIGNATURE,
        ),
        "another issuer's": (issuer.token(iss="https://evil.example.org"), TokenProblem.ISSUER),
        "an issuer with a slash more": (issuer.token(iss=issuer.url + "/"), TokenProblem.ISSUER),
        "without an issuer": (issuer.token(iss=None), TokenProblem.CLAIMS),
        "for another audience": (issuer.token(aud="other"), TokenProblem.AUDIENCE),
        "for several other audiences": (issuer.token(aud=["other", "signalbox2"]), TokenProblem.AUDIENCE),
        "without an audience": (issuer.token(aud=None), TokenProblem.CLAIMS),
        "issued to another client": (issuer.token(azp="other"), TokenProblem.PARTY),
        "expired": (issuer.token(exp=now - 61), TokenProblem.EXPIRED),
        "not yet valid": (issuer.token(nbf=now + 1_000), TokenProblem.EARLY),
        "issued in the future": (issuer.token(iat=now + 1_000), TokenProblem.EARLY),
        "without an end": (issuer.token(exp=None), TokenProblem.CLAIMS),
        "with an end that is a text": (issuer.token(exp=str(now + 1_000)), TokenProblem.CLAIMS),
        "with an end that is no time": (issuer.token(exp=10**18), TokenProblem.CLAIMS),
        "without a name": (issuer.token(sub=None), TokenProblem.NAME),
        "too long": (issuer.token(padding="x" * 16_384), TokenProblem.TOO_LONG),
        "encrypted": ("eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ.a.b.c.d", TokenProblem.ENCRYPTED),
        "not a token": ("eyJ.b.c", TokenProblem.MALFORMED),
        "two parts": (f"{header}.{claims}", TokenProblem.MALFORMED),
        "a header that is not an object": (f"{encoded([])}.{claims}.{signature}", TokenProblem.MALFORMED),
        "claims that are not an object": (f"{header}.{encoded('x')}.{signature}", TokenProblem.MALFORMED),
        "deeply nested": (f"{encoded('x')[:2]}{'W1tb' * 3_000}.{claims}.{signature}", TokenProblem.MALFORMED),
        "a signature of other characters": (f"{header}.{claims}.!{signature}", TokenProblem.MALFORMED),
        "a key id that is not a text": (
            f"{encoded({'alg': 'RS256', 'kid': 1})}.{claims}.{signature}",
            TokenProblem.MALFORMED,
        ),
        "an algorithm that is not a text": (
            f"{encoded({'alg': ['RS256']})}.{claims}.{signature}",
            TokenProblem.ALGORITHM,
        ),
        "with a wrong character in the middle of its claims": (
            f"{header}.{claims[:-1]}+.{signature}",
            TokenProblem.MALFORMED,
        ),
    }


NAMES = list(_forged(LoopbackIssuer("https://id.example.org", ())))


@pytest.mark.parametrize("name", NAMES)
def test_a_forged_or_unfit_token_is_refused(verifier, issuer, name) -> None:
    token, expected = _forged(issuer)[name]

    assert problem(verifier, issuer, token) is expected


def test_a_key_of_the_issuer_that_is_no_key_signs_nothing(issuer) -> None:
    with running_issuer() as broken:
        weak = {"kty": "RSA", "kid": "weak", "n": "AQAB", "e": "AQAB"}
        broken.keys = [
            weak,
            {"kty": "EC", "crv": "P-256", "kid": "ES256", "x": "AA", "y": "AA"},
            public_jwk("RS256", "of-encryption", use="enc"),
            public_jwk("RS256", "of-another-algorithm", alg="RS512"),
            {**public_jwk("RS256", "leaked"), "d": "AA"},
            {"kty": "oct", "kid": "oct", "k": "AAAA"},
        ]
        verifier = JwtVerifier(IssuerKeys(JsonDocuments(allows_loopback=True)))

        assert problem(verifier, broken, broken.token("ES256")) is TokenProblem.KEY
        for key_id in ("weak", "of-encryption", "of-another-algorithm", "leaked", "oct"):
            assert problem(verifier, broken, broken.token(header={"kid": key_id})) is TokenProblem.KEY


def test_a_realm_may_trust_several_issuers(verifier, issuer) -> None:
    with running_issuer() as second:
        issuers = [Issuer(second.url, AUDIENCE, label="lab", role_claim="role"), trusted(issuer)]

        found = verifier.verify(second.token(role="source"), issuers)

        assert isinstance(found, VerifiedToken)
        assert (found.authid, found.provider, found.identity.role) == ("ann@lab", "lab", Role.SOURCE)
        # The name of a user of the other issuer does not become that of one here.
        assert verifier.verify(issuer.token(sub="ann@lab"), issuers) == TokenRefusal(TokenProblem.NAME)


def test_an_issuer_without_an_answer_is_not_the_token_s_fault() -> None:
    gone = LoopbackIssuer("http://127.0.0.1:9")
    verifier = JwtVerifier(IssuerKeys(JsonDocuments(allows_loopback=True)))

    assert problem(verifier, gone, gone.token()) is TokenProblem.UNAVAILABLE


def test_the_private_keys_of_the_tests_differ() -> None:
    assert private_key("RS256", 0) is not private_key("RS256", 1)
