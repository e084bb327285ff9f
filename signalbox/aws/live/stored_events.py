"""Events as attributes of items: as JSON, compressed if it is long."""

import json
import zlib

from signalbox.aws.shared.expressions import Item, Put, Write
from signalbox.live.log.documents import event_document, event_of, json_text
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.read_limits import event_cost

COMPRESSED_FROM = 1_000  # characters; a smaller item costs one unit anyway
EVENT, TEXT = "event", "text"


def stored_event(event: LoggedEvent) -> Item:
    """Return the attribute of an event."""
    text = json_text(event_document(event))
    if len(text) < COMPRESSED_FROM:
        return {TEXT: text}
    return {EVENT: zlib.compress(text.encode(errors="surrogatepass"))}


def event_with_cost(item: Item) -> tuple[LoggedEvent, int]:
    """Return the event of an item, and the cost of its read."""
    text = item.get(TEXT) or zlib.decompress(item[EVENT]).decode(errors="surrogatepass")
    return event_of(json.loads(text)), event_cost(text)


def size_of(write: Write) -> int:
    """Return the size of the event that a write puts."""
    return sum(len(write.item.get(name, "")) for name in (EVENT, TEXT)) if isinstance(write, Put) else 0
