"""What may be posted to a connection now, decided by its only writer, one item after the other."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import TypeVar

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.admin.grants import Rights
from signalbox.live.outbox.items import ItemId, Reply, SubscriptionEvent
from signalbox.live.outbox.totals import NO_TOTALS, Totals
from signalbox.live.session.state import Session
from signalbox.live.wamp.messages import SubscriptionId

# An item comes again before any later one of its connection, and no batch of a FIFO queue holds more than ten.
KEPT_ITEMS = 20
# As long as arvados-ws waits for a client. Who is further behind comes back and asks for what it has not seen.
MAXIMUM_WAIT = timedelta(seconds=60)
# Events that were in the log when the past was read are in the outbox within seconds, or come to it again.
WATERMARKS_KEPT_FOR = timedelta(minutes=5)

# Events cost no write, so what they come to is noted once in a while.
TOTALS_SAVED_EVERY = timedelta(minutes=1)

SequenceNumbers = Mapping[RoutingKey, int]
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Watermarks:
    """Up to which number of each topic events were posted from the log, and when that was."""

    at: datetime
    numbers: SequenceNumbers = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OutboxState:
    """What was posted to a connection, as far as later items depend on it.

    `subscribed` are the subscriptions that the client knows: their SUBSCRIBED was posted, and no UNSUBSCRIBED since.
    `begun` is the reply that was being posted when this was written; `done` are the newest that were. Of subscriptions
    whose past is `awaited`, live events are left for it: the first of each topic is remembered. `marks` are those of
    subscriptions that got theirs lately, the last of them at `caught_up_at`. Of a bundle that could be posted in part
    only, `progress` tells how much that was. `totals` count since the connection began.
    """

    subscribed: frozenset[SubscriptionId] = frozenset()
    unconfirmed_reply: ItemId | None = None
    done: tuple[ItemId, ...] = ()
    pending_backfills: Mapping[SubscriptionId, SequenceNumbers] = field(default_factory=dict)
    watermarks: Mapping[SubscriptionId, Watermarks] = field(default_factory=dict)
    caught_up_at: datetime | None = None
    progress: tuple[ItemId, int] | None = None
    totals: Totals = NO_TOTALS


class ItemAction(Enum):
    """What to do with an item."""

    POST = auto()
    SKIP = auto()
    CLOSE = auto()
    DEFER = auto()  # it is in the log, and the past that is awaited will have it


def reply_action(item_id: ItemId, outbox: OutboxState, *, waited: timedelta) -> ItemAction:
    """Return what to do with a reply: it is posted at most once.

    Nobody knows whether a reply was posted when the writer died over it. Without it the client would wait for ever,
    and with two of it Autobahn gives up the session: so the connection is closed, and the client comes back. The same
    goes for a client that takes its messages so slowly that this one has `waited` for too long.
    """
    if item_id in outbox.done:
        return ItemAction.SKIP
    return ItemAction.CLOSE if item_id == outbox.unconfirmed_reply or waited > MAXIMUM_WAIT else ItemAction.POST


def event_action(
    addressed: SubscriptionEvent, outbox: OutboxState, *, session: Session | None, rights: Rights, waited: timedelta
) -> ItemAction:
    """Return what to do with an event: it is posted at least once, if it may be, and never before the past."""
    subscription, event = addressed.pattern.subscription_id, addressed.event
    if not may_post(addressed, outbox, session=session, rights=rights):
        return ItemAction.SKIP
    if subscription in outbox.pending_backfills:
        return ItemAction.DEFER
    marks = outbox.watermarks.get(subscription)
    if marks is not None and (event.sequence or 0) <= marks.numbers.get(event.topic, -1):
        return ItemAction.SKIP
    return ItemAction.CLOSE if waited > MAXIMUM_WAIT else ItemAction.POST


def may_post(addressed: SubscriptionEvent, outbox: OutboxState, *, session: Session | None, rights: Rights) -> bool:
    """Say whether an event may be posted: not before SUBSCRIBED, not after UNSUBSCRIBED, and not without the right.

    The session may have been subscribed again since, so what was posted counts as much as what is wanted now.
    """
    subscription = addressed.pattern.subscription_id
    is_wanted = session is not None and subscription in session.subscriptions
    return is_wanted and subscription in outbox.subscribed and rights.may_receive(addressed.event.topic)


def begin_reply(outbox: OutboxState, item_id: ItemId | None) -> OutboxState:
    """Return what to keep before a reply is posted, or with None when it was not."""
    return replace(outbox, unconfirmed_reply=item_id)


def finish_reply(outbox: OutboxState, reply: Reply) -> OutboxState:
    """Return what to keep when a reply was posted."""
    begins = frozenset() if reply.begins is None else frozenset({reply.begins})
    changed = begins | (frozenset() if reply.ends is None else frozenset({reply.ends}))
    pending_backfills: dict[SubscriptionId, SequenceNumbers] = _without(outbox.pending_backfills, changed)
    if reply.expects_backfill:
        pending_backfills |= {one: {} for one in begins}
    return replace(
        _done(outbox, reply.item_id),
        subscribed=(outbox.subscribed | begins) - {reply.ends},
        unconfirmed_reply=None,
        pending_backfills=pending_backfills,
        watermarks=_without(outbox.watermarks, changed),
    )


def defer(outbox: OutboxState, addressed: SubscriptionEvent) -> OutboxState:
    """Return what to keep when an event is left to the past that is awaited."""
    subscription, event = addressed.pattern.subscription_id, addressed.event
    left = outbox.pending_backfills[subscription]
    if event.topic in left:
        return outbox
    return replace(
        outbox, pending_backfills={**outbox.pending_backfills, subscription: {**left, event.topic: event.sequence or 0}}
    )


def mark_posted(outbox: OutboxState, addressed: SubscriptionEvent, *, now: datetime) -> OutboxState:
    """Return what to keep when an event of the past was posted."""
    event = addressed.event
    return raise_watermarks(outbox, addressed.pattern.subscription_id, {event.topic: event.sequence or 0}, now=now)


def raise_watermarks(
    outbox: OutboxState, subscription: SubscriptionId, numbers: SequenceNumbers, *, now: datetime
) -> OutboxState:
    """Return what to keep when events up to these numbers are not to be posted (again)."""
    known = outbox.watermarks[subscription].numbers if subscription in outbox.watermarks else {}
    highest = {topic: max(number, known.get(topic, 0)) for topic, number in numbers.items()}
    return replace(outbox, watermarks={**outbox.watermarks, subscription: Watermarks(now, {**known, **highest})})


def finish_backfill(
    outbox: OutboxState, item_id: ItemId, subscription: SubscriptionId, settled: SequenceNumbers, *, now: datetime
) -> OutboxState:
    """Return what to keep when a subscription's past was posted, all of it."""
    done = replace(
        _done(outbox, item_id), pending_backfills=_without(outbox.pending_backfills, {subscription}), caught_up_at=now
    )
    return raise_watermarks(done, subscription, settled, now=now) if settled else done


