"""Kept messages of a queue, as a replay counts, lists and reads them, without Spark."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from glue_jobs.shared.log_source import MAX_LISTED_TOPICS, ReplayVolume
from signalbox.exchange.matching.trie import BindingTrie
from signalbox.exchange.messages.properties import TOPIC
from signalbox.exchange.messages.replayed_messages import (
    UNREADABLE,
    OriginalMessage,
    Replayable,
    has_room,
    original_of_dead_letter,
)
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.patterns import Pattern
from signalbox.exchange.model.topics import RoutingKey
from signalbox.kept.selection import KeptMessages, KeptSelection
from signalbox.messages import Message
from signalbox.queues import QueueName, parse_any_queue_name

DECLARED = "q_"
NO_TOPIC = "(without a topic)"


def kept_queue(name: str, names: StageNames) -> QueueName:
    """Return the SQS name of a kept queue, given the name of a declared queue or that of a split queue in SQS."""
    return names.queue(name) if name.startswith(DECLARED) else parse_any_queue_name(name)


@dataclass(frozen=True, slots=True)
class KeptFormat:
    """The form in which the kept messages of `queue` are sent `into` an exchange or a queue."""

    queue: str
    into: str

    def read(self, message: Message) -> Replayable:
        """Return the publication of a copy, or a message of a split queue unchanged unless it goes into an exchange.

        Raises one of `UNREADABLE` for a message that an exchange cannot accept.
        """
        if self.queue.startswith(DECLARED) or self.into.startswith("x"):
            return original_of_dead_letter(message, exchange=None)
        return message


@dataclass(slots=True)
class KeptCount:
    """The selection and the count of the messages of a format that match `topics`."""

    kept: KeptMessages
    format: KeptFormat
    topics: Pattern
    _size_bytes: int = field(default=0, init=False)
    _by_topic: Counter[str] = field(default_factory=Counter, init=False)

    def select(self) -> tuple[KeptSelection, ReplayVolume]:
        """Read all messages once; return the selected ones, and their number and size. Raises `EffectFailed`."""
        selection = KeptSelection.of(self._selected())
        by_topic = dict(self._by_topic.most_common(MAX_LISTED_TOPICS))
        return selection, ReplayVolume(
            self._by_topic.total(), self._size_bytes, by_topic, dict(sorted(self.kept.left_out.items()))
        )

    def _selected(self) -> Iterator[tuple[str, Message]]:
        matcher: BindingTrie[bool] = BindingTrie()
        matcher.add(self.topics, True)  # noqa: FBT003 - the value of a match
        for key, message in self.kept:
            topic = self._topic(message)
            if topic is None:
                continue
            if not matcher.matching(topic):
                self.kept.left_out["of other topics"] += 1
                continue
            self._size_bytes += len(message.body.encode(errors="replace"))
            self._by_topic[topic or NO_TOPIC] += 1
            yield key, message

    def _topic(self, message: Message) -> RoutingKey | None:
        """Return a message's topic, which is empty if it has none; None, and the reason, if it cannot be sent."""
        try:
            found = self.format.read(message)
        except UNREADABLE:
            self.kept.left_out["not readable"] += 1
            return None
        if isinstance(found, OriginalMessage):
            return found.properties.key
        if not has_room(message):
            self.kept.left_out["with ten attributes, no room for the mark"] += 1
            return None
        topic = message.attributes.get(TOPIC)
        return RoutingKey((topic and topic.text) or "")


def window(
    start: datetime | None, end: datetime | None, *, oldest: datetime, now: datetime
) -> tuple[datetime, datetime]:
    """Return the period of the selected messages; the defaults are `oldest`, the first kept message, and now."""
    return max(start or oldest, oldest), min(end or now, now)
