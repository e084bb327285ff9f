"""S3 event notifications: the objects that a message is about, and their metadata as filters see it."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, TypeGuard
from urllib.parse import unquote_plus

from signalbox.messages import Message

METADATA, OBJECT = "S3Metadata", "S3Object"
"""Fields that filters see in addition to the SQS `Message`: mirrord's, and one with the decoded key."""
MAXIMUM_OBJECTS = 10  # of one message; S3 itself sends one

Metadata = Mapping[str, str]


class Unread(StrEnum):
    """The reason for which the metadata of an object is not known."""

    MISSING = "the S3 object does not exist"
    FORBIDDEN = "the S3 object may not be read"
    OTHER_BUCKET = "the setting splittable_buckets does not name the bucket of the S3 object"
    REFUSED = "S3 refuses to read the metadata of the object"
    UNAVAILABLE = "S3 does not answer in time"
    NOT_HERE = "metadata of S3 objects is read only while messages are forwarded"


@dataclass(frozen=True, slots=True)
class S3Object:
    """An object, in the version that an event is about; None without versioning."""

    bucket: str
    key: str
    version_id: str | None = None

    @property
    def document(self) -> dict[str, str | None]:
        """Return the object as filters see it."""
        return {"bucket": self.bucket, "key": self.key, "versionId": self.version_id}


class ObjectMetadata(Protocol):
    """Reads the metadata of objects."""

    def fetch(self, objects: Collection[S3Object]) -> Mapping[S3Object, Metadata | Unread]:
        """Return the user-defined metadata of each object, with names in lower case; takes a bounded time."""


@dataclass(slots=True)
class BatchMetadata:
    """The metadata of all objects of a batch, read when the first filter uses it; never without a port."""

    messages: Sequence[Message]
    sns: bool
    port: ObjectMetadata | None = None
    _found: Mapping[S3Object, Metadata | Unread] | None = field(default=None, init=False)

    def of(self, wanted: S3Object) -> Metadata | Unread:
        """Return the metadata of an object of the batch."""
        if self.port is None:
            return Unread.NOT_HERE
        if self._found is None:
            objects = {one for message in self.messages for one in objects_of(message.body, sns=self.sns)}
            self._found = self.port.fetch(objects)
        return self._found[wanted]


@dataclass(slots=True)
class S3Content:
    """The objects of one message; `unread` is set when a filter asked in vain."""

    objects: tuple[S3Object, ...]
    batch: BatchMetadata
    unread: Unread | None = None

    @classmethod
    def of(cls, message: Message, batch: BatchMetadata) -> "S3Content":
        """Return the content of a message of the batch."""
        return cls(objects_of(message.body, sns=batch.sns), batch)

    def documents(self, message: Mapping[str, Any], *, with_metadata: bool) -> Iterator[Mapping[str, Any]]:
        """Yield the SQS `Message` for each object, with what filters see of it; once if there is no object."""
        if not self.objects:
            yield message
        for one in self.objects:
            yield {OBJECT: one.document, **self._metadata(one, message, with_metadata=with_metadata), **message}

    def _metadata(self, one: S3Object, message: Mapping[str, Any], *, with_metadata: bool) -> dict[str, Metadata]:
        if not with_metadata or METADATA in message:  # a message from a file, to be explained, may have it
            return {}
        found = self.batch.of(one)
        if isinstance(found, Unread):
            self.unread = found
            return {}
        return {METADATA: dict(found)}


def objects_of(body: str, *, sns: bool) -> tuple[S3Object, ...]:
    """Return the objects of an S3 event notification, the first ten; empty for any other body.

    With `sns`, the event may be inside an SNS notification; otherwise SNS delivered it raw. Keys are decoded
    (https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html).
    """
    event = _parsed(body)
    if sns and event.get("Type") == "Notification" and isinstance(event.get("Message"), str):
        event = _parsed(event["Message"])
    records = event.get("Records")
    found = (_object(record) for record in records) if isinstance(records, list) else ()
    return tuple(dict.fromkeys(one for one in found if one))[:MAXIMUM_OBJECTS]


def _parsed(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):  # a body may be nested deeper than Python can parse
        return {}
    return value if isinstance(value, dict) else {}


def _object(record: object) -> S3Object | None:
    entity = record.get("s3") if isinstance(record, dict) else None
    bucket, found = (entity.get(name) if isinstance(entity, dict) else None for name in ("bucket", "object"))
    if not isinstance(bucket, dict) or not isinstance(found, dict):
        return None
    name, key, version = bucket.get("name"), found.get("key"), found.get("versionId")
    if not _is_text(name) or not _is_text(key):
        return None
    return S3Object(name, unquote_plus(key), version if _is_text(version) else None)


def _is_text(value: object) -> TypeGuard[str]:
    # JSON may contain half of a surrogate pair, which no request can contain.
    return isinstance(value, str) and value != "" and value.encode(errors="ignore").decode() == value
