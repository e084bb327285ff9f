"""What may be posted to a connection now, decided by its only writer, one item after the other."""

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum, auto
from typing import NewType

from signalbox.exchange.topics import RoutingKey
from signalbox.live.effects import Post
from signalbox.live.grants import Rights
from signalbox.live.messages import Event, Subscribed, SubscriptionId
from signalbox.live.state import Session

ItemId = NewType("ItemId", str)

# An item comes again before any later one of its connection, and no batch of a FIFO queue holds more than ten.
KEPT_ITEMS = 20
# As long as arvados-ws waits for a client. Who is further behind comes back and asks for what it has not seen.
MAXIMUM_WAIT = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class PostedEvent:
    """An event for one subscription, with the topic by which it may be seen or not."""

    event: Event
    topic: RoutingKey


@dataclass(frozen=True, slots=True)
class Item:
    """Something in a connection's outbox."""

    item_id: ItemId
    said: Post | PostedEvent


@dataclass(frozen=True, slots=True)
class Outbox:
    """What was posted to a connection, as far as later items depend on it.

    `subscribed` are the subscriptions that the client knows: their SUBSCRIBED was posted, and no UNSUBSCRIBED since.
    `begun` is the reply that was being posted when this was written; `done` are the newest that were.
    """

    subscribed: frozenset[SubscriptionId] = frozenset()
    begun: ItemId | None = None
    done: tuple[ItemId, ...] = ()


class Step(Enum):
    """What to do with an item."""

    POST = auto()
    SKIP = auto()
    CLOSE = auto()


def next_step(item: Item, outbox: Outbox, *, session: Session, rights: Rights, waited: timedelta) -> Step:
    """Return what to do with an item of the outbox: replies are posted at most once, events at least once.

    Nobody knows whether a reply was posted when the writer died over it. Without it the client would wait for ever,
    and with two of it Autobahn gives up the session: so the connection is closed, and the client comes back. The same
    goes for a client that takes its messages so slowly that this one has `waited` for too long.
    """
    if isinstance(item.said, PostedEvent):
        if not may_post(item.said, outbox, session=session, rights=rights):
            return Step.SKIP
    elif item.item_id in outbox.done:
        return Step.SKIP
    is_doubtful = item.item_id == outbox.begun
    return Step.CLOSE if is_doubtful or waited > MAXIMUM_WAIT else Step.POST


def may_post(posted: PostedEvent, outbox: Outbox, *, session: Session, rights: Rights) -> bool:
    """Say whether an event may be posted: not before SUBSCRIBED, not after UNSUBSCRIBED, and not without the right.

    The session may have been subscribed again since, so what was posted counts as much as what is wanted now.
    """
    subscription = posted.event.subscription
    is_wanted = subscription in outbox.subscribed and subscription in session.subscriptions
    return is_wanted and rights.may_receive(posted.topic)


def begin(outbox: Outbox, item_id: ItemId) -> Outbox:
    """Return what to keep before a reply is posted."""
    return replace(outbox, begun=item_id)


def finish(outbox: Outbox, item_id: ItemId, reply: Post) -> Outbox:
    """Return what to keep when a reply was posted."""
    begins = {reply.message.subscription} if isinstance(reply.message, Subscribed) else set()
    subscribed = (outbox.subscribed | begins) - {reply.ends}
    return Outbox(subscribed, done=(*outbox.done, item_id)[-KEPT_ITEMS:])
