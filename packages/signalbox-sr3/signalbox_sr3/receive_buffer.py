"""Messages that an instance of sr3 has received: buffered, in progress and handled."""

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from signalbox.clients.exchange.consumer import Consumer, ReceivedMessage
from signalbox.sending import MAXIMUM_ENTRIES

# RabbitMQ's consumer_timeout: sr3 silently forgets some messages, which other instances would never receive.
ACKNOWLEDGE_TIMEOUT_SECONDS = 1800

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ReceiveBuffer:
    """Messages between a queue and sr3. Its methods raise the errors of the consumer."""

    consumer: Consumer
    now: Callable[[], float] = time.time
    _waiting: deque[ReceivedMessage] = field(default_factory=deque)
    _in_progress: dict[str, tuple[ReceivedMessage, float]] = field(default_factory=dict)
    _handled: list[ReceivedMessage] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """Return the number of buffered messages."""
        return len(self._waiting)

    def fill(self, *, wait_seconds: int) -> None:
        """Receive messages if none are buffered; first acknowledge handled ones and give back forgotten ones."""
        if self._waiting:
            return
        self.acknowledge()
        since = self.now() - ACKNOWLEDGE_TIMEOUT_SECONDS
        forgotten = [taken for taken, at in self._in_progress.values() if at < since]
        if forgotten:
            logger.warning(
                "%d messages were not acknowledged for half an hour and are given back to the queue", len(forgotten)
            )
            self.release(*forgotten)
        self._waiting.extend(self.consumer.receive(wait_seconds=wait_seconds))

    def next(self) -> ReceivedMessage:
        """Return the next buffered message, and mark it as in progress."""
        taken = self._waiting.popleft()
        self._in_progress[taken.receipt] = (taken, self.now())
        return taken

    def finish(self, receipt: str) -> bool:
        """Mark a message as handled; return False if it was given back before.

        Acknowledges a full batch of handled messages, or all when no message is in progress.
        """
        if receipt not in self._in_progress:
            return False
        self._handled.append(self._in_progress.pop(receipt)[0])
        if len(self._handled) >= MAXIMUM_ENTRIES or not self._in_progress:
            self.acknowledge()
        return True

    def release(self, *taken: ReceivedMessage) -> None:
        """Return messages in progress to the queue."""
        for one in taken:
            del self._in_progress[one.receipt]
        self.consumer.release(*taken)

    def acknowledge(self) -> None:
        """Acknowledge handled messages; those whose acknowledgement fails are delivered again."""
        handled, self._handled = self._handled, []
        self.consumer.ack(*handled)
