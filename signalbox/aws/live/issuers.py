"""The keys that issuers publish, fetched by OpenID Connect Discovery and cached by the function instance.

A fetch makes two requests with short time-outs. A storm of tokens with unknown keys causes one fetch of an issuer in
`PAUSE_SECONDS`, and after one that failed in `FAILED_SECONDS`; the last keys stay in use for `STALE_SECONDS`.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from signalbox.aws.live.json_documents import REQUEST_SECONDS, JsonDocuments, NoDocument

DISCOVERY = "/.well-known/openid-configuration"  # OpenID Connect Discovery 1.0, 4
MAXIMUM_KEYS = 100
MAXIMUM_ISSUERS = 1_000
FRESH_SECONDS = 600.0  # a key that the issuer withdraws is accepted this long
STALE_SECONDS = 86_400.0
PAUSE_SECONDS = 5.0  # between two fetches of an issuer
FAILED_SECONDS = 20.0  # several times as long as a fetch may take, so that a slow issuer leaves time to others

Key = Mapping[str, Any]

logger = logging.getLogger(__name__)


class _NoAnswer(Exception):
    """Raised when an issuer does not answer as the specification requires."""


@dataclass(slots=True)
class _Entry:
    """The known keys of an issuer; times are of the monotonic clock. It is not asked before `next_at`."""

    keys: tuple[Key, ...] = ()
    fetched_at: float | None = None
    next_at: float | None = None
    exclusive: Lock = field(default_factory=Lock)

    def has(self, key_id: str | None) -> bool:
        return key_id is None or any(key.get("kid", key_id) == key_id for key in self.keys)

    def is_younger(self, seconds: float, now: float) -> bool:
        return self.fetched_at is not None and now - self.fetched_at < seconds

    def may_be_fetched(self, now: float) -> bool:
        return self.next_at is None or now >= self.next_at


@dataclass(slots=True)
class IssuerKeys:
    """The cached keys of issuers, read with `documents`."""

    documents: JsonDocuments = field(default_factory=JsonDocuments)
    now: Callable[[], float] = time.monotonic
    _entries: dict[str, _Entry] = field(default_factory=dict)

    def find(self, issuer: str, key_id: str | None) -> Sequence[Key] | None:
        """Return an issuer's keys, fetched again if `key_id` is not among them; None if the issuer does not answer."""
        if len(self._entries) >= MAXIMUM_ISSUERS:
            self._entries.clear()
        entry = self._entries.setdefault(issuer, _Entry())
        if not (entry.has(key_id) and entry.is_younger(FRESH_SECONDS, self.now())):
            self._refresh(issuer, entry, key_id)
        return entry.keys if entry.is_younger(STALE_SECONDS, self.now()) else None

    def _refresh(self, issuer: str, entry: _Entry, key_id: str | None) -> None:
        """Fetch the keys. If another thread is fetching them, wait for it only if `key_id` is unknown."""
        is_usable = entry.has(key_id) and entry.is_younger(STALE_SECONDS, self.now())
        patience = -1 if is_usable else max(0.0, min(self.documents.left(), 2 * REQUEST_SECONDS))
        if not entry.exclusive.acquire(blocking=not is_usable, timeout=patience):
            return
        try:
            began_at = self.now()
            if entry.may_be_fetched(began_at):
                entry.keys = self._fetched(issuer)
                entry.fetched_at, entry.next_at = began_at, began_at + PAUSE_SECONDS
        except (_NoAnswer, NoDocument) as problem:
            entry.next_at = self.now() + FAILED_SECONDS
            logger.warning("the keys of issuer %s were not fetched: %s", issuer, problem)
        finally:
            entry.exclusive.release()

    def _fetched(self, issuer: str) -> tuple[Key, ...]:
        discovered = self.documents.read(issuer.removesuffix("/") + DISCOVERY)
        if discovered.get("issuer") != issuer:
            raise _NoAnswer("its discovery document is another issuer's")
        keys = self.documents.read(str(discovered.get("jwks_uri"))).get("keys")
        if not isinstance(keys, list):
            raise _NoAnswer("its key set has no list of keys")
        return tuple(key for key in keys[:MAXIMUM_KEYS] if isinstance(key, dict))
