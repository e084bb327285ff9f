"""What a function reads from its environment; `stacks/` writes the same names."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from signalbox.rendezvous.rules.matching import Policy


@dataclass(frozen=True, slots=True)
class Settings:
    """A function's environment variables; asking for one that the stack did not give is a `KeyError`."""

    variables: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return a variable as it stands."""
        return self.variables[name]

    def number(self, name: str) -> int:
        """Return a variable as a whole number."""
        return int(self.variables[name])

    def seconds(self, name: str) -> timedelta:
        """Return a variable, in seconds, as a duration."""
        return timedelta(seconds=float(self.variables[name]))

    def policy(self) -> Policy:
        """Return the policy of rendezvous; what a function is not given does not concern it and has its default."""
        given: dict[str, Any] = {
            field: self.seconds(name) for field, name in DURATIONS.items() if name in self.variables
        }
        if HOLD_LIMIT in self.variables:
            given["poll_hold_limit"] = self.number(HOLD_LIMIT)
        return replace(Policy(), **given)


HOLD_LIMIT = "POLL_HOLD_LIMIT"
DURATIONS = {
    "sqs_patience": "OFFER_PATIENCE_SECONDS",
    "http_patience": "HTTP_OFFER_PATIENCE_SECONDS",
    "match_patience": "MATCH_PATIENCE_SECONDS",
    "proxy_recency": "PROXY_RECENCY_SECONDS",
    "poll_hold": "POLL_HOLD_SECONDS",
    "client_queue_lease": "CLIENT_QUEUE_LEASE_SECONDS",
}


class SystemClock:
    """`Clock`: the real one."""

    def now(self) -> datetime:
        """Return the current moment, in UTC."""
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)
