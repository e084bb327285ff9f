"""A live client that reconnects, backfills what it missed, and returns each event once and in order."""

import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from signalbox.clients.identity.provider import ProviderUnavailable
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.clients.live.renewal import Renewal
from signalbox.clients.live.session import ClientSession, ConnectionLost, Login, Socket, join, refusal
from signalbox.errors import SignalboxError, UnavailableError
from signalbox.live.wamp import messages

REPLY_SECONDS = 30.0
FIRST_TRIES = 3  # the functions of an idle stage take a moment to start
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0


class RequestUnconfirmed(UnavailableError):
    """Raised when the connection is lost before a request's reply, or no reply arrives; it may have been executed."""


@dataclass(frozen=True, slots=True)
class ClientClock:
    """The clocks, sleep and random source of a client."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    chance: Callable[[], float] = random.random
    epoch: Callable[[], float] = time.time


@dataclass(slots=True)
class LiveClient:
    """A client that follows its subscriptions over one connection at a time. Not thread-safe.

    `connect` opens a connection, and raises `ConnectionLost` if that fails temporarily. The first session is tried
    three times. A lost session is retried without limit, with exponential backoff and jitter.
    """

    connect: Callable[[], Socket]
    login: Login
    clock: ClientClock = field(default_factory=ClientClock)
    connections: int = 0
    """The number of sessions that were opened."""
    _session: ClientSession | None = None
    _renewal: Renewal | None = None
    _failures: int = 0
    _resume_at: float = 0.0
    _cursors: list[PatternCursor] = field(default_factory=list)
    _events: deque[ReceivedEvent] = field(default_factory=deque)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._session is not None:
            self._session.socket.close()
            self._session = None

    def follow(self, cursor: PatternCursor) -> None:
        """Subscribe now and on each new connection. A refusal is raised by the next method that reads."""
        self._cursors.append(cursor)
        if self._session is not None:
            try:
                self._session.subscribe(cursor)
            except ConnectionLost:
                self._handle_loss()

    def __iter__(self) -> Iterator[ReceivedEvent]:
        """Yield events as they arrive, for ever."""
        return iter(self.receive, None)  # without a timeout, `receive` never returns None

    def backfill(self) -> Iterator[ReceivedEvent]:
        """Yield events until every subscription's backfill is complete. Live events may be among them."""
        while self._events or not all(cursor.is_caught_up or cursor.is_over for cursor in self._cursors):
            if self._events:
                yield self._events.popleft()
            else:
                self._advance(None)

    def receive(self, timeout_seconds: float | None = None) -> ReceivedEvent | None:
        """Return the next event, or None if none arrives in time.

        Raises `ConnectionLost` for the first session only, and `JoinRefused`, `RequestRefused`, `SubscriptionRevoked`,
        `SessionClosed` and `MalformedMessage`; and `PastOmitted`, after which the next call goes on.
        """
        deadline = None if timeout_seconds is None else self.clock.now() + timeout_seconds
        while not self._events:
            self._advance(deadline)
            if not self._events and self._has_passed(deadline):
                return None
        return self._events.popleft()

    def publish(
        self, topic: str, payload: messages.Payload = messages.EMPTY, *, options: messages.Dictionary | None = None
    ) -> messages.PublicationId:
        """Publish an event, and return its id when it is in every subscriber's outbox. Raises what `call` raises."""
        acknowledged = {**(options or {}), "acknowledge": True}
        reply = self._request(lambda request: messages.Publish(request, acknowledged, topic, payload))
        return reply.publication if isinstance(reply, messages.Published) else messages.PublicationId(0)

    def call(self, procedure: str, payload: messages.Payload = messages.EMPTY) -> messages.Payload:
        """Call a procedure and return its result.

        Raises `RequestRefused`, `RequestUnconfirmed` and what `receive` raises.
        """
        reply = self._request(lambda request: messages.Call(request, {}, procedure, payload))
        return reply.payload if isinstance(reply, messages.Result) else messages.EMPTY

    def _request(self, build: Callable[[messages.RequestId], messages.Message]) -> messages.Message:
        deadline = self.clock.now() + REPLY_SECONDS
        while self._session is None:
            self._advance(deadline)
            if self._has_passed(deadline):
                raise ConnectionLost(f"there was no connection for {REPLY_SECONDS:.0f} s")
        reply = self._reply(self._session, build, deadline)
        if isinstance(reply, messages.Error):
            raise refusal(reply)
        return reply

    def _reply(
        self, session: ClientSession, build: Callable[[messages.RequestId], messages.Message], deadline: float
    ) -> messages.Message:
        try:
            request = session.send_request(build)
        except ConnectionLost as lost:
            self._handle_loss()
            raise RequestUnconfirmed("the connection was lost before the reply to a request") from lost
        while request not in session.replies:
            if self._session is not session or self._has_passed(deadline):
                raise RequestUnconfirmed(f"no reply to request {request}; it may have been executed")
            self._advance(deadline)
        return session.replies.pop(request)

    def _advance(self, deadline: float | None) -> None:
        """Read one message, or try once to connect."""
        try:
            if self._session is None:
                self._reconnect(deadline)
                return
            event = self._read(self._session, deadline)
        except (ConnectionLost, ProviderUnavailable):
            self._handle_loss()
            if not self.connections and self._failures >= FIRST_TRIES:
                raise
            return
        if event is not None:
            self._events.append(event)

    def _read(self, session: ClientSession, deadline: float | None) -> ReceivedEvent | None:
        """Read one message; with a token, wait for it no longer than until the renewal."""
        if self._renewal is None:
            return session.read(self._left(deadline))
        self._renewal.begin(session, now=self.clock.now(), epoch=self.clock.epoch())
        ends = [moment for moment in (deadline, self._renewal.due_at) if moment is not None]
        event = session.read(self._left(min(ends, default=None)))
        self._renewal.finish(session, now=self.clock.now())
        return event

    def _reconnect(self, deadline: float | None) -> None:
        pause = self._resume_at - self.clock.now()
        if pause > 0:
            left = self._left(deadline)
            self.clock.sleep(pause if left is None else min(pause, left))
            return
        # Before the connection is open: the user may have to sign in, and the router waits for ten seconds.
        token = None if self.login.token is None else self.login.token()
        self._session = self._open_session(self.connect(), token)
        if self.login.token is not None and token is not None:
            self._renewal = Renewal.of(self.login.token, token, now=self.clock.now(), epoch=self.clock.epoch())
        self.connections += 1
        self._session.subscribe(*(cursor for cursor in self._cursors if not cursor.is_over))

    def _open_session(self, socket: Socket, token: str | None) -> ClientSession:
        try:
            return join(socket, self.login, token)
        except SignalboxError:
            socket.close()
            raise

    def _handle_loss(self) -> None:
        """Close the lost connection, and schedule the next try with exponential backoff and jitter."""
        if self._session is not None and self._session.is_settled:
            self._failures = 0
        self.close()
        longest = min(FIRST_PAUSE_SECONDS * 2.0**self._failures, LONGEST_PAUSE_SECONDS)
        self._failures = min(self._failures + 1, 16)
        self._resume_at = self.clock.now() + self.clock.chance() * longest

    def _left(self, deadline: float | None) -> float | None:
        return None if deadline is None else max(deadline - self.clock.now(), 0.0)

    def _has_passed(self, deadline: float | None) -> bool:
        return deadline is not None and self.clock.now() >= deadline
