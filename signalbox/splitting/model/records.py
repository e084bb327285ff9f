"""The JSON form of a split's record and of the samples stored with it."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from signalbox.errors import UnavailableError
from signalbox.queues import QueueName
from signalbox.splitting.forwarding.matching import SessionId
from signalbox.splitting.model.observed_state import Sample, Timings
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Phase, Replay, Split, SplitQueue, SplitSession, Stage
from signalbox.splitting.model.target import InvalidTarget, Target

VERSION = 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
# Samples of a queue without a new one for this time are dropped: each reconcile pass samples all existing queues.
KEPT_FOR = timedelta(hours=1)

Document = Mapping[str, Any]  # a JSON object


class UnreadableRecord(UnavailableError):
    """Raised when a record has a form that this version of Signalbox does not write; nothing is done with the split."""


def record_text(split: Split) -> str:
    """Return the record of a split as JSON."""
    document = {
        "record_version": VERSION,
        "target": str(split.target),
        "stage": split.stage,
        "since": split.since.isoformat(),
        "switch_timeout": split.switch_timeout.total_seconds(),
        "drain_timeout": _seconds(split.drain_timeout),
        "was_split": split.was_split,
        "queues": [_queue_document(queue) for queue in split.queues],
        "sessions": [_session_document(session) for session in split.sessions],
        "records_use": True,
    }
    return json.dumps(document, separators=(",", ":"))


def read_record(text: str) -> Split:
    """Return the split in a record. Raises `UnreadableRecord`."""
    try:
        document = json.loads(text)
        if document["record_version"] != VERSION:
            raise UnreadableRecord(f"record of a split of version {document['record_version']!r}; expected {VERSION}")
        return _split(document)
    except (AttributeError, KeyError, TypeError, ValueError, InvalidTarget) as error:
        raise UnreadableRecord(f"record of a split cannot be read: {error!r}") from error


def samples_text(samples: Mapping[QueueName, Sequence[Sample]]) -> str:
    """Return samples as JSON: for each, the time in microseconds since 1970 and the two counters."""
    document = {
        name: [((one.at - EPOCH) // MICROSECOND, one.waiting, one.in_flight) for one in of_queue]
        for name, of_queue in samples.items()
    }
    return json.dumps(document, separators=(",", ":"))


def read_samples(text: str) -> dict[QueueName, tuple[Sample, ...]]:
    """Return the samples by queue name."""
    return {
        QueueName(name): tuple(Sample(EPOCH + at * MICROSECOND, waiting, in_flight) for at, waiting, in_flight in found)
        for name, found in json.loads(text).items()
    }


def with_samples(
    known: Mapping[QueueName, Sequence[Sample]], new: Mapping[QueueName, Sample], *, timings: Timings
) -> dict[QueueName, tuple[Sample, ...]]:
    """Return the samples with `new` added, without samples that `is_empty` does not need and deleted queues."""
    added = {name: (*known.get(name, ()), *([new[name]] if name in new else [])) for name in {**known, **new}}
    newest = max((found[-1].at for found in added.values() if found), default=EPOCH)
    return {
        name: _still_asked_for(found, timings)
        for name, found in added.items()
        if found and newest - found[-1].at <= KEPT_FOR
    }


def _still_asked_for(samples: Sequence[Sample], timings: Timings) -> tuple[Sample, ...]:
    """Return the newest consecutive zero samples that `is_empty` needs, or only the newest sample."""
    newest = samples[-1]
    kept: list[Sample] = []
    for sample in reversed(samples):
        covers = len(kept) >= timings.empty_samples and newest.at - kept[-1].at >= timings.empty_for
        if covers or (kept and not (sample.is_zero and newest.is_zero)):
            break
        kept.append(sample)
    return tuple(reversed(kept))


def _queue_document(queue: SplitQueue) -> Document:
    return {
        "queue_id": queue.queue_id,
        "original": queue.original,
        "deployed": queue.deployed,
        "visibility": queue.visibility.total_seconds(),
        "sns": queue.sns,
        "tags": queue.tags,
        **({"s3_event": True} if queue.s3_event else {}),
        **({"kept": True} if queue.is_kept else {}),
    }


def _session_document(session: SplitSession) -> Document:
    exclusive = {"exclusive": sorted(session.exclusive)} if session.exclusive else {}
    return {
        "session_id": session.session_id,
        "owner": session.owner,
        "config": session.config,
        "started_at": session.started_at.isoformat(),
        "heartbeat_at": session.heartbeat_at.isoformat(),
        "phase": session.phase,
        "since": session.since.isoformat(),
        "queues": dict(session.queues),
        "stolen": sorted(session.stolen),
        "effective_at": session.effective_at.isoformat() if session.effective_at else None,
        "reason": session.reason,
        **exclusive,
        **({"replay": _replay_document(session.replay)} if session.replay else {}),
    }


def _replay_document(replay: Replay) -> Document:
    return {
        "since": replay.since.isoformat(),
        "until": replay.until.isoformat(),
        "positions": dict(replay.positions),
        "sent": replay.sent,
        "skipped": replay.skipped,
        "finished_at": replay.finished_at.isoformat() if replay.finished_at else None,
    }


def _split(document: Document) -> Split:
    return Split(
        target=Target.parse(document["target"]),
        queues=tuple(_queue(one) for one in document["queues"]),
        sessions=tuple(_session(one) for one in document["sessions"]),
        stage=Stage(document["stage"]),
        since=datetime.fromisoformat(document["since"]),
        switch_timeout=timedelta(seconds=document["switch_timeout"]),
        drain_timeout=_duration(document["drain_timeout"]),
        was_split=document["was_split"],
    )


def _queue(document: Document) -> SplitQueue:
    return SplitQueue(
        queue_id=QueueId(document["queue_id"]),
        original=QueueName(document["original"]),
        deployed=QueueName(document["deployed"]),
        visibility=timedelta(seconds=document["visibility"]),
        sns=document["sns"],
        tags=tuple((key, value) for key, value in document["tags"]),
        s3_event=document.get("s3_event", False),
        is_kept=document.get("kept", False),
    )


def _session(document: Document) -> SplitSession:
    return SplitSession(
        session_id=SessionId(document["session_id"]),
        owner=document["owner"],
        config=document["config"],
        started_at=datetime.fromisoformat(document["started_at"]),
        heartbeat_at=datetime.fromisoformat(document["heartbeat_at"]),
        phase=Phase(document["phase"]),
        since=datetime.fromisoformat(document["since"]),
        queues={QueueName(original): QueueName(name) for original, name in document["queues"].items()},
        stolen=frozenset(QueueName(original) for original in document["stolen"]),
        effective_at=datetime.fromisoformat(document["effective_at"]) if document["effective_at"] else None,
        reason=document["reason"],
        exclusive=frozenset(QueueName(original) for original in document.get("exclusive", ())),
        replay=_replay(document["replay"]) if document.get("replay") else None,
    )


def _replay(document: Document) -> Replay:
    return Replay(
        since=datetime.fromisoformat(document["since"]),
        until=datetime.fromisoformat(document["until"]),
        positions={QueueName(original): key for original, key in document["positions"].items()},
        sent=document["sent"],
        skipped=document["skipped"],
        finished_at=datetime.fromisoformat(document["finished_at"]) if document["finished_at"] else None,
    )


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()


def _duration(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)
