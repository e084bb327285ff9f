"""The items of a connection's outbox, and the message bodies that carry them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NewType

from signalbox.errors import RejectedError
from signalbox.forms import Form, tagged
from signalbox.live.log.documents import FORMS, PATTERN, event_document, event_of, json_text
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.effects import Post, PostText
from signalbox.live.model.state import ConnectionId
from signalbox.live.wamp.codec import serialize
from signalbox.live.wamp.messages import Subscribed, SubscriptionId
from signalbox.live.wamp.options import BackfillStart
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName

ItemId = NewType("ItemId", str)  # deterministic: an item that is enqueued again has the same id
UNKNOWN = datetime.max.replace(tzinfo=UTC)  # no event is later


class InvalidOutboxItem(RejectedError):
    """Raised for a message in the outbox queue that is not an outbox item."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A message to be posted at most once; `begins` and `ends` are the subscriptions that it begins or ends.

    With `expects_backfill` a backfill of the subscription that begins follows, and live events are deferred to it.
    """

    item_id: ItemId
    message: str
    begins: SubscriptionId | None = None
    ends: SubscriptionId | None = None
    expects_backfill: bool = False


@dataclass(frozen=True, slots=True)
class CloseRequest:
    """A request to close the connection."""

    item_id: ItemId


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """A request to post the backfill of a subscription, which the writer reads from the log.

    What was published since `at`, when the client sent it, is new. An item of an earlier version has no such time.
    """

    item_id: ItemId
    pattern: TopicPattern
    get_retained: bool
    history: BackfillStart | None
    at: datetime = UNKNOWN

    @property
    def subscription(self) -> SubscriptionId:
        """Return the subscription."""
        return self.pattern.subscription_id


@dataclass(frozen=True, slots=True)
class CatchUpRequest:
    """A request to post the past log rows that a subscription of Arvados' protocol requests."""

    item_id: ItemId
    subscription: SubscriptionId


@dataclass(frozen=True, slots=True)
class SubscriptionEvent:
    """An event to post for one subscription."""

    pattern: TopicPattern
    event: LoggedEvent


@dataclass(frozen=True, slots=True)
class EventBatch:
    """The ordered events of one router batch for one connection of a user in a realm."""

    item_id: ItemId
    realm: ExchangeName
    user: UserName
    events: tuple[SubscriptionEvent, ...]


OutboxItem = Reply | CloseRequest | BackfillRequest | CatchUpRequest | EventBatch


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """A serialized item for a connection's outbox. `item_id` de-duplicates it there."""

    connection: ConnectionId
    item_id: ItemId
    text: str


def reply_item(effect: Post, item_id: ItemId, *, expects_backfill: bool = False) -> Reply:
    """Return the item that posts a message."""
    begins = effect.message.subscription if isinstance(effect.message, Subscribed) else None
    return Reply(item_id, serialize(effect.message), begins, effect.ends, expects_backfill)


def text_item(effect: PostText, item_id: ItemId) -> Reply:
    """Return the item that posts a text of Arvados' protocol."""
    return Reply(item_id, effect.text, effect.begins, effect.ends, effect.expects_catch_up)


def item_body(item: OutboxItem) -> str:
    """Serialize an item as the body of its message."""
    return json_text({"item": item.item_id, **ITEM.write(item)})


def event_batch_body(batch: EventBatch, events: Sequence[str]) -> str:
    """Serialize a batch, given its events as JSON texts: the batches of many connections have the same events."""
    elements = list[str]()
    for one, text, is_first in zip(batch.events, events, _are_first(batch.events), strict=True):
        event = f',"event":{text}' if is_first else ""
        elements.append(f'{{"match":"{one.pattern.match}","uri":{json_text(one.pattern.uri)}{event}}}')
    head = json_text({"item": batch.item_id, "kind": "events", "realm": batch.realm, "user": batch.user})
    return f'{head[:-1]},"events":[{",".join(elements)}]}}'


def parse_item(text: str) -> OutboxItem:
    """Parse the body of an item's message. Raises `InvalidOutboxItem`."""
    try:
        item: OutboxItem = ITEM.read(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, RejectedError) as error:
        raise InvalidOutboxItem(f"a message of {len(text)} characters is not an outbox item: {error!r}") from error
    return item


def _are_first(events: Sequence[SubscriptionEvent]) -> Iterator[bool]:
    """Yield of each element whether it has its event: one that several patterns match is in the first of them only."""
    last = None
    for one in events:
        yield one.event is not last
        last = one.event


def _events_document(events: Sequence[SubscriptionEvent]) -> list[dict[str, Any]]:
    return [
        PATTERN.write(one.pattern) | ({"event": event_document(one.event)} if is_first else {})
        for one, is_first in zip(events, _are_first(events), strict=True)
    ]


def _events_of(documents: Sequence[Mapping[str, Any]]) -> tuple[SubscriptionEvent, ...]:
    found = list[SubscriptionEvent]()
    for one in documents:
        event = found[-1].event if found and "event" not in one else event_of(one["event"])
        found.append(SubscriptionEvent(PATTERN.read(one), event))
    return tuple(found)


FORMS.define(tuple[SubscriptionEvent, ...], Form(_events_document, _events_of))
ITEM = tagged(
    "kind",
    {
        "reply": FORMS.record(
            Reply,
            names={"item_id": "item", "expects_backfill": "expects_past"},
            sparse=["begins", "ends", "expects_backfill"],
        ),
        "close": FORMS.record(CloseRequest, names={"item_id": "item"}),
        "past": FORMS.record(BackfillRequest, names={"item_id": "item"}, sparse=["at"], flat=["pattern"]),
        "catch_up": FORMS.record(CatchUpRequest, names={"item_id": "item"}),
        "events": FORMS.record(EventBatch, names={"item_id": "item"}),
    },
)
