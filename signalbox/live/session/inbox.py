"""What a connection's inbox holds: frames that the client sent, and what else is heard of the connection."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from signalbox.documents import shown
from signalbox.errors import RejectedError
from signalbox.live.session.state import Elapsed, Heard, Killed, Lost, RightsChanged
from signalbox.live.wamp.codec import decode, size_bytes

FRAME = "f"  # and then its text; what else is heard is an object, which begins otherwise


class InvalidTold(RejectedError):
    """Raised when a message of an inbox is neither a frame nor something else that is heard of a connection."""


@dataclass(frozen=True, slots=True)
class Told:
    """Something that is heard, with what it counts for against the limits of a connection."""

    heard: Heard
    size_bytes: int = 0


def frame_body(text: str) -> str:
    """Return the message for a frame."""
    return FRAME + text


def told_body(told: Lost | Elapsed | Killed | RightsChanged) -> str:
    """Return the message for something else that is heard."""
    if isinstance(told, Killed):
        return json.dumps({"heard": "killed", "reason": told.reason, "message": told.message})
    return json.dumps({"heard": NAMES[type(told)]})


def read(body: str) -> Told:
    """Return what a message of an inbox says. Raises `InvalidTold`."""
    if body.startswith(FRAME):
        text = body.removeprefix(FRAME)
        return Told(decode(text), size_bytes(text))
    return Told(_signal(body))


def _signal(body: str) -> Heard:
    document = _document(body)
    name = str(document.get("heard"))
    if name == "killed":
        return Killed(str(document.get("reason", "")), str(document.get("message", "")))
    if name not in SIGNALS:
        raise InvalidTold(f"heard: expected one of killed, {', '.join(SIGNALS)}, not {shown(name)}")
    return SIGNALS[name]()


def _document(body: str) -> Mapping[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidTold(f"expected {FRAME!r} and a frame, or a JSON object") from error
    if not isinstance(document, dict):
        raise InvalidTold(f"expected {FRAME!r} and a frame, or a JSON object, not {shown(document)}")
    return document


SIGNALS: Mapping[str, Callable[[], Lost | Elapsed | RightsChanged]] = {
    "lost": Lost,
    "elapsed": Elapsed,
    "rights": RightsChanged,
}
NAMES: Mapping[object, str] = {kind: name for name, kind in SIGNALS.items()}
