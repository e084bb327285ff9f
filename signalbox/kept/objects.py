"""Kept batches as objects: their keys, which are in the order of time for each queue, and their JSON form."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from signalbox.errors import RejectedError, UnavailableError
from signalbox.history.event import HistoryEvent
from signalbox.messages import Message
from signalbox.queues import QueueName

KEPT_PREFIX = "kept/"
VERSION = 1
MILLISECOND = timedelta(milliseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ENDING = ".json"


class NotKept(UnavailableError):
    """Raised when messages of a kept queue cannot be stored; they are received again, and none passes unkept."""


class UnreadableBatch(RejectedError):
    """Raised for an object below `kept/` that is no batch of messages."""


@dataclass(frozen=True, slots=True)
class KeptObject:
    """A batch of a queue's messages that was kept at `kept_at`; `digest` is of their ids."""

    queue: QueueName
    kept_at: datetime
    digest: str

    @property
    def key(self) -> str:
        """Return the key of the object."""
        return f"{key_at(self.queue, self.kept_at)}-{self.digest}{ENDING}"

    @classmethod
    def parse(cls, key: str) -> "KeptObject":
        """Return the batch with this key. Raises `UnreadableBatch`."""
        parts = key.removeprefix(KEPT_PREFIX).split("/")
        milliseconds, _, digest = parts[-1].removesuffix(ENDING).partition("-")
        if len(parts) != 4 or not milliseconds.isdecimal():  # noqa: PLR2004 - queue, day, hour, name
            raise UnreadableBatch(f"{key!r} is not the key of kept messages")
        return cls(QueueName(parts[0]), EPOCH + int(milliseconds) * MILLISECOND, digest)

    def events(self, messages: Iterable[Message], capability: str, **labels: str) -> Iterator[HistoryEvent]:
        """Yield the event of each message in the batch, with its id, and the key in the label `object`."""
        for message in messages:
            yield HistoryEvent(
                event_id=f"kept:{message.message_id}:{self.queue}",
                occurred_at=self.kept_at,
                capability=capability,
                kind="kept",
                outcome="stored",
                message_id=message.message_id,
                source=self.queue,
                labels={**labels, "object": self.key},
            )


@dataclass(frozen=True, slots=True)
class KeptBatch:
    """An object to store, and its text."""

    stored_as: KeptObject
    text: str


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One version of an object in the bucket, which is versioned."""

    key: str
    version: str


class KeptWriter(Protocol):
    """Stores kept messages."""

    def put(self, batch: KeptBatch) -> None:
        """Store a batch. Raises `NotKept`."""


class KeptReader(Protocol):
    """Reads kept messages."""

    def keys(self, queue: QueueName, *, after: str) -> Iterator[str]:
        """Yield the keys of a queue's objects behind a key, oldest first, page by page. Raises `EffectFailed`."""

    def read(self, key: str) -> str | None:
        """Return the text of an object, or None if it was deleted meanwhile. Raises `EffectFailed`."""


def is_kept(key: str) -> bool:
    """Return whether a key is that of kept messages, not of an object that others put below the prefix."""
    try:
        KeptObject.parse(key)
    except UnreadableBatch:
        return False
    return True


def queue_prefix(queue: QueueName) -> str:
    """Return the prefix of the keys of a queue's objects."""
    return f"{KEPT_PREFIX}{queue}/"


def key_at(queue: QueueName, moment: datetime) -> str:
    """Return the least key of a time: the keys of earlier batches of the queue sort before it, all others after it."""
    at = moment.astimezone(UTC)
    return f"{queue_prefix(queue)}{at:%Y-%m-%d}/{at:%H}/{(at - EPOCH) // MILLISECOND}"


def kept_batch(queue: QueueName, messages: Sequence[Message], *, at: datetime) -> KeptBatch:
    """Return the batch of messages of a queue that are kept at a moment."""
    ids = hashlib.sha256("\n".join(one.message_id for one in messages).encode(errors="surrogatepass"))
    document = {"version": VERSION, "messages": [_document(one) for one in messages]}
    text = json.dumps(document, separators=(",", ":"))
    return KeptBatch(KeptObject(queue, at, ids.hexdigest()[:16]), text)


def read_batch(text: str) -> list[Message]:
    """Return the messages of an object's text, in the order in which they passed. Raises `RejectedError`."""
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise UnreadableBatch(f"kept messages of version {document['version']!r}; expected {VERSION}")
        return [Message.parse(one) for one in document["messages"]]
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableBatch(f"kept messages cannot be read: {error!r}") from error


def _document(message: Message) -> Mapping[str, object]:
    """Return a message as the SQS `Message` object that filters see, without what only a receiver needs."""
    attributes = {name: attribute.value for name, attribute in message.attributes.items()}
    return {
        "MessageId": message.message_id,
        "Body": message.body,
        "Attributes": dict(message.system_attributes),
        **({"MessageAttributes": attributes} if attributes else {}),
    }
