"""A client's WAMP session with the live router: login, subscriptions, requests and their replies."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.errors import RejectedError, UnavailableError
from signalbox.live.wamp import messages, uris
from signalbox.live.wamp.codec import MAXIMUM_DEPTH, parse, serialize
from signalbox.live.wamp.options import parse_timestamp

READ_DEPTH = 2 * MAXIMUM_DEPTH  # more than a stage writes
LOOKUP = "wamp.subscription.lookup"
ROLES: Mapping[str, object] = {
    "subscriber": {
        "features": {"pattern_based_subscription": True, "subscription_revocation": True, "_past_refusal": True}
    },
    "publisher": {"features": {}},
    "caller": {"features": {}},
}
JOIN_SECONDS = 30.0
# Reasons of an ABORT after which another try may succeed.
TEMPORARY = frozenset({uris.TIMEOUT, uris.PROTOCOL_VIOLATION, uris.UNAVAILABLE})
# Reasons of a GOODBYE after which a client joins again with a new token.
TOKEN_OVER = frozenset({"signalbox.close.token_expired", "signalbox.close.role_changed"})


class ConnectionLost(UnavailableError):
    """Raised when a connection to the live router cannot be opened, or is lost."""


class JoinRefused(RejectedError):
    """Raised when the live router refuses a client's login; the text has the reason."""


class RequestRefused(RejectedError):
    """Raised when the live router answers a request with ERROR; `error` is the error's URI."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(f"{message} ({error})" if message else error)
        self.error = error


class SubscriptionRevoked(RejectedError):
    """Raised when the live router has ended a subscription because the user's right was revoked."""


class PastOmitted(RejectedError):
    """Raised when the live router refuses the past events of a subscription, which goes on with new events alone."""


class SessionClosed(UnavailableError):
    """Raised when the live router sends GOODBYE: an administrator has ended the session, and it must not reconnect."""


class Socket(Protocol):
    """A WebSocket of the subprotocol `wamp.2.json` or `wamp.2.json.batched`; it sends and returns single messages."""

    def send(self, text: str) -> None:
        """Send a message. Raises `ConnectionLost`."""

    def receive(self, timeout_seconds: float | None) -> str | None:
        """Return the next message, or None if none arrives in time. Raises `ConnectionLost`."""

    def close(self) -> None:
        """Close the connection. Does nothing if it is already closed."""


@dataclass(frozen=True, slots=True)
class Login:
    """The realm and credentials of a session; without a `ticket` and a `token`, it joins anonymously.

    `token` returns a token of an identity provider that the realm trusts, and is called for each session and for each
    renewal. The token names the user, so an `authid` is not needed.
    """

    realm: str
    authid: str | None = None
    ticket: str | None = field(default=None, repr=False)
    token: Callable[[], str] | None = field(default=None, repr=False)

    @property
    def details(self) -> messages.Dictionary:
        """Return the details of HELLO."""
        method = "anonymous" if self.ticket is None and self.token is None else "ticket"
        return {"roles": ROLES, "authmethods": [method], **({"authid": self.authid} if self.authid else {})}


