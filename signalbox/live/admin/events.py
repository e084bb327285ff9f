"""The history events of grants, groups and secrets that change."""

from datetime import datetime

from signalbox.history.event import HistoryEvent
from signalbox.live.admin.commands import ChangeMembers, GiveGrant, TakeGrant
from signalbox.sarracenia.rights.names import ExchangeName, UserName

CAPABILITY = "live"
ADMINISTRATOR = "_"  # not a valid user name


def changed(command: GiveGrant | TakeGrant, *, by: UserName | None, at: datetime) -> HistoryEvent:
    """Return the event of an added or removed grant or deny; its topic is the pattern."""
    is_given = isinstance(command, GiveGrant)
    if command.is_deny and is_given:
        return _of_grant(command, "denied", by=by, at=at)
    if command.is_deny:
        return _of_grant(command, "undenied", by=by, at=at)
    if is_given:
        return _of_grant(command, "granted", by=by, at=at)
    return _of_grant(command, "ungranted", by=by, at=at)


def membership(command: ChangeMembers, user: UserName, *, by: UserName | None, at: datetime) -> HistoryEvent:
    """Return the event of a user who was added to a group of the stage or removed from it."""
    outcome = "removed" if command.is_removal else "added"
    return HistoryEvent(
        event_id=f"group:{outcome}:{command.realm}:{command.group}:{user}:{_milliseconds(at)}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="group",
        outcome=outcome,
        source=command.realm,
        destination=user,
        labels={"group": command.group, "by": by or ADMINISTRATOR},
    )


def rights_ended(user: UserName, realm: ExchangeName, *, by: UserName | None, at: datetime) -> HistoryEvent:
    """Return the event of a removed user whose grants, denies and groups in a realm have ended."""
    return HistoryEvent(
        event_id=f"user:removed:{realm}:{user}:{_milliseconds(at)}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="user",
        outcome="removed",
        source=realm,
        destination=user,
        labels={"by": by or ADMINISTRATOR},
    )


def secret_changed(user: UserName, *, by: UserName | None, at: datetime) -> HistoryEvent:
    """Return the event of a user's new secret."""
    return HistoryEvent(
        event_id=f"secret:{user}:{_milliseconds(at)}",
        occurred_at=at,
        capability=CAPABILITY,
        kind="secret",
        outcome="changed",
        destination=user,
        labels={"by": by or ADMINISTRATOR},
    )


def _of_grant(command: GiveGrant | TakeGrant, kind: str, *, by: UserName | None, at: datetime) -> HistoryEvent:
    pattern = command.grant.pattern
    what = f"{command.realm}:{command.principal}:{command.grant.right}:{pattern.match}:{pattern.uri}"
    return HistoryEvent(
        event_id=f"{kind}:{what}:{_milliseconds(at)}",
        occurred_at=at,
        capability=CAPABILITY,
        kind=kind,
        outcome=command.grant.right.value,
        topic=pattern.uri,
        source=command.realm,
        destination=command.principal,
        labels={"match": pattern.match.value, "by": by or ADMINISTRATOR},
    )


def _milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)
