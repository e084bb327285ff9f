"""One session with the live router, as a client has it: joining, what was asked, what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from signalbox.clients.live.cursor import Cursor, ReceivedEvent
from signalbox.errors import RejectedError, UnavailableError
from signalbox.live.wamp import error_uris
from signalbox.live.wamp.codec import parse, serialize
from signalbox.live.wamp.messages import (
    Abort,
    Authenticate,
    Call,
    Challenge,
    Dictionary,
    Error,
    Event,
    Goodbye,
    Hello,
    Message,
    Payload,
    RequestId,
    Subscribe,
    Subscribed,
    SubscriptionId,
    Unsubscribed,
    Welcome,
)
from signalbox.live.wamp.options import parse_timestamp

LOOKUP = "wamp.subscription.lookup"
ROLES: Mapping[str, object] = {
    "subscriber": {"features": {"pattern_based_subscription": True, "subscription_revocation": True}},
    "publisher": {"features": {}},
    "caller": {"features": {}},
}
JOIN_SECONDS = 30.0
# With other reasons of an ABORT, another try would meet the same.
PASSING = frozenset({error_uris.TIMEOUT, error_uris.PROTOCOL_VIOLATION})


class ConnectionLost(UnavailableError):
    """Raised when a connection to the live router cannot be made, or is gone."""


class JoinRefused(RejectedError):
    """Raised when the live router does not let a client join; the text has its reason."""


class RequestRefused(RejectedError):
    """Raised when the live router refuses what a client asks for; `error` is WAMP's name of the reason."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(f"{message} ({error})" if message else error)
        self.error = error


class SubscriptionRevoked(RejectedError):
    """Raised when a subscription has ended, since its user may not have it any more."""


class SessionClosed(UnavailableError):
    """Raised when the live router says GOODBYE: somebody has ended the session, and it is not to come back."""


class Socket(Protocol):
    """A WebSocket of the subprotocol `wamp.2.json`."""

    def send(self, text: str) -> None:
        """Send a message. Raises `ConnectionLost`."""
        ...

    def receive(self, timeout_seconds: float | None) -> str | None:
        """Return the next message, or None if none comes in time. Raises `ConnectionLost`."""
        ...

    def close(self) -> None:
        """Close the connection, which may be gone."""
        ...


@dataclass(frozen=True, slots=True)
class Login:
    """Who joins which realm; without a `ticket`, as anybody may."""

    realm: str
    authid: str | None = None
    ticket: str | None = field(default=None, repr=False)

    @property
    def details(self) -> Dictionary:
        """Return what HELLO says."""
        method = "anonymous" if self.ticket is None else "ticket"
        return {"roles": ROLES, "authmethods": [method], **({"authid": self.authid} if self.authid else {})}


@dataclass(slots=True)
class ClientSession:
    """A session that has joined. `is_settled` says that the router has answered a request in it."""

    socket: Socket
    joined_at: datetime | None
    is_settled: bool = False
    replies: dict[RequestId, Message] = field(default_factory=dict)
    _requests: int = 0
    _asked: dict[RequestId, Cursor] = field(default_factory=dict)
    _looked_up: dict[RequestId, tuple[Cursor, ...]] = field(default_factory=dict)
    _subscribed: dict[SubscriptionId, Cursor] = field(default_factory=dict)

    def subscribe(self, *cursors: Cursor) -> None:
        """Ask for what is new to cursors, and for a sign that all of the past has come.

        That sign is the reply to a call which changes nothing: what one connection gets is in order, so the reply
        stands behind the past, whose end nothing else tells.
        """
        for cursor in cursors:
            uri = cursor.pattern.uri
            self._asked[self.send_request(partial(Subscribe, options=cursor.options, topic=uri))] = cursor
        if cursors:
            payload = Payload((cursors[-1].pattern.uri, {"match": cursors[-1].pattern.match.value}))
            self._looked_up[self.send_request(lambda request: Call(request, {}, LOOKUP, payload))] = cursors

    def send_request(self, question: Callable[[RequestId], Message]) -> RequestId:
        """Send a request and return its id; the reply will be among the `replies`."""
        self._requests += 1
        request = RequestId(self._requests)
        self.socket.send(serialize(question(request)))
        return request

    def read(self, timeout_seconds: float | None) -> ReceivedEvent | None:
        """Take note of the next message, and return the event if it is a new one.

        Raises `ConnectionLost`, `JoinRefused`, `RequestRefused`, `SubscriptionRevoked`, `SessionClosed` and
        `MalformedMessage`.
        """
        text = self.socket.receive(timeout_seconds)
        message = None if text is None else parse(text)
        if isinstance(message, Event):
            cursor = self._subscribed.get(message.subscription)
            return cursor.received(message) if cursor else None
        if isinstance(message, Abort):
            raise _aborted(message)
        if isinstance(message, Goodbye):
            self._part(message)
        request = getattr(message, "request", None)
        if message is not None and request is not None:
            self._replied(request, message)
        return None

    def _replied(self, request: RequestId, reply: Message) -> None:
        self.is_settled = True
        asked, looked_up = self._asked.pop(request, None), self._looked_up.pop(request, None)
        if looked_up is not None:
            for cursor in looked_up:
                cursor.caught_up(self.joined_at)
        elif asked is None:
            self._withdrawn(reply)
            self.replies[request] = reply
        elif isinstance(reply, Error):
            asked.is_over = True
            raise refusal(reply)
        elif isinstance(reply, Subscribed):
            self._subscribed[reply.subscription] = asked

    def _withdrawn(self, reply: Message) -> None:
        """Raise `SubscriptionRevoked` if a reply that nobody asked for says so (advanced profile, «Revocation»)."""
        details = (reply.details if isinstance(reply, Unsubscribed) else None) or {}
        subscription = details.get("subscription")
        cursor = self._subscribed.pop(SubscriptionId(subscription), None) if isinstance(subscription, int) else None
        if cursor is not None:
            cursor.is_over = True
            raise SubscriptionRevoked(
                f"{cursor.pattern.uri!r} is not open to this user any more ({details.get('reason')})"
            )

    def _part(self, goodbye: Goodbye) -> None:
        self.socket.send(serialize(Goodbye({}, error_uris.GOODBYE_AND_OUT)))
        said = goodbye.details.get("message") or goodbye.reason
        raise SessionClosed(f"the router has ended the session: {said}")


def join(socket: Socket, login: Login) -> ClientSession:
    """Join a realm. Raises `ConnectionLost` and `JoinRefused`."""
    socket.send(serialize(Hello(login.realm, login.details)))
    while True:
        text = socket.receive(JOIN_SECONDS)
        if text is None:
            raise ConnectionLost(f"the router has not answered within {JOIN_SECONDS:.0f} s")
        message = parse(text)
        if isinstance(message, Challenge):
            socket.send(serialize(Authenticate(login.ticket or "", {})))
        elif isinstance(message, Welcome):
            at = message.details.get("_at")
            return ClientSession(socket, parse_timestamp(at) if isinstance(at, str) else None)
        elif isinstance(message, Abort):
            raise _aborted(message)


def refusal(error: Error) -> RequestRefused:
    """Return what an ERROR says."""
    first = error.payload.arguments[0] if error.payload.arguments else ""
    return RequestRefused(error.error, str(first))


def _aborted(abort: Abort) -> JoinRefused | ConnectionLost:
    message = abort.details.get("message")
    said = f"{message} ({abort.reason})" if message else abort.reason
    if abort.reason in PASSING:
        return ConnectionLost(f"the router has ended the session: {said}")
    return JoinRefused(f"cannot join: {said}")
