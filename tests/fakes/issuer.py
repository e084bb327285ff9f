"""An OpenID Connect issuer on loopback: a real HTTP server with real keys, whose answers a test can replace."""

import base64
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from tests.fakes.http_endpoint import Handler, serving

DISCOVERY, KEYS = "/.well-known/openid-configuration", "/keys"
CURVES = {"ES256": ec.SECP256R1, "ES384": ec.SECP384R1, "ES512": ec.SECP521R1}
AUDIENCE = "signalbox"
HOUR = 3_600


@dataclass(frozen=True)
class Answer:
    """An answer of the issuer; `pieces` are sent with `pause` seconds in between."""

    pieces: tuple[bytes, ...]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0


@cache
def private_key(algorithm: str, number: int = 0) -> Any:
    """Return a private key for an algorithm; `number` selects one of several."""
    del number
    if algorithm in CURVES:
        return ec.generate_private_key(CURVES[algorithm]())
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


def public_jwk(algorithm: str, key_id: str | None, number: int = 0, **fields: object) -> dict[str, Any]:
    """Return the public part of a key as an issuer publishes it."""
    public = private_key(algorithm, number).public_key()
    document = jwt.get_algorithm_by_name(algorithm).to_jwk(public, as_dict=True)
    document.pop("key_ops", None)
    return {**document, "use": "sig", **({"kid": key_id} if key_id else {}), **fields}


def public_pem(algorithm: str, number: int = 0) -> bytes:
    """Return the public part of a key as text, which an attacker could use as the secret of HMAC."""
    public = private_key(algorithm, number).public_key()
    return public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def encoded(document: object) -> str:
    """Return a part of a token."""
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


@dataclass
class LoopbackIssuer:
    """An issuer with one key for each algorithm in `algorithms`; `requests` counts the requests by path."""

    url: str
    algorithms: tuple[str, ...] = ("RS256", "ES256", "EdDSA")
    requests: Counter[str] = field(default_factory=Counter)
    answers: dict[str, Answer] = field(default_factory=dict)
    keys: list[dict[str, Any]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keys = [public_jwk(algorithm, algorithm) for algorithm in self.algorithms]

    def answer(self, path: str) -> Answer:
        self.requests[path] += 1
        documents: dict[str, object] = {
            DISCOVERY: {"issuer": self.url, "jwks_uri": self.url + KEYS},
            KEYS: {"keys": self.keys},
        }
        return self.answers.get(path) or Answer((json.dumps(documents[path]).encode(),))

    def claims(self, **changes: object) -> dict[str, object]:
        """Return the claims of a valid token, with changes; None removes a claim."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + HOUR} | changes
        return {name: value for name, value in claims.items() if value is not None}

    def token(
        self, algorithm: str = "RS256", *, number: int = 0, header: dict[str, object] | None = None, **changes: object
    ) -> str:
        """Return a token signed with the issuer's key for an algorithm."""
        headers = {"kid": algorithm, **(header or {})}
        unset = {name for name, value in headers.items() if value is None}
        headers = {name: value for name, value in headers.items() if name not in unset}
        return jwt.encode(self.claims(**changes), private_key(algorithm, number), algorithm=algorithm, headers=headers)


@contextmanager
def running_issuer(make: Callable[[str], LoopbackIssuer] = LoopbackIssuer) -> Iterator[LoopbackIssuer]:
    """Run an issuer on loopback."""

    class Documents(Handler):
        def respond(self) -> None:
            issuer.authorizations.append(self.headers.get("authorization"))
            answer = issuer.answer(self.path)
            self.send_response(answer.status)
            for name, value in {"content-type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in answer.pieces:
                try:
                    self.wfile.write(piece)
                    self.wfile.flush()
                except OSError:
                    return  # the client has seen enough
                time.sleep(answer.pause)

    with serving(Documents) as url:
        issuer = make(url)
        yield issuer
