"""Reply documents for splits and sessions."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from signalbox.clock import Clock
from signalbox.errors import EffectFailed, RejectedError
from signalbox.nearest import suggestion
from signalbox.queues import QueueName, QueueUrl
from signalbox.splitting.control.effect_executor import queue_annotation
from signalbox.splitting.control.ports import Resources, temporary_names
from signalbox.splitting.control.precedence import precedence_notes
from signalbox.splitting.control.problems import problems
from signalbox.splitting.control.registry_reader import RegistryReader
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import Forwarder, Sample
from signalbox.splitting.model.split import Replay, Split, SplitSession, with_heartbeats
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import Annotations, Heartbeats, StoredSplit

ENVIRONMENT_ANNOTATION = "environment"
UNKNOWN = "unknown"

Counts = Mapping[QueueName, Sample]


class UnknownSession(RejectedError):
    """Raised when a target has no session of that name: it has ended, or its name is wrong."""


def unknown_session(target: Target, session_id: SessionId, known: Iterable[SessionId]) -> UnknownSession:
    """Return the error of a session that does not exist, with the nearest name of one that does."""
    hint = suggestion(session_id, known)
    return UnknownSession(f"{target} has no session {session_id!r}: it has ended, or the name is wrong{hint}")


@dataclass(frozen=True, slots=True)
class SplitPresenter:
    """Builds the documents of splits and sessions."""

    annotations: Annotations
    heartbeats: Heartbeats
    resources: Resources
    registries: RegistryReader
    queue_url: Callable[[QueueName], QueueUrl]
    clock: Clock

    def save_environment(self, target: Target, session: SplitSession, environment: Mapping[str, str]) -> None:
        """Store the variables for a session's command; every reply on the session contains them."""
        self.annotations.put(target, _environment_annotation(session), json.dumps(dict(environment)))

    def current(self, split: Split) -> Split:
        """Return a split with the newest heartbeats of its sessions."""
        return with_heartbeats(split, self.heartbeats.of(split))

    def session(self, split: Split, session_id: SessionId) -> dict[str, object]:
        """Return the document of one session. Raises `UnknownSession`."""
        found = split.session(session_id)
        if found is None:
            raise unknown_session(split.target, session_id, (one.session_id for one in split.sessions))
        return self._session(split, found, self.annotations.of(split.target))

    def split(self, stored: StoredSplit) -> dict[str, object]:
        """Return the document of a split, with the observed state and its sessions. Raises `EffectRefused`."""
        split = self.current(stored.split)
        annotations = self.annotations.of(split.target)
        found = self.resources.queues.observe(temporary_names(split), now=self.clock.now())
        counts = {name: sample for name, (_, sample) in found.items()}
        forwarders = self.resources.forwarders.observe([queue.original for queue in split.queues])
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
            "sessions": [self._session(split, session, annotations, counts) for session in split.sessions],
            "notes": problems(annotations),
        }

    def _target_reads(self, stored: StoredSplit) -> str:
        targets = self.resources.targets_of(stored.split.target)
        try:
            return targets.observe(stored.split, self.registries.of_split(stored))
        except EffectFailed:
            return UNKNOWN  # the rest of the document is still useful

    def _session(
        self, split: Split, session: SplitSession, annotations: Mapping[str, str], counts: Counts | None = None
    ) -> dict[str, object]:
        """Return the document of a session; with `counts`, as a part of its split's, which has the problems once."""
        queues = []
        for queue in split.queues:
            name = session.queues[queue.original]
            document: dict[str, object] = {"queue_id": queue.queue_id, "original": queue.original, "temporary": name}
            document |= {"url": self.queue_url(name), "exclusive": queue.original in session.exclusive}
            queues.append(document if counts is None else {**document, **_counts(counts, name)})
        mine = [
            annotations[queue_annotation(name)]
            for name in session.queues.values()
            if queue_annotation(name) in annotations
        ]
        variables = json.loads(annotations.get(_environment_annotation(session), "{}"))
        return {
            "session": session.session_id,
            "target": str(split.target),
            "owner": session.owner,
            "phase": session.phase,
            "started_at": session.started_at.isoformat(),
            "heartbeat_at": session.heartbeat_at.isoformat(),
            "reason": session.reason,
            "queues": queues,
            **({"environment": variables} if counts is None else {}),
            **({"replay": _replay_document(session.replay)} if session.replay else {}),
            "notes": [
                *(line for text in mine for line in text.splitlines()),
                *([replay_note(session.replay)] if session.replay else []),
                *precedence_notes(split, session),
                *(problems(annotations) if counts is None else ()),
            ],
        }


def replay_note(replay: Replay) -> str:
    """Return the progress of a replay as one line."""
    state = "replayed" if replay.finished_at else "so far replayed"
    skipped = f"; {replay.skipped} skipped, which cannot be marked or read" if replay.skipped else ""
    since = replay.since.isoformat(timespec="seconds")
    return f"{replay.sent} message{'' if replay.sent == 1 else 's'} kept since {since} {state}{skipped}"


def _replay_document(replay: Replay) -> dict[str, object]:
    return {
        "since": replay.since.isoformat(),
        "sent": replay.sent,
        "skipped": replay.skipped,
        "finished_at": replay.finished_at.isoformat() if replay.finished_at else None,
    }


def _counts(counts: Counts, name: QueueName) -> dict[str, int | None]:
    found = counts.get(name)
    return {"waiting": found.waiting if found else None, "in_flight": found.in_flight if found else None}


def session_annotation_names(session: SplitSession) -> list[str]:
    """Return the names of the annotations that can be deleted with a session."""
    return [_environment_annotation(session), *map(queue_annotation, session.queues.values())]


def _environment_annotation(session: SplitSession) -> str:
    # Named by a queue, because a session of the same name may have existed earlier in this split.
    return f"{ENVIRONMENT_ANNOTATION}:{min(session.queues.values())}"