@dataclass(slots=True)
class ClientSession:
    """A joined session. `is_settled` is true once the router has replied to a request in it."""

    socket: Socket
    joined_at: datetime | None
    is_settled: bool = False
    replies: dict[messages.RequestId, messages.Message] = field(default_factory=dict)
    _requests: int = 0
    _subscribing: dict[messages.RequestId, PatternCursor] = field(default_factory=dict)
    _backfilling: dict[messages.RequestId, tuple[PatternCursor, ...]] = field(default_factory=dict)
    _subscribed: dict[messages.SubscriptionId, PatternCursor] = field(default_factory=dict)

    def subscribe(self, *cursors: PatternCursor) -> None:
        """Subscribe to the patterns of cursors, and request a marker for the end of their backfills.

        The marker is the reply to a call without side effects. Messages of a connection are ordered, so the reply
        arrives after the backfills, which have no end marker of their own.
        """
        for cursor in cursors:
            uri = cursor.pattern.uri
            self._subscribing[self.send_request(partial(messages.Subscribe, options=cursor.options, topic=uri))] = (
                cursor
            )
        if cursors:
            payload = messages.Payload((cursors[-1].pattern.uri, {"match": cursors[-1].pattern.match.value}))
            self._backfilling[self.send_request(lambda request: messages.Call(request, {}, LOOKUP, payload))] = cursors

    def send_request(self, build: Callable[[messages.RequestId], messages.Message]) -> messages.RequestId:
        """Send a request and return its id. Its reply is added to `replies` when it arrives."""
        self._requests += 1
        request = messages.RequestId(self._requests)
        self.socket.send(serialize(build(request)))
        return request

    def read(self, timeout_seconds: float | None) -> ReceivedEvent | None:
        """Handle the next message; return its event if it is a new one.

        Raises `ConnectionLost`, `JoinRefused`, `RequestRefused`, `SubscriptionRevoked`, `PastOmitted`, `SessionClosed`
        and `MalformedMessage`.
        """
        text = self.socket.receive(timeout_seconds)
        message = None if text is None else parse(text, maximum_depth=READ_DEPTH)
        if isinstance(message, messages.Event):
            cursor = self._subscribed.get(message.subscription)
            return cursor.received(message) if cursor else None
        if isinstance(message, messages.Abort):
            raise _abort_error(message)
        if isinstance(message, messages.Goodbye):
            self._close(message)
        request = getattr(message, "request", None)
        if message is not None and request is not None:
            self._handle_reply(request, message)
        return None

    def _handle_reply(self, request: messages.RequestId, reply: messages.Message) -> None:
        self.is_settled = True
        subscribing, backfilling = self._subscribing.pop(request, None), self._backfilling.pop(request, None)
        if backfilling is not None:
            for cursor in backfilling:
                cursor.caught_up(self.joined_at)
        elif subscribing is None:
            self._check_revocation(reply)
            self.replies[request] = reply
        elif isinstance(reply, messages.Error):
            subscribing.is_over = True
            raise refusal(reply)
        elif isinstance(reply, messages.Subscribed):
            self._subscribed[reply.subscription] = subscribing

    def _check_revocation(self, reply: messages.Message) -> None:
        """Raise the error for an UNSUBSCRIBED of the router (advanced profile, «Revocation»)."""
        details = (reply.details if isinstance(reply, messages.Unsubscribed) else None) or {}
        subscription = details.get("subscription")
        cursor = (
            self._subscribed.pop(messages.SubscriptionId(subscription), None) if isinstance(subscription, int) else None
        )
        if cursor is not None and details.get("reason") == uris.PAYLOAD_SIZE_EXCEEDED:
            cursor.omit_past(self.joined_at)
            self.subscribe(cursor)
            raise PastOmitted(f"{cursor.pattern.uri!r} goes on without past events: {details.get('message')}")
        if cursor is not None:
            cursor.is_over = True
            raise SubscriptionRevoked(
                f"{cursor.pattern.uri!r} is not open to this user any more ({details.get('reason')})"
            )

    def _close(self, goodbye: messages.Goodbye) -> None:
        self.socket.send(serialize(messages.Goodbye({}, uris.GOODBYE_AND_OUT)))
        reason = goodbye.details.get("message") or goodbye.reason
        if goodbye.reason in TOKEN_OVER:
            raise ConnectionLost(f"the session has ended: {reason}")
        raise SessionClosed(f"the router has ended the session: {reason}")


def join(socket: Socket, login: Login, ticket: str | None = None) -> ClientSession:
    """Join a realm, with the ticket of the login or a given one. Raises `ConnectionLost` and `JoinRefused`."""
    socket.send(serialize(messages.Hello(login.realm, login.details)))
    while True:
        text = socket.receive(JOIN_SECONDS)
        if text is None:
            raise ConnectionLost(f"the router did not answer within {JOIN_SECONDS:.0f} s")
        message = parse(text)
        if isinstance(message, messages.Challenge):
            socket.send(serialize(messages.Authenticate(ticket or login.ticket or "", {})))
        elif isinstance(message, messages.Welcome):
            at = message.details.get("_at")
            return ClientSession(socket, parse_timestamp(at) if isinstance(at, str) else None)
        elif isinstance(message, messages.Abort):
            raise _abort_error(message)


def refusal(error: messages.Error) -> RequestRefused:
    """Return the exception for an ERROR."""
    first = error.payload.arguments[0] if error.payload.arguments else ""
    return RequestRefused(error.error, str(first))


def _abort_error(abort: messages.Abort) -> JoinRefused | ConnectionLost:
    message = abort.details.get("message")
    reason = f"{message} ({abort.reason})" if message else abort.reason
    if abort.reason in TEMPORARY:
        return ConnectionLost(f"the router has ended the session: {reason}")
    return JoinRefused(f"cannot join: {reason}")