def with_progress(outbox: OutboxState, item_id: ItemId, count: int) -> OutboxState:
    """Return what to keep when only so many events of a bundle were handled."""
    return replace(outbox, progress=(item_id, count))


def progress_of(outbox: OutboxState, item_id: ItemId) -> int:
    """Return how many events of a bundle were handled when it came before."""
    return outbox.progress[1] if outbox.progress is not None and outbox.progress[0] == item_id else 0


def needs_saving(outbox: OutboxState, *, saved: OutboxState, now: datetime) -> bool:
    """Say whether something that later items depend on is other than it was saved, or totals are old."""
    if replace(outbox, totals=saved.totals) != saved:
        return True
    noted_at = saved.totals.noted_at
    return outbox.totals != saved.totals and noted_at is not None and now - noted_at >= TOTALS_SAVED_EVERY


def pruned(outbox: OutboxState, *, now: datetime) -> OutboxState:
    """Return what to keep of an outbox at a moment."""
    is_old = {one for one, marks in outbox.watermarks.items() if now - marks.at > WATERMARKS_KEPT_FOR}
    return replace(outbox, watermarks=_without(outbox.watermarks, is_old), totals=replace(outbox.totals, noted_at=now))


def _done(outbox: OutboxState, item_id: ItemId) -> OutboxState:
    return replace(outbox, done=(*outbox.done, item_id)[-KEPT_ITEMS:])


def _without(found: Mapping[SubscriptionId, Value], gone: Collection[SubscriptionId]) -> dict[SubscriptionId, Value]:
    return {one: value for one, value in found.items() if one not in gone}
