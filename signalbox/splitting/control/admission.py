"""Admission of splits and sessions: all checks, and the record that names every queue before it exists."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.errors import RejectedError, UnavailableError
from signalbox.queues import QueueName
from signalbox.splitting.consumers.registry import ConsumedQueue
from signalbox.splitting.model.claims import DEPLOYED, SessionId
from signalbox.splitting.model.records import MAXIMUM_BYTES, longest
from signalbox.splitting.model.session_config import QueueId, SessionConfig
from signalbox.splitting.model.split import (
    JOINABLE,
    Phase,
    Replay,
    Split,
    SplitQueue,
    SplitSession,
    Stage,
)
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import SplitTooLarge
from signalbox.splitting.queues.names import QueueNames

MINIMUM_RECEIVES = 2
"""The lowest `maxReceiveCount` of a queue that can be split: one receive is that of a killed call."""
# Of all sessions of a split. Their samples share one item. Another has all annotations, some of which are needed to
# undo it: its variables, `REASON_BYTES` of notes on each temporary queue, and `KEPT` problems of `PROBLEM_BYTES`.
MAXIMUM_TEMPORARY_QUEUES, MAXIMUM_VARIABLES_BYTES = 200, 150_000

MAXIMUM_MIRRORS = 40
"""The most sessions that mirror a queue. Each message is sent to each of them, and has an event for each; ten messages
of a FIFO group are 410 calls in a row, 4 of the 10 s of a call."""


class SessionRejected(RejectedError):
    """Raised when a session can never join the split of its target."""


class SplitEnding(UnavailableError):
    """Raised when a session cannot join because its split, or a session of the same name, is still ending."""


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A request to start a session; `config` is its stored JSON and `parsed_config` the parsed form.

    `reads_objects` is whether the stage may read the metadata of S3 objects. `replay` has the kept messages that the
    session gets first; an existing session of this name keeps its own.
    """

    session_id: SessionId
    owner: str
    config: str
    parsed_config: SessionConfig
    reads_objects: bool = False
    replay: Replay | None = None


def new_split(
    target: Target,
    found: tuple[ConsumedQueue, ...],
    *,
    names: QueueNames,
    random_parts: Iterator[str],
    now: datetime,
    switch_timeout: timedelta,
    drain_timeout: timedelta | None = None,
) -> Split:
    """Return a new split's record; `random_parts` yields the random parts of names. Raises `SessionRejected`."""
    originals = [queue.original for queue in found]
    for original in originals:
        if originals.count(original) > 1:
            ids = " and ".join(repr(queue.queue_id) for queue in found if queue.original == original)
            raise SessionRejected(f"queue {original!r} is described twice in the registry, as {ids}")
    for queue in found:
        _check_receives(queue)
    queues = tuple(
        SplitQueue(
            one.queue_id,
            one.original,
            names.for_deployed(one.original, random=next(random_parts)),
            one.visibility,
            one.sns,
            one.tags,
            one.s3_event,
        )
        for one in found
    )
    return Split(target, queues, (), Stage.STARTING, now, switch_timeout, drain_timeout)


def _check_receives(queue: ConsumedQueue) -> None:
    """Raise `SessionRejected` if one killed call of the function `split` makes a message a dead letter.

    The owner decides about the queue's redrive policy, so that it is not changed.
    """
    if queue.maximum_receives is not None and queue.maximum_receives < MINIMUM_RECEIVES:
        raise SessionRejected(
            f"queue {queue.original!r} has maxReceiveCount {queue.maximum_receives}: a function that is killed once "
            f"would make messages dead letters; set at least {MINIMUM_RECEIVES} in its RedrivePolicy"
        )


def with_session(
    split: Split, request: AdmissionRequest, *, names: QueueNames, random_parts: Iterator[str], now: datetime
) -> Split:
    """Return the record with a new session; unchanged if it has an identical one, to which this is a heartbeat.

    The record names all queues before any is created, so that no queue can be lost. Raises `SessionRejected` and
    `SplitEnding`.
    """
    same = split.session(request.session_id)
    _check_same(same, request)
    if same is not None:
        return split
    if split.stage not in JOINABLE or (split.stage is Stage.STARTING and split.sessions and not split.live):
        raise SplitEnding(f"the split of {split.target} is being undone; the session can start afterwards")
    _check_request(split, request)
    for queue in split.queues:
        _check_modes(split, queue, request)
        _check_mirrors(split, queue, request)
        _check_metadata(queue, request)
    session = SplitSession(
        session_id=request.session_id,
        owner=request.owner,
        config=request.config,
        started_at=now,
        heartbeat_at=now,
        phase=Phase.STARTING,
        since=now,
        queues={one.original: names.for_session(one.original, random=next(random_parts)) for one in split.queues},
        stolen=_originals(split, request.parsed_config.steals),
        exclusive=_originals(split, request.parsed_config.is_exclusive),
        mirrored=_originals(split, request.parsed_config.mirrors),
        replay=request.replay,
    )
    return replace(split, sessions=(*split.sessions, session))


