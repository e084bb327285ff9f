"""The decider: reads the record of a split, decides who gets each message, and ends sessions whose filters fail."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from signalbox.errors import UnavailableError
from signalbox.messages import Message, MessageId
from signalbox.optimistic_update import optimistic_update
from signalbox.queues import QueueName, is_fifo
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.forwarding.matching import decide
from signalbox.splitting.forwarding.route import FILTER_STOPPED, Route
from signalbox.splitting.forwarding.use_recorder import UseRecorder
from signalbox.splitting.model.claims import Claim, Decision, SessionId
from signalbox.splitting.model.filters import Compiler
from signalbox.splitting.model.s3_objects import BatchMetadata, ObjectMetadata
from signalbox.splitting.model.split import Phase, SplitSession, ended
from signalbox.splitting.ports import Splits, SplitTooLarge

RECORD_AGE = timedelta(seconds=2)
"""The maximum age of the record by which messages are forwarded; it is part of `Timings.settle`."""
SAVE_TRIES = 10  # other writers: heartbeats of each session every few seconds, and the control function

logger = logging.getLogger(__name__)


class SplitUnknown(UnavailableError):
    """Raised for messages of a queue that belongs to no split; they stay in the queue."""


@dataclass(frozen=True, slots=True)
class DecidedBatch:
    """Messages with the decision on each, and the sessions that were ended because their filters fail."""

    route: Route
    messages: Sequence[Message]
    decisions: Mapping[MessageId, Decision]
    cancelled: tuple[SessionId, ...]


@dataclass(frozen=True, slots=True)
class FilterLimits:
    """The compiler of filters, the time of all filters in a call, and `Timings.settle`."""

    compiler: Compiler
    total: timedelta
    settle: timedelta


@dataclass(slots=True)
class Decider:
    """Decides on batches of messages; caches the record and its compiled filters. Not thread-safe.

    All filters together take at most their limit, so that every message of a batch is decided and sent within the
    function's timeout. `objects` reads the metadata of S3 objects, in less than that.
    """

    splits: Splits
    uses: UseRecorder
    filters: FilterLimits
    now: Callable[[], datetime]
    objects: ObjectMetadata | None = None
    _routes: dict[QueueName, Route] = field(default_factory=dict, init=False)

    def decide(self, messages: Sequence[Message], original: QueueName) -> DecidedBatch:
        """Return the decisions on messages of an original. Raises `SplitUnknown`."""
        budget = FilterBudget.of(self.filters.compiler, self.filters.total, is_fifo=is_fifo(original))
        route = self._route(original, budget)
        cancelled = self._end_unreadable(route)
        # At once, so that a call that is killed by the next filter has ended the session of this one.
        budget.on_stopped = lambda session, reason: cancelled.extend(
            self._ended(SessionId(session), route, reason=FILTER_STOPPED + reason)
        )
        decisions = self._decisions(messages, route, budget)
        return DecidedBatch(route, messages, decisions, tuple(cancelled))

    def _route(self, original: QueueName, budget: FilterBudget) -> Route:
        now = self.now()
        known = self._routes.get(original)
        if known is not None and now - known.read_at < RECORD_AGE:
            return known
        stored = self.splits.of_queue(original, known=known.stored if known else None)
        queues = stored.split.queues if stored else ()
        queue = next((one for one in queues if one.original == original), None)
        if stored is None or queue is None:
            raise SplitUnknown(f"queue {original!r} belongs to no split")
        configs = known.configs if known else {}
        self._routes[original] = Route.of(
            stored, queue, budget=budget, read_at=now, settle=self.filters.settle, known=configs
        )
        return self._routes[original]

    def _decisions(self, messages: Sequence[Message], route: Route, budget: FilterBudget) -> dict[MessageId, Decision]:
        started = self.now()
        metadata = route.metadata(messages, self.objects)
        return {
            message.message_id: self._decision(
                message, route, received_at=message.first_received_at or started, metadata=metadata, budget=budget
            )
            for message in messages
        }

    def _decision(
        self,
        message: Message,
        route: Route,
        *,
        received_at: datetime,
        metadata: BatchMetadata | None,
        budget: FilterBudget,
    ) -> Decision:
        """Return the decision by the sessions whose queues are open.

        Nothing has been sent to a FIFO queue that is closed, so that this changes no earlier decision on a message.
        """
        # In a FIFO queue every message is evaluated: a retry must send it to the same queue again.
        without = set() if route.queue.is_fifo else {SessionId(one) for one in budget.stopped}
        claims = claims_of(route, received_at)
        while True:
            asked = [claim for claim in claims if claim.session not in without]
            decision = decide(message, asked, sns=route.queue.sns, metadata=metadata, budget=budget)
            if decision.owner is None or self.uses.is_open(route.session_queues[decision.owner]):
                return decision
            without.add(decision.owner)

    def _end_unreadable(self, route: Route) -> list[SessionId]:
        """End the sessions whose filters cannot be read, each with its reason; return their ids."""
        return [
            session_id
            for unreadable, reason in route.unreadable.items()
            for session_id in self._ended(unreadable, route, reason=reason)
        ]

    def _ended(self, session_id: SessionId, route: Route, *, reason: str) -> tuple[SessionId, ...]:
        """End a live session; return its id, or nothing if another call has ended it."""
        is_live = any(one.session_id == session_id for one in route.split.live)
        return (session_id,) if is_live and self._end(session_id, route, reason=reason) else ()

    def _end(self, session_id: SessionId, route: Route, *, reason: str) -> bool:
        self._routes[route.original] = replace(route, read_at=route.read_at - RECORD_AGE)  # so that it is read again

        def attempt() -> bool | None:
            stored = self.splits.find(route.split.target)
            if stored is None:
                return False
            changed = ended(stored.split, session_id, reason=reason, now=self.now())
            if changed is stored.split:
                return False  # already ending
            return True if self.splits.save(changed, replacing=stored) else None

        # After too many concurrent writes, the next call finds the same filter and tries again.
        try:
            return optimistic_update(attempt, tries=SAVE_TRIES) or False
        except SplitTooLarge:  # a record of an earlier version; the other sessions get their messages
            logger.exception("session %s goes on", session_id)
            return False


def claims_of(route: Route, received_at: datetime) -> list[Claim]:
    """Return the claims of the sessions that may get a message first received at `received_at`."""
    routed = route.split.routed(route.original, received_at=received_at)
    if route.queue.is_fifo:
        routed = tuple(one for one in routed if not _is_silent(one, received_at, settle=route.settle))
    return [route.claims[one.session_id] for one in routed if one.session_id in route.claims]


def _is_silent(session: SplitSession, received_at: datetime, *, settle: timedelta) -> bool:
    """Return whether a session whose stopped filter ended it is skipped for a message of a FIFO queue.

    A message that was first received before all functions had the new record is still evaluated: a different answer
    than at the first attempt could send it to two sessions.
    """
    is_stopped = session.phase is Phase.ENDING and (session.reason or "").startswith(FILTER_STOPPED)
    return is_stopped and received_at >= session.since + settle
