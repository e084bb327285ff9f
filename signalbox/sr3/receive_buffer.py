"""What one instance of sr3 has taken from its queue: what waits here, what it works on, and what it is done with."""

import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from signalbox.clients.exchange.consumer import Consumer, ReceivedMessage
from signalbox.sending import MAXIMUM_ENTRIES

# As RabbitMQ (consumer_timeout): sr3 forgets some messages without a word, which nobody else would ever get.
PATIENCE_SECONDS = 1800

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Intake:
    """Messages between a queue and sr3. Whatever the consumer raises, its methods do, too."""

    consumer: Consumer
    now: Callable[[], float] = time.time
    _waiting: deque[ReceivedMessage] = field(default_factory=deque)
    _working: dict[str, tuple[ReceivedMessage, float]] = field(default_factory=dict)
    _done: list[ReceivedMessage] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        """Return how many messages wait here."""
        return len(self._waiting)

    def fill(self, *, wait_seconds: int) -> None:
        """Take messages if none wait here; what is done is told before, and what was forgotten is given back."""
        if self._waiting:
            return
        self.acknowledge()
        since = self.now() - PATIENCE_SECONDS
        forgotten = [taken for taken, at in self._working.values() if at < since]
        if forgotten:
            logger.warning("%d messages were not acknowledged for so long that others get them", len(forgotten))
            self.give_back(*forgotten)
        self._waiting.extend(self.consumer.receive(wait_seconds=wait_seconds))

    def next(self) -> ReceivedMessage:
        """Return a message that waits here, which sr3 works on from now on."""
        taken = self._waiting.popleft()
        self._working[taken.receipt] = (taken, self.now())
        return taken

    def finish(self, receipt: str) -> bool:
        """Note that sr3 is done with a message; False if it was given back meanwhile.

        The queue is told of as many as one call can tell it of, or when sr3 works on no more.
        """
        if receipt not in self._working:
            return False
        self._done.append(self._working.pop(receipt)[0])
        if len(self._done) >= MAXIMUM_ENTRIES or not self._working:
            self.acknowledge()
        return True

    def give_back(self, *taken: ReceivedMessage) -> None:
        """Let others have messages that sr3 works on."""
        for one in taken:
            del self._working[one.receipt]
        self.consumer.release(*taken)

    def acknowledge(self) -> None:
        """Tell the queue what is done; what it cannot be told comes again."""
        done, self._done = self._done, []
        self.consumer.ack(*done)