def check_room(split: Split, documents: Sequence[object], environment: Mapping[str, str]) -> None:
    """Raise `SplitTooLarge` if a later step of a split with a new session could exceed an item.

    No later step is refused for its size, so that every session can end. `environment` is that of the new session; the
    others have the same variables.
    """
    sizes = {
        "temporary queues": (len(split.queues) * (len(split.sessions) + 1), MAXIMUM_TEMPORARY_QUEUES),
        "bytes in its record": (longest(split, documents), MAXIMUM_BYTES),
        "bytes of variables": (len(json.dumps(dict(environment))) * len(split.sessions), MAXIMUM_VARIABLES_BYTES),
    }
    excess = [f"{size} {unit}; at most {most} are allowed" for unit, (size, most) in sizes.items() if size > most]
    if excess:
        raise SplitTooLarge(f"with this session, the split of {split.target} would have {' and '.join(excess)}")


def _originals(split: Split, is_meant: Callable[[QueueId], bool]) -> frozenset[QueueName]:
    return frozenset(queue.original for queue in split.queues if is_meant(queue.queue_id))


def _check_same(same: SplitSession | None, request: AdmissionRequest) -> None:
    if same is None:
        return
    if (same.owner, same.config) != (request.owner, request.config):
        raise SessionRejected(
            f"session {request.session_id!r} already exists: {same.owner} owns it, or its filters differ"
        )
    if same.phase is Phase.ENDING:
        raise SplitEnding(f"session {request.session_id!r} is ending; it can start again afterwards")


def _check_request(split: Split, request: AdmissionRequest) -> None:
    if request.session_id == DEPLOYED:
        raise SessionRejected(f"a session cannot be named {DEPLOYED!r}: that is the name of the deployed consumer")
    known = sorted({str(queue.queue_id) for queue in split.queues})
    unknown = sorted(set(request.parsed_config.named_queues) - {queue.queue_id for queue in split.queues})
    if unknown:
        raise SessionRejected(f"{split.target} has no queues {', '.join(unknown)}; it has {', '.join(known)}")


def _check_modes(split: Split, queue: SplitQueue, request: AdmissionRequest) -> None:
    """Refuse a second session that would own messages of a queue which one of the two takes as a whole."""
    if not request.parsed_config.steals(queue.queue_id):
        return
    is_exclusive = request.parsed_config.is_exclusive(queue.queue_id)
    for other in split.live:
        holder = f"session {other.session_id!r} of {other.owner}"
        if queue.original in other.exclusive:
            raise SessionRejected(f"queue {queue.queue_id!r} is exclusive to {holder}; only queue_mode mirror can join")
        if is_exclusive and queue.original in other.stolen:
            raise SessionRejected(f"queue {queue.queue_id!r} cannot be exclusive: {holder} takes messages of it")
    for other in split.sessions:  # those that end may still be given messages
        if is_exclusive and queue.original in other.stolen:
            raise SplitEnding(f"session {other.session_id!r} still has queue {queue.queue_id!r}, and is ending")


def _check_mirrors(split: Split, queue: SplitQueue, request: AdmissionRequest) -> None:
    if not request.parsed_config.mirrors(queue.queue_id):
        return
    if sum(queue.original in one.mirrored for one in split.live) >= MAXIMUM_MIRRORS:
        raise SessionRejected(
            f"queue {queue.queue_id!r}: {MAXIMUM_MIRRORS} sessions mirror it, the most for a queue, since each message "
            "is sent to every one; end one of them, or take messages with queue_mode steal"
        )


def _check_metadata(queue: SplitQueue, request: AdmissionRequest) -> None:
    if not queue.s3_event or not request.parsed_config.uses_metadata(queue.queue_id):
        return
    asking = f"queue {queue.queue_id!r}: the filter uses S3Metadata"
    if not request.reads_objects:
        raise SessionRejected(f"{asking}, and the stage may read no bucket: splittable_buckets names none")
    if queue.is_fifo:  # a redelivered message must be sent to the same queue again
        raise SessionRejected(f"{asking}, which can change between two deliveries of a FIFO queue's message")
