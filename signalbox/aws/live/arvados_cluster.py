"""The API of Arvados clusters: the user of a token.

https://doc.arvados.org/api/methods/users.html (`current`).
"""

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from signalbox.aws.live.json_documents import JsonDocuments, NoDocument
from signalbox.live.arvados.cluster import ClusterUser
from signalbox.live.identity.tokens import TokenProblem

CURRENT_USER = "/arvados/v1/users/current"
REFUSALS = (401, 403)
KEPT_SECONDS = 30.0  # so that a client that connects again and again makes one request in this time
MAXIMUM_KEPT = 1_000

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArvadosUsers:
    """`ClusterUsers` over HTTPS. Answers are kept for a short time under a hash of the token."""

    documents: JsonDocuments
    now: Callable[[], float] = time.monotonic
    _kept: dict[bytes, tuple[float, ClusterUser | TokenProblem]] = field(default_factory=dict)

    def find(self, api: str, token: str) -> ClusterUser | TokenProblem:
        """Return the user of a token, or why there is none: the cluster refuses it, or does not answer."""
        key = hashlib.sha256(f"{api} {token}".encode()).digest()
        until, kept = self._kept.get(key, (0.0, TokenProblem.CLUSTER_AWAY))
        if self.now() < until:
            return kept
        found = self._asked(api, token)
        if found is not TokenProblem.CLUSTER_AWAY:
            if len(self._kept) >= MAXIMUM_KEPT:
                self._kept.clear()
            self._kept[key] = self.now() + KEPT_SECONDS, found
        return found

    def _asked(self, api: str, token: str) -> ClusterUser | TokenProblem:
        headers = {"authorization": f"Bearer {token}"}
        try:
            user = self.documents.read(api + CURRENT_USER, headers)
        except NoDocument as problem:
            if problem.status in REFUSALS:
                return TokenProblem.CLUSTER
            logger.warning("the Arvados cluster did not answer: %s", problem)
            return TokenProblem.CLUSTER_AWAY
        return ClusterUser(str(user.get("uuid")), user.get("is_active") is True)
