"""Carrying out what a session wants done, in its order; doing it again is fine."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, cast

from signalbox.errors import RejectedError
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.history.event import HistoryEvent
from signalbox.live.outbox.items import BackfillRequest, ItemId, OutboxItem, close_item, reply_item
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.procedures import meta_events
from signalbox.live.procedures.calls import Asked, answered
from signalbox.live.procedures.meta_events import Announcement
from signalbox.live.router.publication_metadata import (
    AcknowledgementTarget,
    PublicationMetadata,
    RealmPublication,
    message_for,
)
from signalbox.live.session import events
from signalbox.live.session.effects import (
    Answer,
    Attach,
    Close,
    Detach,
    Distribute,
    Drop,
    Effect,
    Enter,
    Leave,
    NoteFailure,
    Post,
)
from signalbox.live.session.events import Cause
from signalbox.live.session.ports import Member, SessionPorts, Standing
from signalbox.live.session.state import Session
from signalbox.live.wamp import error_uris
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.authentication import Identity
from signalbox.live.wamp.codec import MAXIMUM_ID, TYPE_CODES
from signalbox.live.wamp.messages import Error, Payload, PublicationId, Publish, SessionId, Subscribed
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, InvalidUserName, parse_user_name

# API Gateway ends a connection after two hours; what is kept of one is forgotten a little later.
KEPT_FOR = timedelta(hours=2, minutes=15)


@dataclass(slots=True)
class Carrying:
    """Carries out the effects of one frame for a session, which is as it was after that frame.

    `watched` are those of WAMP's own topics that somebody is subscribed to.
    """

    ports: SessionPorts
    session: Session
    cause: Cause
    standing: Callable[[], Standing]
    watched: Callable[[], Collection[RoutingKey]]
    _items: list[OutboxItem] = field(default_factory=list)
    _events: list[HistoryEvent] = field(default_factory=list)
    _number: int = 0

    def carry_out(self, effects: Sequence[Effect]) -> None:
        """Carry out effects, each when those before it are done."""
        for self._number, effect in enumerate(effects):
            if isinstance(effect, Post):
                is_past_wanted = any(isinstance(one, Attach) and _wants_past(one) for one in effects)
                self._put(reply_item(effect, self._item_id(), expects_backfill=is_past_wanted and _begins(effect)))
            elif isinstance(effect, Close):
                self._put(close_item(effect, self._item_id()))
            else:
                self._flush()
                HOW[type(effect)](self, effect)
        self._flush()
        self.ports.record(self._events)

    def enter(self, effect: Enter) -> None:
        """Put a session on the roster of its realm, and tell that it has begun."""
        member = Member(self.session.connection, effect.listener, self.cause.at)
        self.ports.store.roster.enter(self._realm, member, expires_at=self._expires_at)
        details = self.session.identity.details if self.session.identity else {}
        self._announce([meta_events.joined(effect.listener, details)])
        self._events.append(events.started(effect.listener, self._realm, self.cause))

    def leave(self, effect: Leave) -> None:
        """Take a session off the roster, and let no more events reach it."""
        self._detach(effect.listener, sorted(effect.subscriptions, key=lambda one: one.subscription_id))
        self.ports.store.roster.leave(self._realm, effect.listener)
        self._announce([meta_events.left(effect.listener)])
        self._events.append(events.ended(effect.listener, self._realm, self.cause))

    def attach(self, effect: Attach) -> None:
        """Let events reach a subscription, and only then ask for its past: so nothing is missed in between."""
        listener, pattern, at = self._listener, effect.pattern, self.cause.at
        subscriber = Subscriber(self.session.connection, pattern, listener)
        self.ports.store.subscribers.attach(self._realm, subscriber, at=at, expires_at=self._expires_at)
        if _wants_past(effect):
            self._put(BackfillRequest(self._item_id(), pattern, effect.get_retained, effect.history))
        is_first = meta_events.ON_CREATE in self.watched() and not self._others(pattern, listener)
        self._announce(meta_events.attached(listener, pattern, is_first=is_first, at=at))
        self._events.append(events.subscribed(pattern, listener, self._realm, self.cause))

    def detach(self, effect: Detach) -> None:
        """Let no more events reach a subscription."""
        self._detach(self._listener, [effect.pattern])

    def distribute(self, effect: Distribute) -> None:
        """Publish an event, or tell who waits for it why not."""
        awaited = None if effect.request is None else AcknowledgementTarget(self.session.connection, effect.request)
        note = PublicationMetadata(effect.publication, effect.audience, effect.disclosed, effect.is_retained, awaited)
        try:
            self._publish(RealmPublication(effect.topic, effect.payload, note, self._listener.authid), self._item_id())
        except RejectedError as error:
            self._refuse(effect, str(error))

    def answer(self, effect: Answer) -> None:
        """Answer a call."""
        asked = Asked(effect, self.session, self.standing(), self.cause)
        self._put(reply_item(Post(answered(asked, self.ports)), self._item_id()))

    def drop(self, effect: Drop) -> None:
        """Count a publication of which nobody hears any more."""
        self._events.append(events.dropped(self.session, effect.error, self.cause))

    def note_failure(self, effect: NoteFailure) -> None:
        """Count a wrong secret, unless it was for somebody who cannot be a user, and so has none."""
        self._events.append(events.refused(self.session, self.cause))
        try:
            user = parse_user_name(effect.authid)
        except InvalidUserName:
            return
        self.ports.store.accounts.note_failure(user, now=self.cause.at)

    def _detach(self, listener: Listener, patterns: Sequence[TopicPattern]) -> None:
        if not patterns:
            return
        self.ports.store.subscribers.detach(self._realm, patterns, self.session.connection)
        for pattern in patterns:
            is_last = meta_events.ON_DELETE in self.watched() and not self._others(pattern, listener)
            self._announce(meta_events.detached(listener, pattern, is_last=is_last))
            self._events.append(events.unsubscribed(pattern, listener, self._realm, self.cause))

    def _others(self, pattern: TopicPattern, listener: Listener) -> bool:
        attached = self.ports.store.watchers.attached(self._realm, pattern)
        return any(one.session != listener.session for one in attached)

    def _announce(self, announcements: Iterable[Announcement]) -> None:
        """Publish those meta events that somebody watches: of most realms nobody does."""
        watched = self.watched()
        for number, one in enumerate(announcements):
            if one.topic in watched:
                item_id = self._item_id(f"{one.topic}:{number}:{one.payload.arguments}")
                publication = PublicationId(_number_of(item_id))
                said = RealmPublication(one.topic, one.payload, PublicationMetadata(publication), meta_events.PUBLISHER)
                with suppress(RejectedError):  # an exchange that is gone has nobody who watches it
                    self._publish(said, item_id)

    def _publish(self, said: RealmPublication, item_id: ItemId) -> None:
        live = self.standing().live or LiveSettings()
        message = message_for(said, order_by=live.order_by, deduplication_id=item_id)
        self.ports.sender.send(self.ports.names.queue(self._realm), message)

    def _refuse(self, effect: Distribute, problem: str) -> None:
        if effect.request is None:
            self.drop(Drop(error_uris.UNAVAILABLE))
            return
        error = Error(TYPE_CODES[Publish], effect.request, {}, error_uris.UNAVAILABLE, Payload((problem,)))
        self._put(reply_item(Post(error), self._item_id()))

    def _put(self, item: OutboxItem) -> None:
        self._items.append(item)

    def _flush(self) -> None:
        if self._items:
            self.ports.outboxes.put(self.session.connection, self._items)
            self._items = []

    def _item_id(self, what: str = "") -> ItemId:
        # De-duplication ids have 128 characters at most.
        text = f"{self.cause.frame}:{self._number}"
        return ItemId(f"{text}:{hashlib.sha256(what.encode()).hexdigest()[:32]}" if what else text)

    @property
    def _expires_at(self) -> datetime:
        return self.session.opened_at + KEPT_FOR

    @property
    def _realm(self) -> ExchangeName:
        return cast("ExchangeName", self.session.realm)  # only sessions with a realm have effects that need it

    @property
    def _listener(self) -> Listener:
        # Of what only those want that have joined, and perhaps have left again in the same batch.
        identity = cast("Identity", self.session.identity)
        return Listener(cast("SessionId", self.session.session), identity.authid, identity.authrole)


def _begins(post: Post) -> bool:
    return isinstance(post.message, Subscribed)


def _wants_past(attach: Attach) -> bool:
    return attach.get_retained or attach.history is not None


def _number_of(item_id: ItemId) -> int:
    return int.from_bytes(hashlib.sha256(item_id.encode()).digest()[:8]) % MAXIMUM_ID + 1


HOW: Mapping[type[Effect], Callable[[Carrying, Any], None]] = {
    Enter: Carrying.enter,
    Leave: Carrying.leave,
    Attach: Carrying.attach,
    Detach: Carrying.detach,
    Distribute: Carrying.distribute,
    Answer: Carrying.answer,
    Drop: Carrying.drop,
    NoteFailure: Carrying.note_failure,
}
