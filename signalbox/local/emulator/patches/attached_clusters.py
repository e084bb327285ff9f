"""Patch: an EKS cluster has the endpoint and certificate of a Kubernetes API server that runs outside of the emulator.

MiniStack starts a cluster in Docker. Without Docker it describes one with an empty certificate, and keeps the secret in
the URL of its token reviews to itself. The file `clusters.json` has all of these; an API server may start at any time.
"""

import base64
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

DESCRIBE = "ministack.services.eks:_describe_cluster"
FOR_REVIEW = "ministack.services.eks:_cluster_for_auth"
CREATE = "ministack.services.eks:_create_cluster"
CLUSTERS = "ministack.services.eks:_clusters"

Records = Iterable[tuple[tuple[str, str, str], dict[str, Any]]]
"""MiniStack's records of clusters by account, region and name."""


def with_attached_clusters(
    look: Callable[..., Any], *, records: Callable[[], Records], file: Path
) -> Callable[..., Any]:
    """Return a `look` that finds clusters with the endpoints, certificates and secrets of the file."""

    def look_after_update(*arguments: object, **named: object) -> Any:  # noqa: ANN401 - MiniStack's results
        attached = _attached(file)
        for (_, _, name), record in records():
            if name in attached:
                record.update(_fields(attached[name]))
        return look(*arguments, **named)

    return look_after_update


def _attached(file: Path) -> Mapping[str, Mapping[str, str]]:
    try:
        found: Mapping[str, Mapping[str, str]] = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    return found


def _fields(attached: Mapping[str, str]) -> dict[str, object]:
    """Return the fields of MiniStack's record; those that begin with `_` are not in answers."""
    certificate = base64.b64encode(attached["ca"].encode()).decode()
    return {
        "endpoint": attached["endpoint"],
        "certificateAuthority": {"data": certificate},
        "_auth_token": attached["secret"],
    }


def _replacements() -> Mapping[str, object]:
    file = Path(os.environ["STATE_DIR"]).parent / "clusters.json"
    records = original(CLUSTERS).all_items
    return {name: with_attached_clusters(original(name), records=records, file=file) for name in (DESCRIBE, FOR_REVIEW)}


PATCH = Patch(
    sources={DESCRIBE: "5487cce55ff0251d", FOR_REVIEW: "1e436610b19f3115", CREATE: "7c6cfd442ddb5240"},
    replacements=_replacements,
)
