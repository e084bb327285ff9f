"""The API of Arvados clusters: the user of a token, and the groups that the user may read.

https://doc.arvados.org/api/methods/users.html (`current`), https://doc.arvados.org/api/methods/groups.html (`list`).
"""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from signalbox.aws.live.json_documents import JsonDocuments, NoDocument
from signalbox.live.arvados.cluster import ClusterUser
from signalbox.live.identity.claims import MAXIMUM_GROUPS
from signalbox.live.identity.tokens import TokenProblem

CURRENT_USER, GROUPS = "/arvados/v1/users/current", "/arvados/v1/groups"
# One more than a session may have: who has more is refused, not silently given fewer rights.
QUERY = urlencode({"select": json.dumps(["uuid"]), "limit": MAXIMUM_GROUPS + 1, "count": "none"})
REFUSALS = (401, 403)
KEPT_SECONDS = 30.0  # so that a client that connects again and again makes two requests in this time
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
            is_admin = user.get("is_admin") is True
            # An administrator may read every group, so a list of them says nothing.
            groups = () if is_admin else _uuids(self.documents.read(f"{api}{GROUPS}?{QUERY}", headers))
        except NoDocument as problem:
            if problem.status in REFUSALS:
                return TokenProblem.CLUSTER
            logger.warning("the Arvados cluster did not answer: %s", problem)
            return TokenProblem.CLUSTER_AWAY
        return ClusterUser(str(user.get("uuid")), user.get("is_active") is True, is_admin, groups)


def _uuids(page: Mapping[str, Any]) -> tuple[str, ...]:
    items = page.get("items")
    if not isinstance(items, list):
        raise NoDocument("its list of groups has no items")
    return tuple(str(one.get("uuid")) for one in items if isinstance(one, dict))
