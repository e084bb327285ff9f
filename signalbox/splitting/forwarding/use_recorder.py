"""Recorded uses of temporary queues: a call records a queue before it sends messages to it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.queues import QueueName
from signalbox.splitting.ports import QueueUses

# Long enough that a busy queue costs few writes: the end of a session waits for it.
USE_LASTS = timedelta(seconds=10)


@dataclass(slots=True)
class UseRecorder:
    """Records uses, each for `USE_LASTS`: one write for a queue in that time, however many messages it gets.

    A call for which a queue was open may send to it until its own end: it began before the recorded moment.
    """

    uses: QueueUses
    now: Callable[[], datetime]
    _until: dict[QueueName, datetime] = field(default_factory=dict, init=False)

    def is_open(self, name: QueueName) -> bool:
        """Return whether messages may be sent to a queue; if so, this is recorded."""
        now = self.now()
        if name in self._until and now < self._until[name]:
            return True
        self._until = {known: until for known, until in self._until.items() if now < until}
        is_open = self.uses.extend(name, until=now + USE_LASTS)
        if is_open:
            self._until[name] = now + USE_LASTS
        return is_open
