"""WebSocket connections to the live router, by the package `websockets`."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from signalbox import __version__
from signalbox.clients.live.session import ConnectionLost
from signalbox.errors import RejectedError
from signalbox.live.wamp.batches import BATCHED_SUBPROTOCOL, RECORD_SEPARATOR, batch, messages_of
from signalbox.live.wamp.codec import MAXIMUM_MESSAGE_BYTES, SUBPROTOCOL

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

SUBPROTOCOLS = (BATCHED_SUBPROTOCOL, SUBPROTOCOL)
CONNECT_SECONDS = 20.0
CLOSE_SECONDS = 1.0
# Pings detect a lost connection; API Gateway answers them. A busy peer may answer late.
PING_SECONDS, PONG_SECONDS = 20.0, 60.0
CLIENT_ERROR = 400
TOO_MANY_REQUESTS = 429
SERVER_ERROR = 500


@dataclass(frozen=True, slots=True)
class WebSocket:
    """A `Socket` over a connection of the package `websockets`, which may receive several messages at once."""

    connection: "ClientConnection"
    closing: ExitStack
    _received: deque[str] = field(default_factory=deque)

    def send(self, text: str) -> None:
        """Send a message. Raises `ConnectionLost`."""
        with _lost():
            self.connection.send(batch([text], RECORD_SEPARATOR) if self._is_batched else text)

    def receive(self, timeout_seconds: float | None) -> str | None:
        """Return the next message, or None if none arrives in time. Raises `ConnectionLost`."""
        if not self._received:
            with _lost():
                try:
                    frame = str(self.connection.recv(timeout_seconds))
                except TimeoutError:
                    return None
            self._received.extend(messages_of(frame) if self._is_batched else [frame])
        return self._received.popleft()

    @property
    def _is_batched(self) -> bool:
        return self.connection.subprotocol == BATCHED_SUBPROTOCOL

    def close(self) -> None:
        """Close the connection."""
        self.closing.close()


def connector(url: str, *, subprotocols: Sequence[str] = SUBPROTOCOLS) -> Callable[[], WebSocket]:
    """Return the function that opens a connection to a router's URL, which chooses one of the subprotocols.

    It raises `ConnectionLost` if a retry may succeed, and `RejectedError` otherwise.
    """

    def opened() -> WebSocket:
        with _lost():
            try:
                closing = ExitStack()
                return WebSocket(closing.enter_context(_connecting(url, subprotocols)), closing)
            except InvalidStatus as refused:
                raise _refused(url, refused) from refused
            except InvalidURI as wrong:
                raise RejectedError(f"{url!r} is not a WebSocket URL: {wrong}") from wrong

    return opened


def _connecting(url: str, subprotocols: Sequence[str]) -> AbstractContextManager["ClientConnection"]:
    return connect(
        url,
        subprotocols=list(map(Subprotocol, subprotocols)),
        open_timeout=CONNECT_SECONDS,
        close_timeout=CLOSE_SECONDS,
        ping_interval=PING_SECONDS,
        ping_timeout=PONG_SECONDS,
        max_size=MAXIMUM_MESSAGE_BYTES,
        user_agent_header=f"Signalbox/{__version__}",
        compression=None,  # API Gateway does not support it
    )


def _refused(url: str, refused: InvalidStatus) -> RejectedError | ConnectionLost:
    status = refused.response.status_code
    reason = refused.response.body.decode(errors="replace")[:200] or refused.response.reason_phrase
    text = f"{url} answers {status}: {reason}"
    return (
        RejectedError(text)
        if CLIENT_ERROR <= status < SERVER_ERROR and status != TOO_MANY_REQUESTS
        else ConnectionLost(text)
    )


@contextmanager
def _lost() -> Iterator[None]:
    try:
        yield
    except (ConnectionClosed, InvalidHandshake, OSError) as error:
        raise ConnectionLost(f"no connection to the live router: {error}") from error
