"""History events of deliveries to connections: aggregated per batch, and never with application data."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from statistics import median

from signalbox.history.event import HistoryEvent
from signalbox.live.model.events import CAPABILITY
from signalbox.live.outbox.results import BatchResult, DeliveryOutcome

OUTCOMES = {
    DeliveryOutcome.BLOCKED: "failed",
    DeliveryOutcome.GONE: "dropped",
    DeliveryOutcome.TOO_SLOW: "dropped",
    DeliveryOutcome.TOO_LARGE: "dropped",
    DeliveryOutcome.UNCONFIRMED: "dropped",
}
REASONS = {
    DeliveryOutcome.BLOCKED: "the connection takes nothing now",
    DeliveryOutcome.GONE: "the connection is gone",
    DeliveryOutcome.TOO_SLOW: "the client is too slow",
    DeliveryOutcome.TOO_LARGE: "the client requests too many past events",
    DeliveryOutcome.UNCONFIRMED: "nobody knows whether a reply was posted",
}


def delivery_events(delivered: BatchResult, *, now: datetime) -> Iterator[HistoryEvent]:
    """Yield the history events of a delivery: one for posted events, one for a failure."""
    if delivered.events or delivered.backfilled:
        posted = _event(delivered, "posted", now=now)
        ids = ",".join(map(str, delivered.publications))
        yield replace(posted, labels={**posted.labels, "publications": ids})
    if delivered.outcome in OUTCOMES:
        yield _event(delivered, OUTCOMES[delivered.outcome], now=now, reason=REASONS[delivered.outcome])


def closing_summary(delivered: BatchResult, *, now: datetime) -> Mapping[str, object]:
    """Return the log record of a closed connection: session, age, counters and delays."""
    session, totals = delivered.session, delivered.totals
    return {
        "connection": delivered.connection,
        "session": session and session.session,
        "user": session.identity.authid if session and session.identity else None,
        "realm": session and session.realm,
        "seconds": round((now - session.opened_at).total_seconds()) if session else None,
        "events": totals.events,
        "replies": totals.replies,
        "bytes": totals.size,
        "lag_p50_ms": totals.median_ms,
        "lag_max_ms": totals.longest_ms,
    }


def _event(delivered: BatchResult, outcome: str, *, now: datetime, reason: str | None = None) -> HistoryEvent:
    session = delivered.session
    facts = {"events": delivered.events, "past": delivered.backfilled, "skipped": delivered.skipped}
    user = {"session": str(session.session), "user": session.identity.authid} if session and session.identity else {}
    lags = [lag.total_seconds() * 1000 for lag in delivered.lags]
    return HistoryEvent(
        event_id=f"delivered:{outcome}:{delivered.first}",
        occurred_at=now,
        capability=CAPABILITY,
        kind="delivered",
        outcome=outcome,
        reason=reason,
        source=session.realm if session else None,
        size_bytes=delivered.size,
        latency_ms=round(median(lags)) if lags else None,
        labels=user | {name: str(number) for name, number in facts.items() if number},
    )
