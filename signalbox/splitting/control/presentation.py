"""Splits and sessions as replies tell them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from signalbox.errors import EffectFailed
from signalbox.queues import QueueName
from signalbox.splitting.control.effect_executor import queue_note
from signalbox.splitting.control.problems import troubles
from signalbox.splitting.control.protocol import GONE
from signalbox.splitting.forwarding.matching import SessionId
from signalbox.splitting.model.control_ports import ControlPorts, temporary_names
from signalbox.splitting.model.ports import StoredSplit
from signalbox.splitting.model.split import Session, Split
from signalbox.splitting.model.target import Target
from signalbox.splitting.model.world import Forwarder, Sample

ENVIRONMENT_NOTE = "environment"
UNKNOWN = "unknown"

Counts = Mapping[QueueName, Sample]


def gone(session_id: SessionId) -> dict[str, object]:
    """Return what is told of a session that is not there, or not any more."""
    return {"session": session_id, "phase": GONE}


@dataclass(frozen=True, slots=True)
class Telling:
    """Tells splits and sessions."""

    ports: ControlPorts

    def note_environment(self, target: Target, session: Session, environment: Mapping[str, str]) -> None:
        """Keep what a session's command is to have in its environment; with each sign of life it is told again."""
        self.ports.store.notes.put(target, _environment_note(session), json.dumps(dict(environment)))

    def session(self, split: Split, session_id: SessionId) -> dict[str, object]:
        """Return what is told of one session."""
        found = split.session(session_id)
        return self._session(split, found, self.ports.store.notes.of(split.target)) if found else gone(session_id)

    def split(self, stored: StoredSplit) -> dict[str, object]:
        """Return what is told of a split: how the world is, and its sessions. Raises `EffectRefused`."""
        split = stored.split
        notes = self.ports.store.notes.of(split.target)
        found = self.ports.queues.observe(temporary_names(split), now=self.ports.now())
        counts = {name: sample for name, (_, sample) in found.items()}
        forwarders = self.ports.forwarders.observe([queue.original for queue in split.queues])
        queues = [
            {
                "queue_id": queue.queue_id,
                "original": queue.original,
                "deployed": queue.deployed,
                "forwarding": forwarders.get(queue.original, Forwarder()).state,
                **_counts(counts, queue.deployed),
            }
            for queue in split.queues
        ]
        return {
            "target": str(split.target),
            "stage": split.stage,
            "since": split.since.isoformat(),
            "target_reads": self._target_reads(stored),
            "queues": queues,
            "sessions": [self._session(split, session, notes, counts) for session in split.sessions],
            "notes": troubles(notes),
        }

    def _target_reads(self, stored: StoredSplit) -> str:
        targets = self.ports.targets_of(stored.split.target)
        try:
            return targets.observe(stored.split, self.ports.registry_of(stored))
        except EffectFailed:
            return UNKNOWN  # the rest is worth to be told all the same

    def _session(
        self, split: Split, session: Session, notes: Mapping[str, str], counts: Counts | None = None
    ) -> dict[str, object]:
        queues = []
        for queue in split.queues:
            name = session.queues[queue.original]
            told = {"queue_id": queue.queue_id, "original": queue.original, "temporary": name}
            told["url"] = self.ports.queue_url(name)
            queues.append(told if counts is None else {**told, **_counts(counts, name)})
        mine = [notes[queue_note(name)] for name in session.queues.values() if queue_note(name) in notes]
        return {
            "session": session.session_id,
            "target": str(split.target),
            "owner": session.owner,
            "phase": session.phase,
            "started_at": session.started_at.isoformat(),
            "heartbeat_at": session.heartbeat_at.isoformat(),
            "reason": session.reason,
            "queues": queues,
            "environment": json.loads(notes.get(_environment_note(session), "{}")),
            "notes": [line for text in mine for line in text.splitlines()] + troubles(notes),
        }


def _counts(counts: Counts, name: QueueName) -> dict[str, int | None]:
    found = counts.get(name)
    return {"waiting": found.waiting if found else None, "in_flight": found.in_flight if found else None}


def session_notes(session: Session) -> list[str]:
    """Return the names of the notes that are of use only as long as a session is there."""
    return [_environment_note(session), *map(queue_note, session.queues.values())]


def _environment_note(session: Session) -> str:
    # By its queues, since a session of the same name may have been there before in the same split.
    return f"{ENVIRONMENT_NOTE}:{min(session.queues.values())}"
