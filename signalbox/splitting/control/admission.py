"""How splits begin and sessions join them: everything is checked and written down before anything is made."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.errors import RejectedError, UnavailableError
from signalbox.queues import QueueName
from signalbox.splitting.forwarding.matching import DEPLOYED, SessionId
from signalbox.splitting.model.naming import QueueNames
from signalbox.splitting.model.session_config import QueueId, SessionConfig
from signalbox.splitting.model.split import JOINABLE, Phase, Session, Split, SplitQueue, Stage
from signalbox.splitting.model.target import Target


class SessionRejected(RejectedError):
    """Raised when a session cannot join the split of its target, now or later."""


class SplitEnding(UnavailableError):
    """Raised when a session would join a split that is being undone: it can start when that is done."""


@dataclass(frozen=True, slots=True)
class FoundQueue:
    """A queue that a target consumes, as its registry and its variables say."""

    queue_id: QueueId
    original: QueueName
    visibility: timedelta
    sns: bool = False
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody who starts a session asks for: `config` as they wrote it, and as it was read."""

    session_id: SessionId
    owner: str
    config: str
    asks_for: SessionConfig


def new_split(
    target: Target,
    found: tuple[FoundQueue, ...],
    *,
    names: QueueNames,
    fresh: Iterator[str],
    now: datetime,
    switch_timeout: timedelta,
    drain_timeout: timedelta | None = None,
) -> Split:
    """Return the record with which a split begins; `fresh` yields random parts for names. Raises `SessionRejected`."""
    originals = [queue.original for queue in found]
    for original in originals:
        if originals.count(original) > 1:
            ids = " and ".join(repr(queue.queue_id) for queue in found if queue.original == original)
            raise SessionRejected(f"queue {original!r} is described twice in the registry, as {ids}")
    queues = tuple(
        SplitQueue(
            one.queue_id,
            one.original,
            names.for_deployed(one.original, random=next(fresh)),
            one.visibility,
            one.sns,
            one.tags,
        )
        for one in found
    )
    return Split(target, queues, (), Stage.STARTING, now, switch_timeout, drain_timeout)


def with_session(split: Split, request: Request, *, names: QueueNames, fresh: Iterator[str], now: datetime) -> Split:
    """Return the record with a session more; the same session a second time changes nothing.

    The record has the names of all queues before any is made, so that none can be lost sight of.
    Raises `SessionRejected` and `SplitEnding`.
    """
    same = split.session(request.session_id)
    _check_same(same, request)
    if same is not None:
        return split
    if split.stage not in JOINABLE or (split.stage is Stage.STARTING and split.sessions and not split.live):
        raise SplitEnding(f"the split of {split.target} is being undone; the session starts when that is done")
    _check_request(split, request)
    session = Session(
        session_id=request.session_id,
        owner=request.owner,
        config=request.config,
        started_at=now,
        heartbeat_at=now,
        phase=Phase.STARTING,
        since=now,
        queues={one.original: names.for_session(one.original, random=next(fresh)) for one in split.queues},
        stolen=frozenset(one.original for one in split.queues if request.asks_for.steals(one.queue_id)),
    )
    return replace(split, sessions=(*split.sessions, session))


def _check_same(same: Session | None, request: Request) -> None:
    if same is None:
        return
    if (same.owner, same.config) != (request.owner, request.config):
        raise SessionRejected(f"session {request.session_id!r} is there already, of {same.owner} or with other filters")
    if same.phase is Phase.ENDING:
        raise SplitEnding(f"session {request.session_id!r} is ending; it can start again when that is done")


def _check_request(split: Split, request: Request) -> None:
    if request.session_id == DEPLOYED:
        raise SessionRejected(f"a session cannot be called {DEPLOYED!r}, which is what the deployed consumer is called")
    known = sorted({str(queue.queue_id) for queue in split.queues})
    unknown = sorted(set(request.asks_for.named_queues) - {queue.queue_id for queue in split.queues})
    if unknown:
        raise SessionRejected(f"{split.target} has no queues {', '.join(unknown)}; it has {', '.join(known)}")
