"""An in-memory live router behind real WebSockets, with the product's session machine, for tests of clients."""

import base64
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import Server, ServerConnection, serve
from websockets.typing import Subprotocol

from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.identity.compact import is_compact_jwt
from signalbox.live.identity.tokens import TokenIdentity, TokenRefusal, TokenVerifier, VerifiedToken
from signalbox.live.log.events import EventTexts, LoggedEvent
from signalbox.live.log.get_events import get_events_result
from signalbox.live.log.history_request import HistoryRequest, InvalidArgument
from signalbox.live.log.payloads import RETAIN_HEADER, RETAINED, payload_from_body
from signalbox.live.log.selection import backfill_page, history_page, is_logged, latest_retained
from signalbox.live.model.effects import AnswerCall, Attach, Close, Distribute, Enter, Post
from signalbox.live.model.state import (
    Account,
    ConnectionId,
    DecisionContext,
    Elapsed,
    Killed,
    Lost,
    PastRefused,
    Realm,
    Received,
    RightsChanged,
    Session,
    opened,
)
from signalbox.live.procedures.session_meta import RENEW
from signalbox.live.rights.grants import Grant, Rights
from signalbox.live.session.machine import receive
from signalbox.live.wamp import codec, uris
from signalbox.live.wamp.audience import UNRESTRICTED
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.batches import BATCHED_SUBPROTOCOL, batch, messages_of
from signalbox.live.wamp.messages import (
    EMPTY,
    Authenticate,
    Call,
    Error,
    Hello,
    Message,
    Payload,
    PublicationId,
    Published,
    RequestId,
    Result,
    SessionId,
)
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Right, Role

REALM = ExchangeName("trial.fifo")
TICKET = "a-ticket"
CALL = 48


@dataclass(slots=True, eq=False)
class Peer:
    """A connection and its session."""

    connection: ServerConnection
    session: Session

    def post(self, message: Message) -> None:
        self.send(codec.serialize(message))

    def send(self, *texts: str) -> None:
        """Send messages; to a client that receives batches, in one WebSocket message."""
        separator = self.session.separator
        with suppress(ConnectionClosed):
            for frame in [batch(texts, separator)] if separator and texts else texts:
                self.connection.send(frame)

    def close(self) -> None:
        threading.Thread(target=self.connection.close, daemon=True).start()

    def cut(self) -> None:
        """Drop the connection without a closing handshake."""
        with suppress(OSError):
            self.connection.socket.shutdown(socket.SHUT_RDWR)


