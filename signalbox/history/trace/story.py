"""The story of a message, made from its events: what it is, its steps, and where it is now."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    return sorted(map(_story, _groups(events)), key=lambda one: (one.started_at, one.message_id))


@dataclass(eq=False, slots=True)
class _Group:
    """The events of one message, and all its ids."""

    ids: set[str]
    events: list[HistoryEvent]


def _groups(events: Sequence[HistoryEvent]) -> Iterable[_Group]:
    """Group events by message: two events are of one message if they share an id of it.

    The batch of a connection belongs to each message that it had.
    """
    by_id: dict[str, _Group] = {}
    batches = [one for one in events if not message_ids(one) and publications_of(one)]
    for event in events:
        if ids := message_ids(event) or (not publications_of(event) and {event.event_id}):
            _join(by_id, _Group(set(ids), [event]))
    for batch in batches:
        holders = _found(by_id, publications_of(batch))
        for group in holders:
            group.events.append(batch)
        if not holders:
            _join(by_id, _Group(set(publications_of(batch)), [batch]))
    return _found(by_id, by_id)


def _join(by_id: dict[str, _Group], added: _Group) -> None:
    """Add a group, as one with all others that have an id of it; the smaller ones move, so that few move often."""
    largest, *others = sorted([*_found(by_id, added.ids), added], key=lambda one: len(one.events), reverse=True)
    for other in others:
        largest.ids |= other.ids
        largest.events += other.events
    by_id.update(dict.fromkeys(itertools.chain(added.ids, *(one.ids for one in others)), largest))


def _found(by_id: Mapping[str, _Group], ids: Iterable[str]) -> Collection[_Group]:
    """Return the groups that have one of the ids, each once."""
    return {id(group): group for one in ids if (group := by_id.get(one))}.values()


def _story(group: _Group) -> Story:
    events = sorted(group.events, key=lambda one: (one.occurred_at, one.event_id))
    depths = _depths(events)
    starts = [step for event in events if not depths.get(event.message_id or "", 0) and (step := start_of(event))]
    first = min(starts, key=lambda one: one.at, default=None)
    steps = [step_of(one, depth=depths.get(one.message_id or "", 0)) for one in events]
    return Story(
        message_id=_root(events) or min(group.ids),
        ids=tuple(sorted(group.ids)),
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
