"""The story of a message, made from its events: what it is, its steps, and where it is now."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from signalbox.history.event import HistoryEvent
from signalbox.history.trace.places import Place, last_places
from signalbox.history.trace.search import PROXY_POLL, message_ids, publications_of
from signalbox.history.trace.steps import Step, start_of, step_of


@dataclass(frozen=True, slots=True)
class Story:
    """The way of one message. `ids` are all that it had; `exchanges` are those that routed it, by its topic."""

    message_id: str
    ids: tuple[str, ...]
    topic: str | None
    publisher: str | None
    size_bytes: int | None
    steps: tuple[Step, ...]
    places: tuple[Place, ...]
    exchanges: tuple[str, ...]

    @property
    def started_at(self) -> datetime:
        """Return the time of the first step."""
        return self.steps[0].at

    def document(self) -> dict[str, object]:
        """Return the story as JSON, with its events."""
        return {
            "message_id": self.message_id,
            "ids": list(self.ids),
            "topic": self.topic,
            "publisher": self.publisher,
            "size_bytes": self.size_bytes,
            "started_at": self.started_at.isoformat(),
            "steps": [self._step_document(one) for one in self.steps],
            "places": [{"place": one.name, "state": one.state, "since": one.since.isoformat()} for one in self.places],
        }

    def after_ms(self, step: Step) -> int:
        """Return the milliseconds from the first step to another one."""
        return round((step.at - self.started_at).total_seconds() * 1000)

    def _step_document(self, step: Step) -> dict[str, object]:
        event = step.event
        known = {} if event is None else {"kind": event.kind, "outcome": event.outcome, "event_id": event.event_id}
        return {
            "at": step.at.isoformat(),
            "after_ms": self.after_ms(step),
            "capability": step.capability,
            **known,
            "text": step.text,
            "reason": step.reason or None,
            "labels": {} if event is None else dict(event.labels),
        }


def stories(events: Sequence[HistoryEvent]) -> list[Story]:
    """Return the story of each message that events are of, in order of their starts."""
    made = [_story(ids, group) for ids, group in _groups(events)]
    return sorted(made, key=lambda one: (one.started_at, one.message_id))


def _groups(events: Sequence[HistoryEvent]) -> Iterable[tuple[frozenset[str], list[HistoryEvent]]]:
    """Group events by message: two events are of one message if they share an id of it.

    The batch of a connection belongs to each message that it had.
    """
    groups: list[tuple[frozenset[str], list[HistoryEvent]]] = []
    for event in events:
        ids = message_ids(event) or (frozenset() if publications_of(event) else frozenset({event.event_id}))
        same = [one for one in groups if not one[0].isdisjoint(ids)]
        if ids:
            merged = [other for one in same for other in one[1]]
            groups = [one for one in groups if one not in same]
            groups.append((frozenset(ids.union(*(one[0] for one in same))), [*merged, event]))
    for batch in (one for one in events if not message_ids(one) and publications_of(one)):
        holders = [group for ids, group in groups if not ids.isdisjoint(publications_of(batch))]
        for group in holders or [_alone(groups, batch)]:
            group.append(batch)
    return groups


def _alone(groups: list[tuple[frozenset[str], list[HistoryEvent]]], batch: HistoryEvent) -> list[HistoryEvent]:
    group: list[HistoryEvent] = []
    groups.append((publications_of(batch), group))
    return group


def _story(ids: frozenset[str], group: Sequence[HistoryEvent]) -> Story:
    events = sorted(group, key=lambda one: (one.occurred_at, one.event_id))
    depths = _depths(events)
    starts = [step for event in events if not depths.get(event.message_id or "", 0) and (step := start_of(event))]
    first = min(starts, key=lambda one: one.at, default=None)
    steps = [step_of(one, depth=depths.get(one.message_id or "", 0)) for one in events]
    return Story(
        message_id=_root(events) or min(ids),
        ids=tuple(sorted(ids)),
        topic=next((one.topic for one in events if one.topic is not None), None),
        publisher=next((name for one in events if (name := one.labels.get("publisher"))), None),
        size_bytes=next((one.size_bytes for one in events if one.size_bytes is not None), None),
        steps=tuple([first, *steps] if first else steps),
        places=last_places(events),
        exchanges=tuple(dict.fromkeys(name for one in events if (name := _exchange_of(one)))),
    )


def _exchange_of(event: HistoryEvent) -> str | None:
    """Return the exchange that is the source of an event; None if a queue is, as of a replay or a kept message."""
    is_routed = event.capability == "exchange" and (event.source or "").startswith("x")
    return event.source if is_routed else None


def _root(events: Sequence[HistoryEvent]) -> str | None:
    """Return the first id of a message, which is no copy of another one."""
    copies = {one.labels.get("copy") for one in events}
    ids = (one.labels.get("client") if one.kind == PROXY_POLL else one.message_id for one in events)
    return next((one for one in ids if one and one not in copies), None)


def _depths(events: Sequence[HistoryEvent]) -> Mapping[str, int]:
    """Return how many queues each id is behind the first one."""
    parents = {copy: one.message_id for one in events if one.message_id and (copy := one.labels.get("copy"))}
    return {copy: len(_line(copy, parents)) for copy in parents}


def _line(id_: str, parents: Mapping[str, str]) -> list[str]:
    """Return the ids that an id follows, each once."""
    line: list[str] = []
    while (parent := parents.get(id_)) is not None and parent not in line:
        line.append(parent)
        id_ = parent
    return line
