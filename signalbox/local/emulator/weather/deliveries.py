"""Rules: a standard queue delivers messages in any order, and 1 in 100 twice."""

import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from signalbox.local.emulator.weather.dice import Dice
from signalbox.local.emulator.weather.rules import DUPLICATE_ODDS

Message = MutableMapping[str, Any]
Queue = MutableMapping[str, Any]
Collect = Callable[[Queue, int, int], list[Message]]
DUPLICATE = "weather_duplicate"  # a field of the second copy, which has no third


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Receives messages of queues, of MiniStack's form, as AWS's distributed servers deliver them."""

    dice: Dice
    collect: Collect
    """MiniStack's function, which marks and returns the visible messages at the head of the queue."""

    def __call__(self, queue: Queue, limit: int, visibility_seconds: int) -> list[Message]:
        """Return received messages; takes the arguments of MiniStack's own function."""
        if queue["is_fifo"]:
            return self.collect(queue, limit, visibility_seconds)
        name: str = queue["name"]
        now = time.time()
        visible = [message for message in queue["messages"] if message.get("visible_at", 0) <= now]
        # A queue of its own, since senders in other threads append to the real one meanwhile.
        disordered = {**queue, "messages": self.dice.shuffled(visible, "disorder", name)}
        received = self.collect(disordered, limit, visibility_seconds)
        for message in received:
            if DUPLICATE not in message and self.dice.is_one_in(DUPLICATE_ODDS, "duplicates", name):
                queue["messages"].append(_copy(message, now))
        return received


def _copy(message: Message, now: float) -> Message:
    """Return the copy of a received message as it was before, which the next receive delivers."""
    count = message["receive_count"] - 1
    return {**message, DUPLICATE: True, "receipt_handle": None, "visible_at": now, "receive_count": count}