@dataclass(slots=True)
class Router:
    """One realm with users, whose grants are in `rights`; the ticket of every user is `TICKET`.

    With `issuers`, whose tokens `tokens` verifies, users may join by token; they have the grants of their groups.
    """

    rights: dict[str, tuple[Grant, ...]]
    issuers: tuple[Issuer, ...] = ()
    tokens: TokenVerifier | None = None
    group_rights: dict[str, tuple[Grant, ...]] = field(default_factory=dict)
    joins: int = 0
    log: list[LoggedEvent] = field(default_factory=list)
    url: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    refuse_with: tuple[int, str] | None = None
    procedures: dict[str, Callable[[Payload], Payload]] = field(default_factory=dict)
    texts: EventTexts = field(default_factory=EventTexts)
    _peers: list[Peer] = field(default_factory=list)
    _numbers: dict[RoutingKey, int] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def publish(self, topic: str, *arguments: object, retain: bool = False, **keywords: object) -> LoggedEvent:
        """Publish an event that no session publishes, as over SQS."""
        payload = Payload(arguments, keywords)
        return self._distribute(
            Distribute(_id(PublicationId), RoutingKey(topic), payload, UNRESTRICTED, None, retain, None)
        )

    def publish_message(self, topic: str, body: str, headers: Mapping[str, str]) -> LoggedEvent:
        """Publish an event with the headers of a message."""
        is_retained = headers.get(RETAIN_HEADER) == RETAINED
        others = {name: text for name, text in headers.items() if name != RETAIN_HEADER}
        payload = payload_from_body(body, headers)
        return self._distribute(
            Distribute(_id(PublicationId), RoutingKey(topic), payload, UNRESTRICTED, None, is_retained, None), others
        )

    def subscriptions(self) -> int:
        """Return the number of subscriptions of all sessions."""
        with self._lock:
            return sum(len(peer.session.subscriptions) for peer in self._peers)

    def paused(self) -> threading.RLock:
        """Return the lock that stops the handling of messages while it is held."""
        return self._lock

    def welcome(self, connection: ServerConnection, request: Request) -> Response | None:
        """Refuse a connection if `refuse_with` is set."""
        del request
        return connection.respond(*self.refuse_with) if self.refuse_with else None

    def cut(self) -> None:
        """Cut all connections."""
        with self._lock:
            for peer in self._peers:
                peer.cut()

    def kill(self) -> None:
        """End all sessions with GOODBYE, as an administrator does."""
        self._notify_all(Killed("wamp.close.killed", "enough"))

    def token_ends(self) -> datetime | None:
        """Return when the first token of an open session ends, or None without one."""
        with self._lock:
            return min((peer.session.token.ends_at for peer in self._peers if peer.session.token), default=None)

    def end_tokens(self) -> None:
        """Run out the timers of sessions whose token has ended."""
        self._notify_all(Elapsed())

    def revoke(self, user: str, *, left: tuple[Grant, ...] = ()) -> None:
        """Revoke the rights of a user, but for those that are left."""
        self.rights[user] = left
        self._notify_all(RightsChanged())

    def refuse_past(self, topic: str) -> None:
        """End the subscriptions to a topic as those that request too many past events."""
        self._notify_all(PastRefused(TopicPattern.parse(topic).subscription_id, "too many"))

    def forget(self, topic: str, count: int) -> None:
        """Delete a topic's oldest events from the log."""
        with self._lock:
            gone = [event for event in self.log if event.topic == topic][:count]
            self.log = [event for event in self.log if event not in gone]

    def serve(self, connection: ServerConnection) -> None:
        agent = connection.request.headers.get("User-Agent", "") if connection.request else ""
        session = new_session(agent, is_batched=connection.subprotocol == BATCHED_SUBPROTOCOL)
        with suppress(ConnectionClosed, OSError), self.connected(Peer(connection, session)) as peer:
            for text in connection:
                self.receive_text(peer, str(text))

    @contextmanager
    def connected(self, peer: Peer) -> Iterator[Peer]:
        """Serve a peer; in the end its session is lost."""
        with self._lock:
            self._peers.append(peer)
        try:
            yield peer
        finally:
            with self._lock:
                self._peers.remove(peer)
            self._receive(peer, Lost())

    def receive_text(self, peer: Peer, text: str) -> None:
        """Handle a frame of a peer."""
        for one in messages_of(text) if peer.session.is_batched else [text]:
            self._receive(peer, codec.decode(one), len(one))

    def _notify_all(self, received: Received) -> None:
        with self._lock:
            for peer in list(self._peers):
                self._receive(peer, received)

    def _receive(self, peer: Peer, received: Received, size: int = 0) -> None:
        with self._lock:
            outcome = receive(peer.session, received, self._circumstances(peer.session, received, size))
            peer.session = outcome.session
            for effect in outcome.effects:
                self._carry_out(peer, effect)

    def _circumstances(self, session: Session, received: Received, size: int) -> DecisionContext:
        name = session.identity.authid if session.identity else ""
        if isinstance(received, Hello):
            name = str(received.details.get("authid"))
        is_realm = REALM in (session.realm, getattr(received, "realm", None))
        realm = Realm(REALM, "pepper", has_issuers=bool(self.issuers)) if is_realm else None
        token = self._verified(received)
        identity = session.token
        if isinstance(token, VerifiedToken):
            name, identity = token.authid, token.identity
        return DecisionContext(
            now=datetime.now(UTC),
            session=_id(SessionId),
            publication=_id(PublicationId),
            nonce=secrets.token_hex(),
            realm=realm,
            account=self._account(name) if identity is None else self._token_account(name, identity),
            size_bytes=size,
            token=token,
        )

    def _verified(self, received: Received) -> VerifiedToken | TokenRefusal | None:
        """Verify the token of a message, if it has one."""
        text: object = None
        if isinstance(received, Authenticate):
            text = received.signature
        elif isinstance(received, Call) and received.procedure == RENEW and received.payload.arguments:
            text = received.payload.arguments[0]
        if self.tokens is None or not isinstance(text, str) or not is_compact_jwt(text):
            return None
        return self.tokens.verify(text, self.issuers)

    def _token_account(self, name: str, identity: TokenIdentity) -> Account:
        granted = tuple(grant for group in identity.groups for grant in self.group_rights.get(group, ()))
        rights = Rights(frozenset(), (*self.rights.get(name, ()), *granted), is_admin=False)
        return Account(UserName(name), identity.role, CREDENTIALS, rights)

    def _account(self, name: str) -> Account | None:
        if name not in self.rights:
            return None
        role = Role(self.roles.get(name, Role.SUBSCRIBER))
        rights = Rights(frozenset(), self.rights[name], is_admin=role is Role.ADMIN)
        return Account(UserName(name), role, CREDENTIALS, rights)

    def _carry_out(self, peer: Peer, effect: object) -> None:
        if isinstance(effect, Enter):
            self.joins += 1
        elif isinstance(effect, Post):
            peer.post(effect.message)
        elif isinstance(effect, Attach):
            self._attach(peer, effect)
        elif isinstance(effect, Distribute):
            logged = self._distribute(effect)
            if effect.request is not None:
                peer.post(Published(effect.request, logged.publication))
        elif isinstance(effect, AnswerCall):
            peer.post(self._answer(peer, effect))
        elif isinstance(effect, Close):
            peer.close()

    def _attach(self, peer: Peer, attach: Attach) -> None:
        listener, pattern = peer.session.listener, attach.pattern
        events = [event for event in self.log if pattern.matches(event.topic)]
        if listener is not None and attach.get_retained:
            latest = latest_retained(events, listener)
            peer.send(*(self.texts.text(pattern, event, is_retained=True) for event in latest))
        if listener is not None and attach.history is not None:
            past = backfill_page(events, attach.history, listener).events
            peer.send(*(self.texts.text(pattern, event) for event in past))

    def _distribute(self, effect: Distribute, headers: Mapping[str, str] = MappingProxyType({})) -> LoggedEvent:
        with self._lock:
            self._numbers[effect.topic] = self._numbers.get(effect.topic, 0) + 1
            logged = LoggedEvent(
                effect.publication,
                effect.topic,
                datetime.now(UTC),
                effect.payload,
                self._numbers[effect.topic],
                effect.audience,
                effect.disclosed,
                effect.is_retained,
                headers,
            )
            if is_logged(logged):
                self.log.append(logged)
            for peer in self._peers:
                self._deliver(peer, logged)
            return logged

    def _deliver(self, peer: Peer, logged: LoggedEvent) -> None:
        listener = peer.session.listener
        if listener is None or not logged.audience.admits(listener):
            return
        for pattern in peer.session.subscriptions.values():
            if pattern.matches(logged.topic):
                peer.send(self.texts.text(pattern, logged))

    def _answer(self, peer: Peer, answer: AnswerCall) -> Message:
        listener = peer.session.listener
        if answer.procedure in self.procedures:
            return self._called(answer)
        if answer.procedure == "wamp.subscription.lookup":
            return Result(answer.request, {}, Payload((1,)))
        if answer.procedure != "wamp.subscription.get_events" or listener is None:
            return Error(CALL, answer.request, {}, uris.NO_SUCH_PROCEDURE, EMPTY)
        try:
            request = HistoryRequest.parse(answer.payload)
        except InvalidArgument as problem:
            return Error(CALL, answer.request, {}, uris.INVALID_ARGUMENT, Payload((str(problem),)))
        pattern = peer.session.subscriptions.get(request.subscription)
        if pattern is None:
            return Error(CALL, answer.request, {}, uris.NO_SUCH_SUBSCRIPTION, EMPTY)
        events = [event for event in self.log if pattern.matches(event.topic)]
        return Result(
            RequestId(answer.request), {}, get_events_result(history_page(events, request, listener), pattern)
        )

    def _called(self, answer: AnswerCall) -> Message:
        try:
            return Result(answer.request, {}, self.procedures[answer.procedure](answer.payload))
        except LookupError:
            return Error(CALL, answer.request, {}, uris.NO_SUCH_SUBSCRIPTION, EMPTY)


