"""The history events of sessions, subscriptions and dead letters; they never hold a secret or an address."""

from dataclasses import dataclass
from datetime import datetime

from signalbox.history.event import HistoryEvent
from signalbox.live.model.state import FrameId, Session
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName

CAPABILITY = "live"


@dataclass(frozen=True, slots=True)
class Cause:
    """The inbox message that caused effects, and when it was sent; `reason` is why the session ends, if it does.

    With `is_revoked`, subscriptions end because the user lost the right to them.
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


def refused(session: Session, cause: Cause, reason: str = "") -> HistoryEvent:
    """Return the event of a failed login, without the user: people type secrets into the user field by mistake."""
    return HistoryEvent(
        event_id=f"session:refused:{cause.frame}",
        occurred_at=cause.at,
        capability=CAPABILITY,
        kind="session",
        outcome="refused",
        reason=reason or None,
        source=session.realm,
    )


def subscribed(pattern: TopicPattern, listener: Listener, realm: ExchangeName, cause: Cause) -> HistoryEvent:
    """Return the event of a session that subscribes to a pattern."""
    return _of_subscription("subscribed", pattern, listener, realm, cause)


def unsubscribed(pattern: TopicPattern, listener: Listener, realm: ExchangeName, cause: Cause) -> HistoryEvent:
    """Return the event of a subscription that ends by the client's request or because a right was revoked."""
    outcome = "revoked" if cause.is_revoked else "unsubscribed"
    return _of_subscription(outcome, pattern, listener, realm, cause)


def dropped(session: Session, error: str, cause: Cause) -> HistoryEvent:
    """Return the event of a refused publication whose publisher gets no reply."""
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


def frame_refused(session: Session, cause: Cause) -> HistoryEvent:
    """Return the event of a client's frame that is not a request of the client's protocol."""
    listener = session.listener
    return HistoryEvent(
        event_id=f"frame:refused:{cause.frame}",
        occurred_at=cause.at,
        capability=CAPABILITY,
        kind="frame",
        outcome="refused",
        source=session.realm,
        labels=_labels(listener) if listener else {},
    )


def dead_letter(message_id: MessageId, *, holder: str, at: datetime) -> HistoryEvent:
    """Return the event of a dead-lettered message, which is not a valid item of its `holder`, such as an outbox.

    The message in the dead-letter queue has the connection and the full reason.
    """
    return HistoryEvent(
        event_id=f"dead_letter:{message_id}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="dead_letter",
        outcome="dead",
        reason=f"nothing that {holder} has",
        message_id=message_id,
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
