"""The execution of a session's effects in order; executing them again is harmless."""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from signalbox.errors import RejectedError
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.history.event import HistoryEvent
from signalbox.live.model import events
from signalbox.live.model.effects import (
    AnswerCall,
    Attach,
    CatchUp,
    Close,
    CountFailure,
    Detach,
    Distribute,
    Drop,
    Effect,
    Enter,
    Leave,
    Post,
    PostText,
    RefuseFrame,
)
from signalbox.live.model.events import Cause
from signalbox.live.model.state import KEPT_FOR, Session
from signalbox.live.outbox.items import (
    BackfillRequest,
    CatchUpRequest,
    CloseRequest,
    ItemId,
    OutboxItem,
    reply_item,
    text_item,
)
from signalbox.live.outbox.overview_calls import OverviewCall
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.ports import Member, RealmAccess, SessionPorts
from signalbox.live.procedures import calls, meta_events
from signalbox.live.procedures.calls import CallContext
from signalbox.live.procedures.meta_events import MetaEvent
from signalbox.live.procedures.table import SESSION_PROCEDURES
from signalbox.live.router.publication_metadata import (
    PublicationMetadata,
    RealmPublication,
    message_for,
    publication_of,
)
from signalbox.live.session.handshake import MAXIMUM_FAILURES
from signalbox.live.wamp import uris
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.authentication import Identity
from signalbox.live.wamp.codec import MAXIMUM_ID, TYPE_CODES
from signalbox.live.wamp.messages import Error, Payload, PublicationId, Publish, SessionId, Subscribed
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, InvalidUserName, UserName, parse_user_name

RIGHT_ENDED = "the right of this user to publish to this topic has ended"
ANSWERS = {procedure.uri: procedure.answer for procedure in SESSION_PROCEDURES}


