"""The events that a client receives in one WebSocket message."""

from dataclasses import dataclass, field

from signalbox.live.log.events import LoggedEvent
from signalbox.live.wamp.batches import batch
from signalbox.live.wamp.codec import MAXIMUM_FRAME_BYTES, size_bytes

MAXIMUM_EVENTS = 100  # of a frame, which is posted again as a whole when the writer crashes


@dataclass(slots=True)
class Frame:
    """Events to post at once, each with its text, and the number of an item's events that it accounts for.

    `size` is in bytes. `skipped` is the number of the item's events before the first one of the frame.

    Without a `separator` the client receives one message at a time. A frame of several is at most as large as what API
    Gateway charges as one message.
    """

    separator: str = ""
    events: list[LoggedEvent] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    handled: int = 0
    skipped: int = 0
    size: int = 0

    @property
    def is_full(self) -> bool:
        """Return whether no further event fits, whatever its size."""
        return len(self.events) >= (MAXIMUM_EVENTS if self.separator else 1)

    @property
    def text(self) -> str:
        """Return the WebSocket message."""
        return batch(self.texts, self.separator)

    def add(self, event: LoggedEvent, text: str) -> bool:
        """Add an event if it fits; return whether it does. The first one always does."""
        size = size_bytes(text) + len(self.separator)
        if self.events and (self.is_full or self.size + size > MAXIMUM_FRAME_BYTES):
            return False
        if not self.events:
            self.skipped = self.handled
        self.events.append(event)
        self.texts.append(text)
        self.size += size
        return True
