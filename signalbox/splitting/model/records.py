"""The JSON form of a split's record and of the samples stored with it."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from signalbox.errors import UnavailableError
from signalbox.forms import Form, Forms
from signalbox.queues import QueueName
from signalbox.splitting.model.observed_state import Sample, Timings, held_samples
from signalbox.splitting.model.split import Split, SplitQueue, SplitSession
from signalbox.splitting.model.target import InvalidTarget, Target

VERSION = 1
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
# An item of DynamoDB has 409,600 bytes, with the names of its attributes and its key.
MAXIMUM_BYTES = 400_000
# What later steps add: to a session its reason, times and counts, and for each queue the place of its replay; to a
# queue its mark.
SESSION_ROOM, QUEUE_ROOM = 1_000, 100
MAXIMUM_SAMPLES = 60  # of a queue, about: all queues of a split share one item

FORMS = Forms(
    {
        datetime: Form(datetime.isoformat, datetime.fromisoformat),
        timedelta: Form(timedelta.total_seconds, lambda seconds: timedelta(seconds=seconds)),
        Target: Form(str, Target.parse),
    }
)
FORMS.record(SplitQueue, names={"is_kept": "kept"}, sparse=["s3_event", "is_kept"])
FORMS.record(SplitSession, sparse=["exclusive", "mirrored", "replay", "released"])
SPLIT = FORMS.record(
    Split, order=["target", "stage", "since", "switch_timeout", "drain_timeout", "was_split", "queues", "sessions"]
)


class UnreadableRecord(UnavailableError):
    """Raised when a record has a form that this version of Signalbox does not write; nothing is done with the split."""


def record_text(split: Split) -> str:
    """Return the record of a split as JSON."""
    document = {"record_version": VERSION, **SPLIT.write(split), "records_use": True}
    return json.dumps(document, separators=(",", ":"))


def documents_text(documents: Sequence[object]) -> str:
    """Return the documents of a registry as JSON."""
    return json.dumps(list(documents), separators=(",", ":"))


def longest(split: Split, documents: Sequence[object]) -> int:
    """Return the bytes that the item of a record may have before another session starts."""
    rooms = sum(SESSION_ROOM + QUEUE_ROOM * len(split.queues) for _ in split.sessions) + QUEUE_ROOM * len(split.queues)
    return len(record_text(split)) + len(documents_text(documents)) + rooms


def read_record(text: str) -> Split:
    """Return the split in a record. Raises `UnreadableRecord`."""
    try:
        document = json.loads(text)
        if document["record_version"] != VERSION:
            raise UnreadableRecord(f"record of a split of version {document['record_version']!r}; expected {VERSION}")
        return SPLIT.read(document)
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
        if found and newest - found[-1].at <= timings.empty_for  # each pass samples all queues that exist
    }


def _still_asked_for(samples: Sequence[Sample], timings: Timings) -> tuple[Sample, ...]:
    """Return the newest consecutive samples without waiting messages that `is_empty` needs, or only the newest one."""
    newest = samples[-1]
    kept: list[Sample] = []
    for sample in reversed(samples):
        covers = len(kept) >= timings.empty_samples and newest.at - kept[-1].at >= timings.empty_for
        if covers or (kept and not sample.waiting == newest.waiting == 0):
            break
        kept.append(sample)
    is_dense = len(kept) > timings.empty_samples and kept[1].at - kept[2].at < timings.empty_for / MAXIMUM_SAMPLES
    if is_dense and kept[1].is_zero == kept[2].is_zero:
        del kept[1]
    return (*_first_held(samples, before=kept[-1], timings=timings), *reversed(kept))


def _first_held(samples: Sequence[Sample], *, before: Sample, timings: Timings) -> Sequence[Sample]:
    """Return the first of the samples that count held messages, if it is not kept anyway."""
    held = held_samples(samples)
    is_known = len(held) > 1 and held[0].at - held[1].at <= timings.empty_for
    return held[-1:] if is_known and held[-1].at < before.at else ()
