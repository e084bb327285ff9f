"""What stands in a connection's outbox, and how the message reads by which it comes there."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NewType

from signalbox.errors import RejectedError
from signalbox.live.log.documents import Document, past_document, past_of, pattern_document, pattern_of
from signalbox.live.log.event_documents import event_document, event_of, text_of
from signalbox.live.log.events import LoggedEvent
from signalbox.live.session.effects import Close, Post
from signalbox.live.wamp.codec import written
from signalbox.live.wamp.messages import Subscribed, SubscriptionId
from signalbox.live.wamp.options import Past
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName

ItemId = NewType("ItemId", str)  # the same whenever the same is put into an outbox again


class InvalidItem(RejectedError):
    """Raised when a message in the queue of outboxes is none that Signalbox put there."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A message to be posted at most once; `begins` and `ends` are the subscriptions of which it tells that.

    With `expects_past` the past of the subscription that begins will follow, and live events wait for it.
    """

    item_id: ItemId
    message: str
    begins: SubscriptionId | None = None
    ends: SubscriptionId | None = None
    expects_past: bool = False


@dataclass(frozen=True, slots=True)
class Closing:
    """The connection is to be closed."""

    item_id: ItemId


@dataclass(frozen=True, slots=True)
class PastWish:
    """What a new subscription wants of the past; it is read when its turn comes."""

    item_id: ItemId
    pattern: TopicPattern
    get_retained: bool
    history: Past | None


@dataclass(frozen=True, slots=True)
class Addressed:
    """An event for one subscription."""

    pattern: TopicPattern
    event: LoggedEvent


@dataclass(frozen=True, slots=True)
class Bundle:
    """The events of one batch of the router for one connection, in their order; whose connection, in which realm."""

    item_id: ItemId
    realm: ExchangeName
    user: UserName
    events: tuple[Addressed, ...]


OutboxItem = Reply | Closing | PastWish | Bundle


def reply(effect: Post, item_id: ItemId, *, expects_past: bool = False) -> Reply:
    """Return the item by which a message is posted."""
    begins = effect.message.subscription if isinstance(effect.message, Subscribed) else None
    return Reply(item_id, written(effect.message), begins, effect.ends, expects_past)


def closing(effect: Close, item_id: ItemId) -> Closing:
    """Return the item by which a connection is closed."""
    del effect
    return Closing(item_id)


def item_text(item: OutboxItem) -> str:
    """Return the body of the message by which an item comes into its outbox."""
    if isinstance(item, Bundle):
        return bundle_text(item, [text_of(event_document(one.event)) for one in item.events])
    return text_of({"item": item.item_id, **_told(item)})


def bundle_text(bundle: Bundle, events: Sequence[str]) -> str:
    """Return the body of a bundle, given its events' documents as texts: many bundles have the same events."""
    told = ",".join(
        f'{{"match":"{one.pattern.match}","uri":{text_of(one.pattern.uri)},"event":{event}}}'
        for one, event in zip(bundle.events, events, strict=True)
    )
    head = text_of({"item": bundle.item_id, "kind": "events", "realm": bundle.realm, "user": bundle.user})
    return f'{head[:-1]},"events":[{told}]}}'


def parse_item(text: str) -> OutboxItem:
    """Return the item in a message's body. Raises `InvalidItem`."""
    try:
        document = json.loads(text)
        return READERS[document["kind"]](ItemId(document["item"]), document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, RejectedError) as error:
        raise InvalidItem(f"a message of {len(text)} characters is nothing that an outbox has: {error!r}") from error


def _told(item: Reply | Closing | PastWish) -> dict[str, object]:
    if isinstance(item, Reply):
        told = {"begins": item.begins, "ends": item.ends, "expects_past": item.expects_past}
        return {"kind": "reply", "message": item.message, **{name: value for name, value in told.items() if value}}
    if isinstance(item, Closing):
        return {"kind": "close"}
    wish = {"get_retained": item.get_retained, "history": past_document(item.history)}
    return {"kind": "past", **pattern_document(item.pattern), **wish}


def _reply(item_id: ItemId, document: Document) -> Reply:
    begins, ends = document.get("begins"), document.get("ends")
    return Reply(item_id, document["message"], begins, ends, document.get("expects_past", False))


def _closing(item_id: ItemId, document: Document) -> Closing:
    del document
    return Closing(item_id)


def _past_wish(item_id: ItemId, document: Document) -> PastWish:
    return PastWish(item_id, pattern_of(document), document["get_retained"], past_of(document["history"]))


def _bundle(item_id: ItemId, document: Document) -> Bundle:
    events = tuple(Addressed(pattern_of(one), event_of(one["event"])) for one in document["events"])
    return Bundle(item_id, ExchangeName(document["realm"]), UserName(document["user"]), events)


READERS: Mapping[str, Callable[[ItemId, Document], OutboxItem]] = {
    "reply": _reply,
    "close": _closing,
    "past": _past_wish,
    "events": _bundle,
}
