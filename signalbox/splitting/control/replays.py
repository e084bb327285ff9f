"""Replays: kept messages are sent to a session's temporary queues before its filters apply to others."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from signalbox.errors import EffectFailed, RejectedError
from signalbox.fifo import FifoBatch
from signalbox.kept.objects import KeptObject, is_kept, key_at, read_batch
from signalbox.kept.settings import ReplayRefused, readable
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName
from signalbox.sending import Delivery, batches
from signalbox.splitting.control.ports import KeptStore, Outlets
from signalbox.splitting.control.problems import ProblemLog
from signalbox.splitting.control.record_updates import RecordChanged, changed
from signalbox.splitting.control.routes import RouteReader
from signalbox.splitting.forwarding.deliveries import marked
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.forwarding.matching import decide
from signalbox.splitting.forwarding.route import FILTER_STOPPED, Route
from signalbox.splitting.model import events
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.session_config import SessionConfig
from signalbox.splitting.model.split import Replay, Split, SplitSession, ended, with_replay
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import Splits, StoredSplit

# A step ends with a write of the record, so that a killed function repeats at most one step.
REPLAYING_FOR = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A session's request for the messages kept in the time `since`, by the IAM unique id of its sender."""

    since: timedelta
    principal: str

    def replay(self, split: Split, config: SessionConfig, kept: KeptStore | None, *, now: datetime) -> Replay:
        """Return the replay of the kept queues of a split that the session's filters are for.

        Raises `ReplayRefused` if no queue is kept, if the sender may not read one that is, or if a filter needs the
        metadata of S3 objects, which the function that replays may not read.
        """
        wanted = [one for one in split.queues if config.claims(one.queue_id)]
        settings = {str(one.original): kept.settings.find(one.original) if kept else None for one in wanted}
        on = readable(settings, self.principal)
        if any(one.s3_event and config.uses_metadata(one.queue_id) for one in wanted):
            raise ReplayRefused("a filter with S3Metadata cannot be applied to kept messages: leave --since out")
        since = now - self.since
        starts = {one.queue: key_at(one.queue, max(since, one.oldest(now))) for one in on}
        return Replay(since, now, starts)


@dataclass(frozen=True, slots=True)
class SessionReplayer:
    """Replays kept messages into the queues of sessions."""

    splits: Splits
    kept: KeptStore | None
    outlets: Outlets
    routes: RouteReader
    problems: ProblemLog

    def step(self, stored: StoredSplit, session_id: SessionId) -> bool:
        """Replay some messages, oldest first for each queue, and save the progress; return whether to continue at once.

        It decides by the record as it was read.

        A failure is recorded, and the next pass continues: it must not delay the split's other sessions. Of the object
        at which it failed, messages may be sent again; a FIFO queue drops those.
        """
        target, session = stored.split.target, stored.split.session(session_id)
        if session is None or session.replay is None or self.kept is None:
            return False
        replay, until = session.replay, self._now() + REPLAYING_FOR
        try:
            for original in session.replay.positions:
                route = self._route(stored, original)
                for key in filter(is_kept, self.kept.reader.keys(original, after=replay.positions[original])):
                    if KeptObject.parse(key).kept_at >= replay.until:
                        break
                    replay = self._replayed(key, route, session, replay)
                    if self._now() >= until:
                        return self._saved(target, session_id, replay)
        except EffectFailed as error:
            self._saved(target, session_id, replay)
            self.problems.record(target, str(error))
            return False
        return self._saved(target, session_id, replace(replay, finished_at=self._now()))

    def _now(self) -> datetime:
        return self.routes.clock.now()

    def _saved(self, target: Target, session_id: SessionId, replay: Replay) -> bool:
        save = partial(with_replay, session_id=session_id, replay=replay)
        changed(self.splits, target, save)
        return True

    def _route(self, stored: StoredSplit, original: QueueName) -> Route:
        queue = next(one for one in stored.split.queues if one.original == original)
        return self.routes.of(stored, queue, within=REPLAYING_FOR)

    def _replayed(self, key: str, route: Route, session: SplitSession, replay: Replay) -> Replay:
        """Send the matching messages of one object; return the progress with its key."""
        stored_as, original, queue = KeptObject.parse(key), route.original, route.queue
        found = self._messages(key)
        budget = self.routes.budget(REPLAYING_FOR)
        matching = [one for one in found or () if self._matches(one, session, route, budget)]
        copies = [marked(one, session.queues[original], at=stored_as.kept_at) for one in matching]
        sendable = [one for one in copies if one is not None]
        ids = self._send(sendable, session.queues[original], is_fifo=queue.is_fifo)
        sent = [one for one in sendable if one.message_id in ids]
        at, target = self._now(), route.split.target
        self.outlets.record(
            [events.replayed(one, session, queue, target, at=at, copy=ids[one.message_id]) for one in sent]
        )
        skipped = len(matching) - len(sent) + (found is None)
        return replace(
            replay,
            positions={**replay.positions, original: key},
            sent=replay.sent + len(sent),
            skipped=replay.skipped + skipped,
        )

    def _messages(self, key: str) -> Sequence[Message] | None:
        """Return the messages of an object, none if it was deleted meanwhile, and None if it cannot be read."""
        text = self.kept.reader.read(key) if self.kept else None
        try:
            return () if text is None else read_batch(text)
        except RejectedError:
            return None  # a newer version of Signalbox kept them

    def _matches(self, message: Message, session: SplitSession, route: Route, budget: FilterBudget) -> bool:
        """Return whether the session's filter matches. Raises `RecordChanged` if that ended the session."""
        claims = [route.claims[session.session_id]] if session.session_id in route.claims else []
        metadata = route.metadata((message,), None)
        decision = decide(message, claims, sns=route.queue.sns, metadata=metadata, budget=budget)
        for verdict in decision.stopped:
            reason = FILTER_STOPPED + verdict.reason
            end = partial(ended, session_id=verdict.session, reason=reason, now=self._now())
            changed(self.splits, route.split.target, end)
            raise RecordChanged(f"session {verdict.session!r} is ended: its filter was stopped")
        return decision.owner is not None or bool(decision.copies)

    def _send(
        self, messages: Sequence[Message], destination: QueueName, *, is_fifo: bool
    ) -> Mapping[MessageId, MessageId]:
        """Send copies in order; return the new ids of those that SQS does not refuse. Raises `EffectFailed`."""
        work = FifoBatch([(one, Delivery(one, destination, is_copy=True)) for one in messages], is_fifo)
        ids: dict[MessageId, MessageId] = {}
        while ready := work.take_ready():
            for call in batches(ready):
                sent = self.outlets.sender.send(call)
                if any(reason is None for _, reason in sent.failed):
                    raise EffectFailed(f"kept messages are not accepted by queue {destination!r}")
                ids |= sent.ids
        return ids
