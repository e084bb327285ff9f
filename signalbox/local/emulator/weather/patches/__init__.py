"""Patches of MiniStack that are applied with weather only: one module for each, as those of the parent package."""

import time
from collections.abc import Mapping

from signalbox.local.emulator.patches.patch import Patch, original
from signalbox.local.emulator.weather.conditions import Weather
from signalbox.local.emulator.weather.iam_changes import Policies, Principal
from signalbox.local.emulator.weather.patches import (
    cold_starts,
    connections,
    function_limits,
    iam_delays,
    mapping_changes,
    queue_deliveries,
    queue_policies,
    recursive_loops,
    service_calls,
)
from signalbox.local.emulator.weather.sky import Lookups, Sky

ACCOUNT_ID = "ministack.core.responses:get_account_id"
QUEUES, QUEUE_URLS = "ministack.services.sqs:_queues", "ministack.services.sqs:_queue_name_to_url"
TABLES = "ministack.services.dynamodb:_tables"


def weather_patches(weather: Weather) -> tuple[Patch, ...]:
    """Return the patches of a weather, which are applied after all others."""
    gather = {"user": original(iam_delays.USER_POLICIES), "role": original(iam_delays.ROLE_POLICIES)}

    def policies(principal: Principal) -> Policies:
        kind, name = principal
        found: Policies = gather[kind](name, original(ACCOUNT_ID)())
        return found

    sky = Sky(weather.seed, time.monotonic, Lookups(_is_encrypted, _partition_key, policies, _queue_policy))
    return (
        iam_delays.patch(sky.iam),
        service_calls.patch(sky),
        queue_deliveries.patch(sky.dice),
        queue_policies.patch(sky.queue_policies),
        mapping_changes.patch(sky.mappings),
        recursive_loops.PATCH,
        function_limits.patch(weather.account_concurrency),
        cold_starts.PATCH,
        connections.patch(sky.dice),
    )


def _is_encrypted(queue: str) -> bool:
    return bool(_attributes(queue).get("KmsMasterKeyId"))


def _queue_policy(queue: str) -> str:
    return _attributes(queue).get("Policy") or ""


def _attributes(queue: str) -> Mapping[str, str]:
    entry = original(QUEUES).get(original(QUEUE_URLS).get(queue) or "")
    return entry["attributes"] if entry else {}


def _partition_key(table: str) -> str:
    entry = original(TABLES).get(table.rpartition("/")[2]) or {}
    return entry.get("pk_name") or ""
