"""Patches of MiniStack that are applied with fault injection only."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original
from tests.fault_injection import (
    connections,
    deliveries,
    iam_changes,
    injection,
    late_metrics,
    mapping_states,
    queue_policies,
)
from tests.fault_injection.iam_changes import Policies, Principal
from tests.fault_injection.injection import FaultInjection

ACCOUNT_ID = "ministack.core.responses:get_account_id"
QUEUES, QUEUE_URLS = "ministack.services.sqs:_queues", "ministack.services.sqs:_queue_name_to_url"


def fault_patches(seed: int) -> tuple[Patch, ...]:
    """Return the patches of a seed, which are applied after all others."""
    gather = {"user": original(iam_changes.USER_POLICIES), "role": original(iam_changes.ROLE_POLICIES)}

    def policies(principal: Principal) -> Policies:
        kind, name = principal
        found: Policies = gather[kind](name, original(ACCOUNT_ID)())
        return found

    faults = FaultInjection(
        seed,
        time.monotonic,
        is_encrypted=_is_encrypted,
        policies=policies,
        queue_policy=_queue_policy,
        queue_tags=_queue_tags,
        outages=Path(os.environ["STATE_DIR"]).parent / "outages.json",
    )
    return (
        iam_changes.patch(faults.iam),
        injection.patch(faults),
        deliveries.patch(faults.chance),
        queue_policies.patch(faults.queue_policies),
        mapping_states.patch(faults.mappings),
        connections.patch(faults.chance),
        late_metrics.patch(_attributes),
    )


def _is_encrypted(queue: str) -> bool:
    return bool(_attributes(queue).get("KmsMasterKeyId"))


def _queue_policy(queue: str) -> str:
    return _attributes(queue).get("Policy") or ""


def _queue_tags(queue: str) -> Mapping[str, str] | None:
    entry = _queue(queue)
    return entry["tags"] if entry else None


def _attributes(queue: str) -> Mapping[str, str]:
    entry = _queue(queue)
    return entry["attributes"] if entry else {}


def _queue(name: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = original(QUEUES).get(original(QUEUE_URLS).get(name) or "")
    return found