def new_session(user_agent: str, *, is_batched: bool = False) -> Session:
    """Return the session of a new connection."""
    connection = ConnectionId(secrets.token_hex(8))
    return opened(connection, now=datetime.now(UTC), user_agent=user_agent, is_batched=is_batched)


def _id(kind: Any) -> Any:
    return kind(secrets.randbelow(codec.MAXIMUM_ID) + 1)


def grants(*prefixes: str) -> tuple[Grant, ...]:
    """Return grants of every right on the topics with these prefixes."""
    return tuple(Grant(right, TopicPattern.parse(prefix, MatchPolicy.PREFIX)) for prefix in prefixes for right in Right)


CREDENTIALS = StoredSecret.of(TICKET, salt=base64.b64encode(b"salt").decode(), with_key=True)


@contextmanager
def running(rights: Mapping[str, tuple[Grant, ...]] | None = None) -> Iterator[Router]:
    """Run a router on loopback."""
    router = Router(dict(rights or {"alice": grants("trial.")}))
    server: Server = serve(
        router.serve,
        "127.0.0.1",
        0,
        subprotocols=[Subprotocol(BATCHED_SUBPROTOCOL), Subprotocol(codec.SUBPROTOCOL)],
        process_request=router.welcome,
        compression=None,
        close_timeout=1,
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    router.url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"
    try:
        yield router
    finally:
        router.cut()
        server.shutdown()
        thread.join()
