"""Dead letters: messages that can never be handled, kept in a dead-letter queue with the reason."""

from collections.abc import Mapping
from typing import Protocol

from signalbox.messages import Message


class DeadLetters(Protocol):
    """A dead-letter queue."""

    def dead_letter(self, message: Message, *, reason: str, attributes: Mapping[str, str] | None = None) -> None:
        """Put a message into the dead-letter queue, with the reason and further attributes.

        Raises `EffectFailed` when the queue does not take it; the message must then be received again.
        """
