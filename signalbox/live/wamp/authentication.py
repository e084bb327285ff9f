"""Authentication by ticket and WAMP-CRA against stored verifiers; secrets themselves are not stored."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from signalbox.live.wamp.messages import SessionId

PROVIDER = "signalbox"
KEY_BYTES = 32
# The stage generates secrets with enough entropy to make brute force infeasible, so key stretching is not needed.
# Browsers derive this key in JavaScript, where 100,000 rounds take seconds. Crossbar uses the same default.
ITERATIONS = 1_000


class AuthMethod(StrEnum):
    """The supported values of WAMP's `authmethod`."""

    ANONYMOUS = "anonymous"
    TICKET = "ticket"
    WAMPCRA = "wampcra"


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """The stored form of a user's secret.

    `verifier` is a hash of the key that is derived from the secret, and suffices to check tickets. WAMP-CRA requires
    both sides to have that key, so a reader of `key` can join as the user: it is stored only for users of WAMP-CRA.
    """

    salt: str
    verifier: str
    key: str | None = None

    @classmethod
    def of(cls, secret: str, *, salt: str, with_key: bool) -> "StoredSecret":
        """Return the credentials of a new secret. `salt` is 32 random hexadecimal digits, as in `decoy`."""
        key = derived_key(secret, salt=salt)
        return cls(salt, _verifier(key), key if with_key else None)

    @classmethod
    def decoy(cls, authid: str, *, pepper: str) -> "StoredSecret":
        """Return the credentials of an unknown user. They are stable for an `authid`, and no secret matches them.

        A client therefore cannot distinguish an unknown user from a wrong secret. `pepper` is a secret of the stage.
        """
        salt = hmac.digest(_octets(pepper), _octets(authid), hashlib.sha256).hex()
        return cls(salt[:32], verifier="", key=salt[32:])

    def __repr__(self) -> str:
        return "Credentials(…)"

    @property
    def methods(self) -> frozenset[AuthMethod]:
        """Return the authentication methods that these credentials support."""
        return frozenset({AuthMethod.TICKET} if self.key is None else {AuthMethod.TICKET, AuthMethod.WAMPCRA})

    @property
    def digest(self) -> str:
        """Return a digest of these credentials, which proves nothing and differs after the secret is replaced."""
        return hashlib.sha256(f"{self.salt} {self.verifier}".encode()).hexdigest()[:32]

    @property
    def key_matches_verifier(self) -> bool:
        """Return whether `verifier` is the hash of `key`."""
        return self.key is not None and hmac.compare_digest(_verifier(self.key), self.verifier)

    @property
    def challenge_extra(self) -> dict[str, object]:
        """Return the `Extra` of a WAMP-CRA CHALLENGE: the parameters by which a client derives its key."""
        return {"salt": self.salt, "keylen": KEY_BYTES, "iterations": ITERATIONS}

    def accepts_ticket(self, ticket: str) -> bool:
        """Return whether a ticket is the secret, in constant time."""
        key = derived_key(ticket, salt=self.salt)
        return hmac.compare_digest(_verifier(key), self.verifier)

    def accepts_signature(self, given: str, *, challenge: str) -> bool:
        """Return whether a text is this user's signature of a challenge, in constant time."""
        # Decoy credentials have an empty verifier, and those without a key an empty key: neither may sign.
        is_usable = self.key is not None and self.verifier != ""
        expected = signature(self.key or "", challenge=challenge)
        return hmac.compare_digest(_octets(expected), _octets(given)) and is_usable


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a session: WAMP's `authid`, `authrole`, `authmethod` and, as `provider`, `authprovider`.

    `authrole` is empty until the client has joined.
    """

    authid: str
    authrole: str
    method: AuthMethod
    provider: str = PROVIDER

    @property
    def details(self) -> dict[str, object]:
        """Return the identity's entries in the details of WELCOME."""
        return {
            "authid": self.authid,
            "authrole": self.authrole,
            "authmethod": self.method.value,
            "authprovider": self.provider,
        }


def chosen_method(offered: Iterable[str], *, accepted: Iterable[AuthMethod]) -> AuthMethod | None:
    """Return the first offered method that is accepted, or None."""
    names = {method.value: method for method in accepted}
    return next((names[name] for name in offered if name in names), None)


def derived_key(secret: str, *, salt: str) -> str:
    """Derive a WAMP-CRA key from a secret: PBKDF2 with SHA-256, as base64 text, which is what clients sign with."""
    key = hashlib.pbkdf2_hmac("sha256", _octets(secret), _octets(salt), ITERATIONS, KEY_BYTES)
    return base64.b64encode(key).decode()


def signature(key: str, *, challenge: str) -> str:
    """Sign a challenge with HMAC-SHA256 (advanced profile, «Challenge Response Authentication»)."""
    return base64.b64encode(hmac.digest(_octets(key), _octets(challenge), hashlib.sha256)).decode()


def challenge_text(identity: Identity, *, session: SessionId, nonce: str, now: datetime) -> str:
    """Return the JSON text that a client signs for WAMP-CRA, without the user's role. `nonce` is random."""
    timestamp = now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    details = {name: value for name, value in identity.details.items() if name != "authrole"}
    return json.dumps({**details, "nonce": nonce, "timestamp": timestamp, "session": session})


def _verifier(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _octets(text: str) -> bytes:
    # JSON may contain a lone surrogate, which strict UTF-8 cannot encode.
    return text.encode(errors="surrogatepass")
