"""Selections of kept messages: those of a time, oldest first and each once, listed by object."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from signalbox.errors import RejectedError
from signalbox.kept.objects import KeptObject, KeptReader, is_kept, key_at, read_batch
from signalbox.messages import Message, MessageId
from signalbox.queues import QueueName

VERSION = 1
TWICE, UNREADABLE_OBJECTS = "stored again", "in objects of another version (their number)"


@dataclass(frozen=True, slots=True)
class KeptSelection:
    """The ids of selected messages by the key of their object, in the order of time."""

    ids: Mapping[str, Sequence[MessageId]]

    @classmethod
    def of(cls, messages: Iterable[tuple[str, Message]]) -> "KeptSelection":
        """Return the selection of messages that are given with the keys of their objects."""
        ids: dict[str, list[MessageId]] = {}
        for key, message in messages:
            ids.setdefault(key, []).append(message.message_id)
        return cls(ids)

    @property
    def text(self) -> str:
        """Return the selection as JSON."""
        return json.dumps({"version": VERSION, "ids": self.ids}, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """Return a digest of the selection, which names it."""
        return hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest()[:16]

    @classmethod
    def parse(cls, text: str) -> "KeptSelection":
        """Return the selection of a `text`, which only this class writes."""
        return cls(json.loads(text)["ids"])


@dataclass(slots=True)
class KeptMessages:
    """The kept messages of a queue that were kept at or after `start`, and before `end`.

    `left_out` counts by reason what the iteration left out.
    """

    reader: KeptReader
    queue: QueueName
    start: datetime
    end: datetime
    left_out: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[tuple[str, Message]]:
        """Yield messages with the key of their object, oldest first, each once. Raises `EffectFailed`."""
        seen: set[MessageId] = set()
        for key in filter(is_kept, self.reader.keys(self.queue, after=key_at(self.queue, self.start))):
            if KeptObject.parse(key).kept_at >= self.end:
                return
            for message in self._read(key):
                if message.message_id in seen:
                    self.left_out[TWICE] += 1
                    continue
                seen.add(message.message_id)
                yield key, message

    def _read(self, key: str) -> Sequence[Message]:
        """Return the messages of an object; none if it was deleted meanwhile, or if a newer version wrote it."""
        text = self.reader.read(key)
        try:
            return () if text is None else read_batch(text)
        except RejectedError:
            self.left_out[UNREADABLE_OBJECTS] += 1
            return ()
