"""Who a client is: tickets and WAMP-CRA, checked against what is kept of secrets, which are kept nowhere."""

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
# Secrets are drawn by the stage, with more randomness than anybody could try through, so what slows trying down is not
# needed; browsers derive this key in JavaScript, where 100,000 rounds take seconds. Crossbar's default, too.
ITERATIONS = 1_000


class AuthMethod(StrEnum):
    """How clients can show who they are."""

    ANONYMOUS = "anonymous"
    TICKET = "ticket"
    WAMPCRA = "wampcra"


@dataclass(frozen=True, slots=True)
class Credentials:
    """What is kept of a user's secret.

    `verifier` is a hash of the key that is derived from it, and enough to check tickets. WAMP-CRA has both sides know
    that key, so whoever reads `key` can join as the user: it is kept only for users who are to use that method.
    """

    salt: str
    verifier: str
    iterations: int = ITERATIONS
    key: str | None = None

    @classmethod
    def of(cls, secret: str, *, salt: str, with_key: bool, iterations: int = ITERATIONS) -> "Credentials":
        """Return what to keep of a new secret; `salt` is 32 random hexadecimal digits, as in `decoy`."""
        key = derived_key(secret, salt=salt, iterations=iterations)
        return cls(salt, _verifier(key), iterations, key if with_key else None)

    @classmethod
    def decoy(cls, authid: str, *, pepper: str) -> "Credentials":
        """Return the credentials of somebody who is unknown: always the same, and such that nothing fits them.

        So a client cannot tell unknown users from wrong secrets. `pepper` is a secret of the stage.
        """
        salt = hmac.digest(_octets(pepper), _octets(authid), hashlib.sha256).hex()
        return cls(salt[:32], verifier="", key=salt[32:])

    def __repr__(self) -> str:
        return "Credentials(…)"

    @property
    def methods(self) -> frozenset[AuthMethod]:
        """Return the methods that these credentials can be used with."""
        return frozenset({AuthMethod.TICKET} if self.key is None else {AuthMethod.TICKET, AuthMethod.WAMPCRA})

    @property
    def key_matches_verifier(self) -> bool:
        """Say whether `key` is the one that `verifier` is of."""
        return self.key is not None and hmac.compare_digest(_verifier(self.key), self.verifier)

    @property
    def challenge_extra(self) -> dict[str, object]:
        """Return what a client needs to derive the key for WAMP-CRA from its secret."""
        return {"salt": self.salt, "keylen": KEY_BYTES, "iterations": self.iterations}

    def accepts_ticket(self, ticket: str) -> bool:
        """Say whether a ticket is the secret; it takes as long when it is not."""
        key = derived_key(ticket, salt=self.salt, iterations=self.iterations)
        return hmac.compare_digest(_verifier(key), self.verifier)

    def accepts_signature(self, given: str, *, challenge: str) -> bool:
        """Say whether a text is this user's signature of a challenge; it takes as long when it is not."""
        # Who has nothing to sign with has the empty verifier; to sign with that must not help.
        is_usable = self.key is not None and self.verifier != ""
        expected = signature(self.key or "", challenge=challenge)
        return hmac.compare_digest(_octets(expected), _octets(given)) and is_usable


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a session is, as WAMP calls it."""

    authid: str
    authrole: str
    method: AuthMethod

    @property
    def details(self) -> dict[str, object]:
        """Return what WELCOME says of it."""
        return {
            "authid": self.authid,
            "authrole": self.authrole,
            "authmethod": self.method.value,
            "authprovider": PROVIDER,
        }


def chosen_method(offered: Iterable[str], *, accepted: Iterable[AuthMethod]) -> AuthMethod | None:
    """Return the first method of a client that is accepted, or None."""
    names = {method.value: method for method in accepted}
    return next((names[name] for name in offered if name in names), None)


def derived_key(secret: str, *, salt: str, iterations: int) -> str:
    """Return the key that a secret stands for: PBKDF2 with SHA-256, as the base64 text that clients sign with."""
    key = hashlib.pbkdf2_hmac("sha256", _octets(secret), _octets(salt), iterations, KEY_BYTES)
    return base64.b64encode(key).decode()


def signature(key: str, *, challenge: str) -> str:
    """Return the signature of a challenge (advanced profile, «Challenge Response Authentication»)."""
    return base64.b64encode(hmac.digest(_octets(key), _octets(challenge), hashlib.sha256)).decode()


def challenge_text(identity: Identity, *, session: SessionId, nonce: str, now: datetime) -> str:
    """Return what a client is to sign; `nonce` is random."""
    timestamp = now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps({**identity.details, "nonce": nonce, "timestamp": timestamp, "session": session})


def _verifier(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _octets(text: str) -> bytes:
    # A client may say half of a surrogate pair, too.
    return text.encode(errors="surrogatepass")
