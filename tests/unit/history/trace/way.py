"""The events of one message: published, copied to a split queue, returned, split again, and posted to a connection."""

from datetime import UTC, datetime, timedelta
from typing import Any

from signalbox.history.event import HistoryEvent

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
FIELDS = ("message_id", "topic", "source", "destination", "reason", "latency_ms", "attempt", "sequence", "size_bytes")


def event(event_id: str, seconds: float, capability: str, kind: str, outcome: str, **values: Any) -> HistoryEvent:
    """Return an event some seconds after the start; values that are no fields are labels."""
    fields = {name: value for name, value in values.items() if name in FIELDS}
    labels = {name: str(value) for name, value in values.items() if name not in FIELDS}
    at = START + timedelta(seconds=seconds)
    return HistoryEvent(event_id, at, capability, kind, outcome, **fields, labels=labels)


PUBLISHED = {"message_id": "m-1", "topic": "orders.new", "source": "xs_orders", "publisher": "alice", "size_bytes": 412}
LOGGED = event("logged:m-1:xs_orders", 0.9, "exchange", "logged", "live", **PUBLISHED, sequence=4, publication="812")
COPIED = event(
    "routed:m-1:q_orders:delivered",
    1,
    "exchange",
    "routed",
    "delivered",
    **PUBLISHED,
    destination="q_orders",
    latency_ms=200,
    attempt=1,
    copy="copy-1",
)
SPLIT = event(
    "routed:copy-1:ann-orders",
    2,
    "splitting",
    "routed",
    "session",
    message_id="copy-1",
    source="q_orders",
    destination="ann-orders",
    latency_ms=900,
    session="ann",
    owner="Ann",
    verdict="tenant: matches '^Avi'",
    copy="copy-2",
)
POSTED = event(
    "delivered:posted:b-1", 2.5, "live", "delivered", "posted", source="xs_orders", session="77", user="carol",
    events="1", publications="812",
)  # fmt: skip
RETURNED = event(
    "returned:copy-2:deployed-orders",
    60,
    "splitting",
    "returned",
    "deployed",
    message_id="copy-2",
    source="q_orders",
    destination="deployed-orders",
    session="ann",
    owner="Ann",
    copy="copy-3",
)
WAY = (LOGGED, COPIED, SPLIT, POSTED, RETURNED)
