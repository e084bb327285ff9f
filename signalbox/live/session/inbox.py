"""The messages of a connection's inbox: frames that the client sent, and signals."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbox.documents import shown
from signalbox.errors import RejectedError
from signalbox.live.arvados import requests
from signalbox.live.model.state import (
    Admitted,
    Dialect,
    Elapsed,
    Killed,
    Lost,
    PastRefused,
    Received,
    RightsChanged,
    Session,
    Signal,
)
from signalbox.live.wamp import batches
from signalbox.live.wamp.codec import MalformedFrame, decode, size_bytes
from signalbox.live.wamp.messages import SubscriptionId

FRAME = "f"  # the first character of a frame's message, before its text; a signal is a JSON object


class InvalidInboxMessage(RejectedError):
    """Raised for a message of an inbox that is neither a frame nor a signal."""


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A WAMP message or signal; `size_bytes` is the size of its frame, which limits apply to."""

    received: Received
    size_bytes: int = 0


def frame_body(text: str) -> str:
    """Return the message body for a frame."""
    return FRAME + batches.for_inbox(text)


def messages_of(body: str, session: Session) -> Sequence[InboxMessage]:
    """Return the content of a message body: the messages of a frame, or a signal. Raises `InvalidInboxMessage`."""
    if not session.is_batched or not body.startswith(FRAME):
        return [parse(body, session.dialect)]
    texts = batches.messages_of(body.removeprefix(FRAME))
    if not 1 <= len(texts) <= batches.MAXIMUM_MESSAGES:
        problem = f"a batch has {len(texts)} messages, not 1 to {batches.MAXIMUM_MESSAGES}"
        return [InboxMessage(MalformedFrame(problem), size_bytes(body))]
    return [InboxMessage(decode(text), size_bytes(text)) for text in texts]


def readings(body: str) -> Sequence[InboxMessage]:
    """Return the content of a message body as a connection of each kind reads it. Raises `InvalidInboxMessage`."""
    texts = batches.messages_of(body.removeprefix(FRAME))[: batches.MAXIMUM_MESSAGES]
    return [*(parse(body, dialect) for dialect in DECODERS), *(InboxMessage(decode(text)) for text in texts)]


def signal_body(signal: Signal) -> str:
    """Return the message body for a signal."""
    if isinstance(signal, Killed):
        return json.dumps({"heard": "killed", "reason": signal.reason, "message": signal.message})
    if isinstance(signal, PastRefused):
        return json.dumps({"heard": "refused", "subscription": signal.subscription, "message": signal.message})
    return json.dumps({"heard": NAMES[type(signal)]})


def parse(body: str, dialect: Dialect = Dialect.WAMP) -> InboxMessage:
    """Return the content of a message body of a connection with a dialect. Raises `InvalidInboxMessage`."""
    if body.startswith(FRAME):
        text = body.removeprefix(FRAME)
        return InboxMessage(DECODERS[dialect](text), size_bytes(text))
    return InboxMessage(_signal(body))


def _signal(body: str) -> Signal:
    document = _document(body)
    name = str(document.get("heard"))
    if name == "killed":
        return Killed(str(document.get("reason", "")), str(document.get("message", "")))
    if name == "refused" and isinstance(subscription := document.get("subscription"), int):
        return PastRefused(SubscriptionId(subscription), str(document.get("message", "")))
    if name not in SIGNALS:
        raise InvalidInboxMessage(f"heard: expected one of killed, refused, {', '.join(SIGNALS)}, not {shown(name)}")
    return SIGNALS[name]()


def _document(body: str) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInboxMessage(f"expected {FRAME!r} and a frame, or a JSON object") from error
    if not isinstance(document, dict):
        raise InvalidInboxMessage(f"expected {FRAME!r} and a frame, or a JSON object, not {shown(document)}")
    return document


DECODERS: Mapping[Dialect, Callable[[str], Received]] = {Dialect.WAMP: decode, Dialect.ARVADOS: requests.decode}
SIGNALS: Mapping[str, Callable[[], Lost | Elapsed | RightsChanged | Admitted]] = {
    "lost": Lost,
    "elapsed": Elapsed,
    "rights": RightsChanged,
    "admitted": Admitted,
}
NAMES: Mapping[object, str] = {kind: name for name, kind in SIGNALS.items()}
