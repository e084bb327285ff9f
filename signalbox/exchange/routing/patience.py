"""The patience with copies in the retry queues: the pauses between attempts, and the last attempt."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.exchange.messages.copies import Copy
from signalbox.exchange.model.names import is_existing

# `route` measures the age of what it leaves in flight, and the alarm on it needs a value in every five minutes.
LONGEST_PAUSE = timedelta(minutes=4)
# The owner of an existing queue can let it refuse copies for ever, and SQS delivers nothing more of a retry queue with
# 120,000 messages in flight. New permissions and keys take minutes.
PATIENCE_WITH_OTHERS = timedelta(minutes=15)
MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class Patience:
    """Pauses of copies; `first_pause` is the visibility timeout of the retry queues, `retention` their retention."""

    first_pause: timedelta
    retention: timedelta
    now: Callable[[], datetime]

    def pause(self, receives: int) -> timedelta:
        """Return the pause after a message was received this often: it doubles up to the longest pause."""
        doubled = self.first_pause * (1 << min(receives - 1, MOST_DOUBLINGS))
        return max(self.first_pause, min(doubled, LONGEST_PAUSE))

    def ends_with(self, copy: Copy, *, is_denied: bool) -> bool:
        """Return whether the attempt of a copy was its last one.

        After it, SQS could delete the copy before the next attempt, or an existing queue `is_denied` to the router for
        15 minutes. An outage of SQS or of KMS is no such refusal.
        """
        longest = self.retention - 2 * self.pause(copy.attempt - 1)
        if is_denied and is_existing(copy.queue):
            longest = min(longest, PATIENCE_WITH_OTHERS)
        return copy.waiting_since is not None and self.now() - copy.waiting_since >= longest
