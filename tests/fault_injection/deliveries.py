"""Rules: a standard queue delivers messages in any order, and 1 in 100 twice.

MiniStack delivers each message once and in order, which no consumer of a standard queue may rely on.
"""

import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original
from tests.fault_injection.chance import Chance

COLLECT = "ministack.services.sqs:_collect_msgs"
FOR_FUNCTIONS = "ministack.services.sqs:_receive_messages_for_esm"
FOR_CLIENTS = "ministack.services.sqs:_act_receive_message"

DUPLICATE_ODDS = 100

Message = MutableMapping[str, Any]
Queue = MutableMapping[str, Any]
Collect = Callable[[Queue, int, int], list[Message]]
DUPLICATE = "injected_duplicate"  # a field of the second copy, which has no third


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Receives messages of queues, of MiniStack's form, as AWS's distributed servers deliver them."""

    chance: Chance
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
        disordered = {**queue, "messages": self.chance.shuffled(visible, "disorder", name)}
        received = self.collect(disordered, limit, visibility_seconds)
        for message in received:
            if DUPLICATE not in message and self.chance.is_one_in(DUPLICATE_ODDS, "duplicates", name):
                queue["messages"].append(_copy(message, now))
        return received


def _copy(message: Message, now: float) -> Message:
    """Return a copy of a message in its state before the receive; the next receive delivers it."""
    count = message["receive_count"] - 1
    return {**message, DUPLICATE: True, "receipt_handle": None, "visible_at": now, "receive_count": count}


def patch(chance: Chance) -> Patch:
    """Return the patch for this chance."""

    def replacements() -> Mapping[str, object]:
        return {COLLECT: Deliveries(chance, original(COLLECT))}

    return Patch(
        sources={COLLECT: "308a6eb1b3d4c8ad", FOR_FUNCTIONS: "f230dbcd4974adcf", FOR_CLIENTS: "abc94f693de18aee"},
        replacements=replacements,
    )
