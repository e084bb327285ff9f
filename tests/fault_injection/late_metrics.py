"""Rule: the metrics of a new queue are silent for some seconds.

The emulator measures a queue when its metrics are read. On AWS, a queue that becomes active has none for up
to 15 minutes.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from signalbox.local.emulator.patches.cloudwatch_metrics import READ, requested_queues
from signalbox.local.emulator.patches.patch import Patch, original

SILENT_SECONDS = 30.0  # less than the shortest time after which a queue expires

CREATED_AT = "CreatedTimestamp"
Query = Mapping[str, Any]


def late(
    read: Callable[..., object], attributes: Callable[[str], Mapping[str, str]], clock: Callable[[], float] = time.time
) -> Callable[..., object]:
    """Return a GetMetricData without the queries of new queues; `attributes` are those of a queue by its name."""

    def is_silent(query: Query) -> bool:
        created = (float(attributes(name).get(CREATED_AT, 0)) for name in requested_queues(query))
        return any(clock() - at < SILENT_SECONDS for at in created)

    def read_late(params: object, request: Mapping[str, Any], *others: object) -> object:
        asked: Iterable[Query] = (request or {}).get("MetricDataQueries", ())
        heard = [query for query in asked if not is_silent(query)]
        return read(params, {**(request or {}), "MetricDataQueries": heard}, *others)

    return read_late


def patch(attributes: Callable[[str], Mapping[str, str]]) -> Patch:
    """Return the patch, which relies on the emulator's own patch of GetMetricData."""
    return Patch(sources={}, replacements=lambda: {READ: late(original(READ), attributes)})