@dataclass(slots=True)
class FrameEffects:
    """Executes the effects of one frame; `session` is the session after that frame.

    `access` returns the user's access to the realm, and `watched` the meta topics that have subscribers.
    """

    ports: SessionPorts
    session: Session
    cause: Cause
    access: Callable[[], RealmAccess]
    watched: Callable[[], Collection[RoutingKey]]
    _items: list[OutboxItem] = field(default_factory=list)
    _events: list[HistoryEvent] = field(default_factory=list)
    _number: int = 0

    def execute(self, effects: Sequence[Effect]) -> None:
        """Execute effects, each after those before it are done."""
        for self._number, effect in enumerate(effects):
            if isinstance(effect, Post):
                expects_backfill = any(isinstance(one, Attach) and _requests_past(one) for one in effects)
                self._put(reply_item(effect, self._item_id(), expects_backfill=expects_backfill and _begins(effect)))
            elif isinstance(effect, PostText):
                self._put(text_item(effect, self._item_id()))
            elif isinstance(effect, Close):
                self._put(CloseRequest(self._item_id()))
            else:
                if not isinstance(effect, Attach):  # SUBSCRIBED follows the subscription, so that it has what is new
                    self._flush()
                METHODS[type(effect)](self, effect)
        self._flush()
        self.ports.record(self._events)

    def enter(self, effect: Enter) -> None:
        """Add the session to its realm, and publish that it has joined."""
        member = Member(self.session.connection, effect.listener, self.cause.at)
        self.ports.store.realm_sessions.enter(self._realm, member, expires_at=self._expires_at)
        details = self.session.identity.details if self.session.identity else {}
        self._publish_meta([meta_events.joined(effect.listener, details)])
        self._events.append(events.started(effect.listener, self._realm, self.cause))

    def leave(self, effect: Leave) -> None:
        """Detach the session's subscriptions, remove it from its realm, and publish that it has ended."""
        self._detach(effect.listener, sorted(effect.subscriptions, key=lambda one: one.subscription_id))
        self.ports.store.realm_sessions.leave(self._realm, effect.listener)
        self._publish_meta([meta_events.left(effect.listener)])
        self._events.append(events.ended(effect.listener, self._realm, self.cause))

    def attach(self, effect: Attach) -> None:
        """Attach a subscription, and only then put SUBSCRIBED and the request for the past: no event is missed."""
        listener, pattern, at = self._listener, effect.pattern, self.cause.at
        subscriber = Subscriber(self.session.connection, pattern, listener)
        self.ports.subscribers.stored.attach(self._realm, subscriber, at=at, expires_at=self._expires_at)
        if _requests_past(effect):
            self._put(BackfillRequest(self._item_id(), pattern, effect.get_retained, effect.history, at))
        self._flush()
        if self._may_announce(listener):
            is_first = not self._shared([pattern], meta_events.ON_CREATE)
            self._publish_meta(meta_events.attached(listener, pattern, is_first=is_first, at=at))
        self._events.append(events.subscribed(pattern, listener, self._realm, self.cause))

    def catch_up(self, effect: CatchUp) -> None:
        """Request the past log rows of a subscription, whose answer is in the outbox before."""
        self._put(CatchUpRequest(self._item_id(), effect.subscription))

    def refuse_frame(self, effect: RefuseFrame) -> None:
        """Record a frame that is no request."""
        del effect
        self._events.append(events.frame_refused(self.session, self.cause))

    def detach(self, effect: Detach) -> None:
        """Stop the delivery of events to a subscription."""
        self._detach(self._listener, [effect.pattern])

    def distribute(self, effect: Distribute) -> None:
        """Publish an event; if its right has ended or the exchange refuses it, answer its request with ERROR."""
        if not self.access().rights.may_publish(effect.topic):
            self._refuse(effect, uris.NOT_AUTHORIZED, RIGHT_ENDED)
            return
        try:
            self._publish(publication_of(effect, self.session), self._item_id())
        except RejectedError as error:
            self._refuse(effect, uris.UNAVAILABLE, str(error))

    def answer_call(self, effect: AnswerCall) -> None:
        """Answer a call, or pass it on to the function `overview`."""
        answer = ANSWERS.get(effect.procedure)
        if answer is None:
            self.ports.overview_calls.send(self._overview_call(effect))
            return
        context = CallContext(effect, self.session, self.access, self.cause, self.ports)
        message = calls.reply(effect.request, lambda: answer(context, effect.payload))
        self._put(reply_item(Post(message), self._item_id()))

    def drop(self, effect: Drop) -> None:
        """Record a refused publication whose publisher gets no reply."""
        self._events.append(events.dropped(self.session, effect.error, self.cause))

    def count_failure(self, effect: CountFailure) -> None:
        """Count a failed login, of a user only up to the maximum, and not for a name that cannot be a user's."""
        self._events.append(events.refused(self.session, self.cause, effect.reason))
        try:
            user = parse_user_name(effect.authid)
        except InvalidUserName:
            return
        if self.access().failures < MAXIMUM_FAILURES:
            self.ports.store.accounts.count_failure(user, now=self.cause.at)

    def _overview_call(self, effect: AnswerCall) -> OverviewCall:
        return OverviewCall(
            connection=self.session.connection,
            item_id=self._item_id(),
            realm=self._realm,
            user=UserName(self._listener.authid),
            at=self.cause.at,
            request=effect.request,
            procedure=effect.procedure,
            payload=effect.payload,
            token=self.session.token,
            is_anonymous=self.session.is_anonymous,
        )

    def _detach(self, listener: Listener, patterns: Sequence[TopicPattern]) -> None:
        if not patterns:
            return
        self.ports.subscribers.stored.detach(self._realm, patterns, self.session.connection)
        shared = self._shared(patterns, meta_events.ON_DELETE)
        for pattern in patterns:
            if self._may_announce(listener):
                self._publish_meta(meta_events.detached(listener, pattern, is_last=pattern not in shared))
            self._events.append(events.unsubscribed(pattern, listener, self._realm, self.cause))

    def _may_announce(self, listener: Listener) -> bool:
        is_watched = not meta_events.OF_SUBSCRIPTIONS.isdisjoint(self.watched())
        return is_watched and self.ports.subscribers.known.may_announce(self._realm, listener.authid)

    def _shared(self, patterns: Sequence[TopicPattern], topic: RoutingKey) -> Collection[TopicPattern]:
        """Return the patterns to which other sessions are subscribed; all if no session receives a meta topic."""
        if topic not in self.watched():
            return patterns
        return self.ports.subscribers.known.shared(self._realm, patterns, without=self._listener.session)

    def _publish_meta(self, found: Iterable[MetaEvent]) -> None:
        """Publish the meta events whose topics have subscribers; most realms have none."""
        watched = self.watched()
        for number, one in enumerate(found):
            if one.topic in watched:
                item_id = self._item_id(f"{one.topic}:{number}:{one.payload.arguments}")
                publication = PublicationId(_number_of(item_id))
                metadata = PublicationMetadata(publication)
                said = RealmPublication(
                    one.topic, one.payload, metadata, meta_events.PUBLISHER, self.session.connection
                )
                with suppress(RejectedError):  # the exchange was deleted, and its subscribers with it
                    self._publish(said, item_id)

    def _publish(self, said: RealmPublication, item_id: ItemId) -> None:
        live = self.access().live or LiveSettings()
        message = message_for(said, order_by=live.order_by, deduplication_id=item_id)
        self.ports.sender.send(self.ports.names.queue(self._realm), message)

    def _refuse(self, effect: Distribute, reason: str, problem: str) -> None:
        if effect.request is None:
            self.drop(Drop(reason))
            return
        error = Error(TYPE_CODES[Publish], effect.request, {}, reason, Payload((problem,)))
        self._put(reply_item(Post(error), self._item_id()))

    def _put(self, item: OutboxItem) -> None:
        self._items.append(item)

    def _flush(self) -> None:
        if self._items:
            self.ports.outboxes.put(self.session.connection, self._items)
            self._items = []

    def _item_id(self, what: str = "") -> ItemId:
        # A deduplication id has at most 128 characters.
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
        # Only sessions that have joined, and may have left again in the same batch, have effects that need it.
        identity = cast("Identity", self.session.identity)
        return Listener(cast("SessionId", self.session.session), identity.authid, identity.authrole)


def _begins(post: Post) -> bool:
    return isinstance(post.message, Subscribed)


def _requests_past(attach: Attach) -> bool:
    return attach.get_retained or attach.history is not None


def _number_of(item_id: ItemId) -> int:
    return int.from_bytes(hashlib.sha256(item_id.encode()).digest()[:8]) % MAXIMUM_ID + 1


METHODS: Mapping[type[Effect], Callable[[FrameEffects, Any], None]] = {
    Enter: FrameEffects.enter,
    Leave: FrameEffects.leave,
    Attach: FrameEffects.attach,
    Detach: FrameEffects.detach,
    Distribute: FrameEffects.distribute,
    AnswerCall: FrameEffects.answer_call,
    CatchUp: FrameEffects.catch_up,
    RefuseFrame: FrameEffects.refuse_frame,
    Drop: FrameEffects.drop,
    CountFailure: FrameEffects.count_failure,
}
