"""Batches of a live FIFO queue by connection: its message group id is the connection's id."""

from collections.abc import Iterable
from typing import Any

from signalbox.live.session.state import ConnectionId


def by_connection(records: Iterable[dict[str, Any]]) -> dict[ConnectionId, list[dict[str, Any]]]:
    """Return the SQS records of each connection, in order."""
    found: dict[ConnectionId, list[dict[str, Any]]] = {}
    for record in records:
        found.setdefault(ConnectionId(record["attributes"]["MessageGroupId"]), []).append(record)
    return found
