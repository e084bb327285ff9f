"""Several WAMP messages in one WebSocket message: `wamp.2.json.batched` (advanced profile, «Message Batching»)."""

import re
from collections.abc import Iterable

BATCHED_SUBPROTOCOL = "wamp.2.json.batched"
MAXIMUM_MESSAGES = 10  # of a client's batch, so that it cannot send more than it may in frames
# The specification's separator is `\30`, in decimal. Autobahn for Python has it in octal, and knows no other.
RECORD_SEPARATOR, AUTOBAHN_SEPARATOR = "\x1e", "\x18"
AUTOBAHN = "AutobahnPython/"
# SQS refuses both separators, so API Gateway replaces them in a frame. No serializer of JSON writes an empty line.
INBOX_SEPARATOR = "\n\n"
_SEPARATORS = re.compile(f"[{RECORD_SEPARATOR}{AUTOBAHN_SEPARATOR}]")


def separator_for(user_agent: str) -> str:
    """Return the separator that a client with a User-Agent header expects after each message."""
    return AUTOBAHN_SEPARATOR if user_agent.startswith(AUTOBAHN) else RECORD_SEPARATOR


def batch(texts: Iterable[str], separator: str) -> str:
    """Return WAMP messages as one WebSocket message, with the separator after each."""
    return "".join(text + separator for text in texts)


def for_inbox(frame: str) -> str:
    """Return a frame as the inbox accepts it: as API Gateway's mapping template changes it."""
    return _SEPARATORS.sub(INBOX_SEPARATOR, frame)


def messages_of(frame: str) -> list[str]:
    """Return the WAMP messages of a batch that was received or is in an inbox."""
    return [text for text in for_inbox(frame).split(INBOX_SEPARATOR) if text]
