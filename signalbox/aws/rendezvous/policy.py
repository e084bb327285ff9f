"""The policy of rendezvous, parsed from a function's environment variables."""

from dataclasses import replace
from typing import Any

from signalbox.aws.shared.settings import Settings
from signalbox.rendezvous.rules.matching import RendezvousPolicy

HOLD_LIMIT = "POLL_HOLD_LIMIT"
DURATIONS = {
    "sqs_patience": "OFFER_PATIENCE_SECONDS",
    "http_patience": "HTTP_OFFER_PATIENCE_SECONDS",
    "match_patience": "MATCH_PATIENCE_SECONDS",
    "proxy_recency": "PROXY_RECENCY_SECONDS",
    "poll_hold": "POLL_HOLD_SECONDS",
    "client_queue_lease": "CLIENT_QUEUE_LEASE_SECONDS",
}


def policy_of(settings: Settings) -> RendezvousPolicy:
    """Return the policy in a function's settings; an unset variable keeps the policy's default."""
    given: dict[str, Any] = {
        field: settings.seconds(name) for field, name in DURATIONS.items() if name in settings.variables
    }
    if HOLD_LIMIT in settings.variables:
        given["poll_hold_limit"] = settings.number(HOLD_LIMIT)
    return replace(RendezvousPolicy(), **given)
