"""The history events of sessions: who came and went, and what was subscribed to; never a secret or an address."""

from dataclasses import dataclass
from datetime import datetime

from signalbox.history.event import HistoryEvent
from signalbox.live.session.state import FrameId, Session
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName

CAPABILITY = "live"


@dataclass(frozen=True, slots=True)
class Cause:
    """Of what something comes: a frame that was heard at a moment. `reason` is why a session ends, if it does.

    With `is_revoked` subscriptions end because the right to them was taken away.
    """

    frame: FrameId
    at: datetime
    reason: str = ""
    is_revoked: bool = False


def started(listener: Listener, realm: ExchangeName, cause: Cause) -> HistoryEvent:
    """Return the event of a session that has joined."""
    return _of_session("started", listener, realm, cause)


def ended(listener: Listener, realm: ExchangeName, cause: Cause) -> HistoryEvent:
    """Return the event of a session that has ended."""
    return _of_session("ended", listener, realm, cause, reason=cause.reason)


def refused(session: Session, cause: Cause) -> HistoryEvent:
    """Return the event of a secret that was wrong. Whose it was to be is not told: people mistake the two."""
    return HistoryEvent(
        event_id=f"session:refused:{cause.frame}",
        occurred_at=cause.at,
        capability=CAPABILITY,
        kind="session",
        outcome="refused",
        source=session.realm,
    )


def subscribed(pattern: TopicPattern, listener: Listener, realm: ExchangeName, cause: Cause) -> HistoryEvent:
    """Return the event of a session that gets the events of a pattern."""
    return _of_subscription("subscribed", pattern, listener, realm, cause)


def unsubscribed(pattern: TopicPattern, listener: Listener, realm: ExchangeName, cause: Cause) -> HistoryEvent:
    """Return the event of a session that gets them no more, or may have them no more."""
    outcome = "revoked" if cause.is_revoked else "unsubscribed"
    return _of_subscription(outcome, pattern, listener, realm, cause)


def dropped(session: Session, error: str, cause: Cause) -> HistoryEvent:
    """Return the event of a publication that is not distributed, and of which its publisher does not hear."""
    listener = session.listener
    return HistoryEvent(
        event_id=f"publication:dropped:{cause.frame}",
        occurred_at=cause.at,
        capability=CAPABILITY,
        kind="publication",
        outcome="dropped",
        reason=error,
        source=session.realm,
        labels=_labels(listener) if listener else {},
    )


def _of_session(
    outcome: str, listener: Listener, realm: ExchangeName, cause: Cause, *, reason: str | None = None
) -> HistoryEvent:
    return HistoryEvent(
        event_id=f"session:{outcome}:{listener.session}:{cause.frame}",
        occurred_at=cause.at,
        capability=CAPABILITY,
        kind="session",
        outcome=outcome,
        reason=reason,
        source=realm,
        labels=_labels(listener),
    )


def _of_subscription(
    outcome: str, pattern: TopicPattern, listener: Listener, realm: ExchangeName, cause: Cause
) -> HistoryEvent:
    return HistoryEvent(
        event_id=f"subscription:{outcome}:{listener.session}:{pattern.subscription_id}:{cause.frame}",
        occurred_at=cause.at,
        capability=CAPABILITY,
        kind="subscription",
        outcome=outcome,
        topic=pattern.uri,
        source=realm,
        labels={**_labels(listener), "match": pattern.match.value},
    )


def _labels(listener: Listener) -> dict[str, str]:
    return {"user": listener.authid, "role": listener.authrole}
