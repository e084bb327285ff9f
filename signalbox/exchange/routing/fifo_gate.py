"""Handling a received batch in rounds, so that in a FIFO queue nothing overtakes what is ahead of it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from signalbox.messages import Message, MessageId

Entry = TypeVar("Entry")


@dataclass(slots=True)
class Rounds(Generic[Entry]):
    """Hands out what may be handled now, hears what must come again, and tells what is not done.

    Of a FIFO queue that is one entry of each group, and none behind one that must come again: so a retry finds the
    order as it was, and no call holds two messages of one group, of which the first could fail alone.
    """

    entries: Sequence[tuple[Message, Entry]]
    is_ordered: bool
    _waiting: Sequence[tuple[Message, Entry]] = field(init=False)
    _failed: set[MessageId] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._waiting = self.entries

    def next(self) -> list[Entry]:
        """Return the next entries; none when there is nothing left to do."""
        held = {message.group_id for message, _ in self.entries if message.message_id in self._failed}
        chosen, left = [], []
        for message, entry in self._waiting:
            if self.is_ordered and message.group_id in held:
                left.append((message, entry))
            else:
                chosen.append(entry)
                held.add(message.group_id)
        self._waiting = left
        return chosen

    def fail(self, message_id: MessageId) -> None:
        """Hear that a message must come again."""
        self._failed.add(message_id)

    def recall(self, message_ids: Collection[MessageId]) -> None:
        """Hear that messages that were handled must come again; and so must what is behind them in their groups."""
        groups: set[str | None] = set()
        for message, _ in self.entries:
            if message.message_id in message_ids:
                groups.add(message.group_id)
            if message.group_id in groups:
                self._failed.add(message.message_id)

    def unhindered(self) -> list[Entry]:
        """Return the entries that are neither to come again nor behind one of their group that is."""
        held: set[str | None] = set()
        clear = []
        for message, entry in self.entries:
            if message.message_id in self._failed:
                held.add(message.group_id)
            if message.group_id not in held:
                clear.append(entry)
        return clear

    def not_done(self) -> tuple[MessageId, ...]:
        """Return the messages that must come again: what failed, and in a FIFO queue all behind it in its group."""
        left = self._failed | {message.message_id for message, _ in self._waiting}
        return tuple(message.message_id for message, _ in self.entries if message.message_id in left)
