"""A client of the live router that loses nothing: it comes back, catches up, and gives each event once and in order."""

import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from signalbox.clients.live.cursor import Cursor, ReceivedEvent
from signalbox.clients.live.session import ClientSession, ConnectionLost, Login, Socket, join, refusal
from signalbox.errors import SignalboxError, UnavailableError
from signalbox.live.wamp.messages import (
    EMPTY,
    Call,
    Dictionary,
    Error,
    Message,
    Payload,
    PublicationId,
    Publish,
    Published,
    RequestId,
    Result,
)

REPLY_SECONDS = 30.0
FIRST_TRIES = 3  # a stage where nobody was for long takes a moment to begin
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0


class RequestUnconfirmed(UnavailableError):
    """Raised when a connection is lost over a request, or no reply comes: it may be carried out all the same."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Time and chance, as a client needs them."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    chance: Callable[[], float] = random.random


@dataclass(slots=True)
class LiveClient:
    """Follows what it is subscribed to, over one connection at a time. Not for more than one thread.

    `connect` opens a connection, and raises `ConnectionLost` if it cannot now. The first session is tried three times;
    one that was lost is begun again until it stands, after pauses that grow and differ from those of others.
    """

    connect: Callable[[], Socket]
    login: Login
    clock: Clock = field(default_factory=Clock)
    connections: int = 0
    """How many sessions have begun."""
    _conversation: ClientSession | None = None
    _failures: int = 0
    _resume_at: float = 0.0
    _cursors: list[Cursor] = field(default_factory=list)
    _events: deque[ReceivedEvent] = field(default_factory=deque)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        if self._conversation is not None:
            self._conversation.socket.close()
            self._conversation = None

    def follow(self, cursor: Cursor) -> None:
        """Subscribe, now and again over each new connection. What is refused is raised by whatever waits next."""
        self._cursors.append(cursor)
        if self._conversation is not None:
            try:
                self._conversation.subscribe(cursor)
            except ConnectionLost:
                self._lost()

    def __iter__(self) -> Iterator[ReceivedEvent]:
        """Yield events as they come, for ever."""
        return iter(self.receive, None)  # without a time-out, it waits until there is one

    def backfill(self) -> Iterator[ReceivedEvent]:
        """Yield what was asked for of the past, to its end. Live events may be among them."""
        while self._events or not all(cursor.is_caught_up or cursor.is_over for cursor in self._cursors):
            if self._events:
                yield self._events.popleft()
            else:
                self._turn(None)

    def receive(self, timeout_seconds: float | None = None) -> ReceivedEvent | None:
        """Return the next event, or None if none comes in time.

        Raises `ConnectionLost` for the first session only, and `JoinRefused`, `RequestRefused`, `RightWithdrawn`,
        `SessionClosed` and `MalformedMessage` when they happen.
        """
        deadline = None if timeout_seconds is None else self.clock.now() + timeout_seconds
        while not self._events:
            self._turn(deadline)
            if not self._events and self._is_over(deadline):
                return None
        return self._events.popleft()

    def publish(self, topic: str, payload: Payload = EMPTY, *, options: Dictionary | None = None) -> PublicationId:
        """Publish, and return the event's id when it stands in every outbox. Raises what `call` does."""
        told = {**(options or {}), "acknowledge": True}
        reply = self._answered(lambda request: Publish(request, told, topic, payload))
        return reply.publication if isinstance(reply, Published) else PublicationId(0)

    def call(self, procedure: str, payload: Payload = EMPTY) -> Payload:
        """Call a procedure and return its result.

        Raises `RequestRefused`, `RequestUnconfirmed` and what `receive` raises.
        """
        reply = self._answered(lambda request: Call(request, {}, procedure, payload))
        return reply.payload if isinstance(reply, Result) else EMPTY

    def _answered(self, question: Callable[[RequestId], Message]) -> Message:
        deadline = self.clock.now() + REPLY_SECONDS
        while self._conversation is None:
            self._turn(deadline)
            if self._is_over(deadline):
                raise ConnectionLost(f"there was no connection for {REPLY_SECONDS:.0f} s")
        reply = self._reply(self._conversation, question, deadline)
        if isinstance(reply, Error):
            raise refusal(reply)
        return reply

    def _reply(self, conversation: ClientSession, question: Callable[[RequestId], Message], deadline: float) -> Message:
        try:
            request = conversation.send_request(question)
        except ConnectionLost as lost:
            self._lost()
            raise RequestUnconfirmed("the connection was lost over a request") from lost
        while request not in conversation.replies:
            if self._conversation is not conversation or self._is_over(deadline):
                raise RequestUnconfirmed(f"no reply to request {request}: it may be carried out all the same")
            self._turn(deadline)
        return conversation.replies.pop(request)

    def _turn(self, deadline: float | None) -> None:
        """Get one message further, or one try at a connection."""
        try:
            if self._conversation is None:
                self._come_back(deadline)
                return
            event = self._conversation.read(self._left(deadline))
        except ConnectionLost:
            self._lost()
            if not self.connections and self._failures >= FIRST_TRIES:
                raise
            return
        if event is not None:
            self._events.append(event)

    def _come_back(self, deadline: float | None) -> None:
        pause = self._resume_at - self.clock.now()
        if pause > 0:
            left = self._left(deadline)
            self.clock.sleep(pause if left is None else min(pause, left))
            return
        self._conversation = self._joined(self.connect())
        self.connections += 1
        self._conversation.subscribe(*(cursor for cursor in self._cursors if not cursor.is_over))

    def _joined(self, socket: Socket) -> ClientSession:
        try:
            return join(socket, self.login)
        except SignalboxError:
            socket.close()
            raise

    def _lost(self) -> None:
        """Take note that there is no connection: the next try is the later the more of them have failed."""
        if self._conversation is not None and self._conversation.is_settled:
            self._failures = 0
        self.close()
        longest = min(FIRST_PAUSE_SECONDS * 2.0**self._failures, LONGEST_PAUSE_SECONDS)
        self._failures = min(self._failures + 1, 16)
        self._resume_at = self.clock.now() + self.clock.chance() * longest

    def _left(self, deadline: float | None) -> float | None:
        return None if deadline is None else max(deadline - self.clock.now(), 0.0)

    def _is_over(self, deadline: float | None) -> bool:
        return deadline is not None and self.clock.now() >= deadline
