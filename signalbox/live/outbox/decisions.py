"""The state of a connection's outbox, and the rules by which its only writer posts, skips or defers an item."""

from base64 import urlsafe_b64encode
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from hashlib import blake2b
from typing import NewType, TypeVar

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.arvados import row_state
from signalbox.live.arvados.row_state import NO_ROWS, RowState
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.state import Session
from signalbox.live.outbox.items import ItemId, Reply, SubscriptionEvent
from signalbox.live.outbox.totals import NO_TOTALS, Totals
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.messages import SubscriptionId

# SQS redelivers an item before any later one of its message group, and a batch of a FIFO queue has at most ten.
KEPT_ITEMS = 20
# arvados-ws has the same limit. A slower client is disconnected; it reconnects and requests the missed events.
MAXIMUM_WAIT = timedelta(seconds=60)
# An event that was in the log when the backfill was read is in the outbox within seconds, or is redelivered to it.
WATERMARKS_KEPT_FOR = timedelta(minutes=5)

# Posting an event writes nothing to the table, so the totals are saved only at this interval.
TOTALS_SAVED_EVERY = timedelta(minutes=1)

SequenceNumbers = Mapping[RoutingKey, int]
TopicMark = NewType("TopicMark", str)
Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Watermarks:
    """The sequence numbers by topic up to which a subscription's events were posted from the log, and when."""

    at: datetime
    numbers: Mapping[TopicMark, int] = field(default_factory=dict)

    def includes(self, event: LoggedEvent) -> bool:
        """Return whether an event was posted from the log."""
        return (event.sequence or 0) <= self.numbers.get(mark_of(event.topic), -1)


@dataclass(frozen=True, slots=True)
class OutboxState:
    """The posts to a connection on which later items depend.

    - `subscribed`: the subscriptions whose SUBSCRIBED was posted, and no UNSUBSCRIBED since.
    - `unconfirmed_reply`: the first of the replies that were being posted when this state was saved.
    - `done`: the newest items that were handled.
    - `pending_backfills`: the subscriptions whose backfill follows. Their live events are deferred to it; the number of
      the first deferred event of each topic is recorded.
    - `watermarks`: those of recently completed backfills, the last of them at `caught_up_at`.
    - `progress`: of a batch that was posted in part, the number of events that were handled.
    - `totals`: counters since the connection opened.
    - `rows`: the log rows of a connection in Arvados' dialect.
    - `retained_to`: of a backfill, the topic up to which its retained events were posted.
    """

    subscribed: frozenset[SubscriptionId] = frozenset()
    unconfirmed_reply: ItemId | None = None
    done: tuple[ItemId, ...] = ()
    pending_backfills: Mapping[SubscriptionId, SequenceNumbers] = field(default_factory=dict)
    watermarks: Mapping[SubscriptionId, Watermarks] = field(default_factory=dict)
    caught_up_at: datetime | None = None
    progress: tuple[ItemId, int] | None = None
    totals: Totals = NO_TOTALS
    rows: RowState = NO_ROWS
    retained_to: tuple[ItemId, RoutingKey] | None = None


def mark_of(topic: RoutingKey) -> TopicMark:
    """Return a short hash of a topic, since a record has thousands; a topic of a given hash takes 2^64 tries."""
    digest = blake2b(topic.encode(errors="surrogatepass"), digest_size=8).digest()
    return TopicMark(urlsafe_b64encode(digest)[:11].decode())


class ItemAction(Enum):
    """The action of the writer for an item or event."""

    POST = auto()
    SKIP = auto()
    CLOSE = auto()
    DEFER = auto()  # it is in the log, and the pending backfill will include it


def reply_action(item_id: ItemId, outbox: OutboxState, *, waited: timedelta) -> ItemAction:
    """Return the action for a reply, which is posted at most once.

    If the writer crashed while it posted replies, those that are not in `done` may or may not have arrived. Without one
    the client would wait for ever, and on a second one Autobahn ends the session; so the connection is closed, and the
    client reconnects. A connection is also closed when the client receives so slowly that the reply has `waited` too
    long.
    """
    if item_id in outbox.done:
        return ItemAction.SKIP
    is_unconfirmed = outbox.unconfirmed_reply is not None
    return ItemAction.CLOSE if is_unconfirmed or waited > MAXIMUM_WAIT else ItemAction.POST


def event_action(
    candidate: SubscriptionEvent, outbox: OutboxState, *, session: Session | None, rights: Rights, waited: timedelta
) -> ItemAction:
    """Return the action for an event, which is posted at least once if permitted, and never before the backfill."""
    subscription, event = candidate.pattern.subscription_id, candidate.event
    if not may_post(candidate, outbox, session=session, rights=rights):
        return ItemAction.SKIP
    if subscription in outbox.pending_backfills:
        return ItemAction.DEFER
    marks = outbox.watermarks.get(subscription)
    if marks is not None and marks.includes(event):
        return ItemAction.SKIP
    return ItemAction.CLOSE if waited > MAXIMUM_WAIT else ItemAction.POST


def may_post(candidate: SubscriptionEvent, outbox: OutboxState, *, session: Session | None, rights: Rights) -> bool:
    """Return whether an event may be posted: after SUBSCRIBED, before UNSUBSCRIBED, and with the right to its topic.

    The client may have unsubscribed and subscribed again, so both the session and the posted replies must have the
    subscription.
    """
    subscription = candidate.pattern.subscription_id
    is_subscribed = session is not None and subscription in session.subscriptions
    return is_subscribed and subscription in outbox.subscribed and rights.may_receive(candidate.event.topic)


