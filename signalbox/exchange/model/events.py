"""The history events of declarations and deletions of exchanges, queues and bindings."""

from datetime import datetime

from signalbox.exchange.model.records import Binding, DeclaredQueue, ExchangeRecord, ResourceKind
from signalbox.history.event import HistoryEvent
from signalbox.sarracenia.rights.names import UserName

CAPABILITY = "exchange"
ADMINISTRATOR = "_"  # not a valid user name


def declared(record: ExchangeRecord | DeclaredQueue, *, user: UserName | None, at: datetime) -> HistoryEvent:
    """Return the event of a new exchange or queue, or of one whose settings have changed."""
    return _of_record(record, kind="declared", user=user, at=at, key=f":{record.version}")


def deleted(
    record: ExchangeRecord | DeclaredQueue, *, user: UserName | None, at: datetime, reason: str | None = None
) -> HistoryEvent:
    """Return the event of a deleted exchange or queue; `reason` is None for a deletion by command."""
    return _of_record(record, kind="deleted", user=user, at=at, reason=reason)


def bound(binding: Binding, *, user: UserName | None, at: datetime) -> HistoryEvent:
    """Return the event of a new binding; its topic is the pattern."""
    return _of_binding(binding, kind="declared", user=user, at=at)


def unbound(binding: Binding, *, user: UserName | None, at: datetime) -> HistoryEvent:
    """Return the event of a removed binding."""
    return _of_binding(binding, kind="deleted", user=user, at=at)


def _of_record(
    record: ExchangeRecord | DeclaredQueue,
    *,
    kind: str,
    user: UserName | None,
    at: datetime,
    key: str = "",
    reason: str | None = None,
) -> HistoryEvent:
    resource = record.resource
    # A resource that is deleted and declared again is a different one, so its creation time is part of the id.
    made = round(record.created_at.timestamp() * 1000)
    return HistoryEvent(
        event_id=f"{kind}:{resource.kind}:{resource.name}:{made}{key}",
        occurred_at=at,
        capability=CAPABILITY,
        kind=kind,
        outcome=resource.kind.value,
        reason=reason,
        source=resource.name if resource.kind is ResourceKind.EXCHANGE else None,
        destination=resource.name if resource.kind is ResourceKind.QUEUE else None,
        labels=_labels(user),
    )


def _of_binding(binding: Binding, *, kind: str, user: UserName | None, at: datetime) -> HistoryEvent:
    moment = round(at.timestamp() * 1000)
    ends = f"{binding.exchange}:{binding.target.kind}:{binding.target.name}"
    return HistoryEvent(
        event_id=f"{kind}:binding:{ends}:{binding.pattern}:{moment}",
        occurred_at=at,
        capability=CAPABILITY,
        kind=kind,
        outcome="binding",
        topic=str(binding.pattern),
        source=binding.exchange,
        destination=binding.target.name,
        labels=_labels(user),
    )


def _labels(user: UserName | None) -> dict[str, str]:
    return {"user": user or ADMINISTRATOR}
