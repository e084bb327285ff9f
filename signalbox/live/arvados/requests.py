"""The frames of Arvados' clients: `subscribe`, `unsubscribe`, and everything else, which gets the status 400.

Source: arvados/arvados, services/ws/session_v0.go, `Receive`. Go finds the names of fields without regard to case, and
takes null for a missing field.
"""

import json
from dataclasses import dataclass
from typing import NoReturn

from signalbox.live.arvados.filters import canonical

MAXIMUM_LOG_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SubscribeRequest:
    """A request for the rows that pass filters, and with `last_log_id` other than 0 for the past ones after it."""

    filters: str | None = None
    last_log_id: int = 0


@dataclass(frozen=True, slots=True)
class UnsubscribeRequest:
    """A request to end the first subscription with equal filters."""

    filters: str | None = None


@dataclass(frozen=True, slots=True)
class BadRequest:
    """A frame that is no request."""


Request = SubscribeRequest | UnsubscribeRequest | BadRequest


def decode(text: str) -> Request:
    """Parse a client's frame; return `BadRequest` instead of raising."""
    try:
        document = json.loads(text, parse_constant=_refused)
        if not isinstance(document, dict):
            return BadRequest()
        fields = {name.lower(): value for name, value in document.items()}
        filters, last_log_id = canonical(fields.get("filters")), _log_id(fields.get("last_log_id"))
    except (TypeError, ValueError, RecursionError):
        return BadRequest()
    if fields.get("method") == "subscribe":
        return SubscribeRequest(filters, last_log_id)
    return UnsubscribeRequest(filters) if fields.get("method") == "unsubscribe" else BadRequest()


def status(code: int) -> str:
    """Return the answer to a request: its HTTP status as JSON, as the original writes it."""
    return f'{{"status":{code}}}'


def _log_id(value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not -MAXIMUM_LOG_ID - 1 <= value <= MAXIMUM_LOG_ID:
        raise ValueError("last_log_id: expected a 64-bit integer")
    return value


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