def begin_reply(outbox: OutboxState, item_id: ItemId | None) -> OutboxState:
    """Return the state before a reply is posted; with None, the state after it could not be posted."""
    return replace(outbox, unconfirmed_reply=item_id)


def finish_reply(outbox: OutboxState, reply: Reply) -> OutboxState:
    """Return the state after a reply was posted."""
    begins = frozenset() if reply.begins is None else frozenset({reply.begins})
    changed = begins | (frozenset() if reply.ends is None else frozenset({reply.ends}))
    pending_backfills: dict[SubscriptionId, SequenceNumbers] = _without(outbox.pending_backfills, changed)
    if reply.expects_backfill:
        pending_backfills |= {one: {} for one in begins}
    return replace(
        with_done(outbox, reply.item_id),
        subscribed=(outbox.subscribed | begins) - {reply.ends},
        unconfirmed_reply=None,
        pending_backfills=pending_backfills,
        watermarks=_without(outbox.watermarks, changed),
    )


def defer(outbox: OutboxState, candidate: SubscriptionEvent) -> OutboxState:
    """Return the state after an event was deferred to its subscription's pending backfill."""
    subscription, event = candidate.pattern.subscription_id, candidate.event
    first = outbox.pending_backfills[subscription]
    if event.topic in first:
        return outbox
    deferred = {**first, event.topic: event.sequence or 0}
    return replace(outbox, pending_backfills={**outbox.pending_backfills, subscription: deferred})


def mark_posted(outbox: OutboxState, candidate: SubscriptionEvent, *, now: datetime) -> OutboxState:
    """Return the state after an event of a backfill was posted."""
    event = candidate.event
    return raise_watermarks(outbox, candidate.pattern.subscription_id, {event.topic: event.sequence or 0}, now=now)


def raise_watermarks(
    outbox: OutboxState, subscription: SubscriptionId, numbers: SequenceNumbers, *, now: datetime
) -> OutboxState:
    """Return the state in which a subscription's events up to these sequence numbers are not posted again."""
    known = outbox.watermarks[subscription].numbers if subscription in outbox.watermarks else {}
    marks = {mark_of(topic): number for topic, number in numbers.items()}
    highest = {mark: max(number, known.get(mark, 0)) for mark, number in marks.items()}
    return replace(outbox, watermarks={**outbox.watermarks, subscription: Watermarks(now, {**known, **highest})})


def continue_behind(
    outbox: OutboxState,
    item_id: ItemId,
    subscription: SubscriptionId,
    *,
    place: RoutingKey,
    old: Collection[RoutingKey],
) -> OutboxState:
    """Return the state after retained events up to a topic were posted, of `old` topics without live events."""
    watermarks = {
        one: replace(marks, numbers=_without(marks.numbers, {*map(mark_of, old)})) if one == subscription else marks
        for one, marks in outbox.watermarks.items()
    }
    return replace(outbox, retained_to=(item_id, place), watermarks=watermarks)


def finish_backfill(
    outbox: OutboxState, item_id: ItemId, subscription: SubscriptionId, settled: SequenceNumbers, *, now: datetime
) -> OutboxState:
    """Return the state after a subscription's backfill was posted completely."""
    done = replace(
        with_done(outbox, item_id),
        pending_backfills=_without(outbox.pending_backfills, {subscription}),
        caught_up_at=now,
    )
    return raise_watermarks(done, subscription, settled, now=now) if settled else done


def without_watermarks(outbox: OutboxState, subscriptions: Collection[SubscriptionId]) -> OutboxState:
    """Return the state without the watermarks of subscriptions."""
    return replace(outbox, watermarks=_without(outbox.watermarks, subscriptions))


def with_progress(outbox: OutboxState, item_id: ItemId, count: int) -> OutboxState:
    """Return the state after only the first `count` events of a batch were handled."""
    return replace(outbox, progress=(item_id, count))


def progress_of(outbox: OutboxState, item_id: ItemId) -> int:
    """Return how many events of a batch were handled on its previous delivery."""
    return outbox.progress[1] if outbox.progress is not None and outbox.progress[0] == item_id else 0


def needs_saving(outbox: OutboxState, *, saved: OutboxState, now: datetime) -> bool:
    """Return whether the state differs from the saved one, or the saved totals are out of date."""
    if replace(outbox, totals=saved.totals) != saved:
        return True
    noted_at = saved.totals.noted_at
    return outbox.totals != saved.totals and noted_at is not None and now - noted_at >= TOTALS_SAVED_EVERY


def pruned(outbox: OutboxState, *, now: datetime) -> OutboxState:
    """Return the state to save, without expired watermarks."""
    is_old = {one for one, marks in outbox.watermarks.items() if now - marks.at > WATERMARKS_KEPT_FOR}
    rows = outbox.rows if outbox.pending_backfills else row_state.pruned(outbox.rows, now=now)
    return replace(
        outbox,
        watermarks=_without(outbox.watermarks, is_old),
        totals=replace(outbox.totals, noted_at=now),
        rows=rows,
    )


def with_done(outbox: OutboxState, item_id: ItemId) -> OutboxState:
    """Return the state after an item was handled."""
    return replace(outbox, done=(*outbox.done, item_id)[-KEPT_ITEMS:])


def _without(values: Mapping[Key, Value], removed: Collection[Key]) -> dict[Key, Value]:
    return {one: value for one, value in values.items() if one not in removed}
