"""The effects that a change of rights would have on present subscriptions."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from signalbox.live.admin.rights_sources import Change, RightsSources
from signalbox.live.model.state import Session
from signalbox.live.rights.coverage import may_overlap
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.permissions import Right

MAXIMUM_SUBSCRIPTIONS = 500  # in one answer


class Extent(IntEnum):
    """How much of a subscription's topics a session may receive; PARTLY if a deny may match some of them."""

    NOTHING = 0
    PARTLY = 1
    WHOLLY = 2


@dataclass(frozen=True, slots=True)
class JoinedSession:
    """A joined session, and the sources of its rights; None if its user was removed."""

    session: Session
    sources: RightsSources | None


def dry_run(sessions: Iterable[JoinedSession], change: Change) -> dict[str, object]:
    """Return the first 500 subscriptions that a change would end, limit or widen, and the number of the others."""
    found = [document for one in sessions for document in _changed(one, change)]
    return {
        "dry_run": True,
        "subscriptions": found[:MAXIMUM_SUBSCRIPTIONS],
        "more": max(0, len(found) - MAXIMUM_SUBSCRIPTIONS),
    }


def extent(rights: Rights, pattern: TopicPattern) -> Extent:
    """Return how much of a subscription's topics a session may receive."""
    if not rights.may_subscribe(pattern):
        return Extent.NOTHING
    denies = (deny for deny in rights.every_deny if deny.right is Right.READ)
    return Extent.PARTLY if any(may_overlap(deny.pattern, pattern) for deny in denies) else Extent.WHOLLY


def _changed(one: JoinedSession, change: Change) -> Iterator[dict[str, object]]:
    if one.sources is None:
        return
    before, after = one.sources.rights, change(one.sources).rights
    for pattern in _patterns(one.session):
        effect = _effect(extent(before, pattern), extent(after, pattern))
        if effect:
            yield {
                "user": one.sources.user,
                "session": one.session.session,
                "match": pattern.match.value,
                "uri": pattern.uri,
                "effect": effect,
            }


def _effect(before: Extent, after: Extent) -> str:
    if after is Extent.NOTHING:
        return "ends" if before else ""
    return "limits" if after < before else "permits" if after > before else ""


def _patterns(session: Session) -> Sequence[TopicPattern]:
    return sorted(session.subscriptions.values(), key=lambda pattern: (pattern.uri, pattern.match))
