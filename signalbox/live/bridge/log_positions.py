"""The positions of a bridge in the logs of containers: the retained event from which its next run continues."""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from signalbox.forms import Document, Form, Forms
from signalbox.live.bridge.checkpoints import InvalidCheckpoint
from signalbox.live.bridge.topics import log_topic

VERSION = 1
# Longer than a container that has ended is in the cluster's list.
ENDED_KEPT_FOR = timedelta(minutes=20)
# Events of 127 KB reach a session. Deflated, 200 positions of nine files and two owners take 65 KB with 800 ended ones.
MAXIMUM_BYTES, MAXIMUM_ENDED = 80_000, 800
MAXIMUM_INFLATED = 8_000_000


@dataclass(slots=True)
class LogPosition:
    """How far a container's log is published: the bytes of each topic.

    `request` is one of its requests, through which the log is read; `owners` are those of all of them. With `is_read`,
    the container has ended and its whole log is published, or was found to be gone.
    """

    container: str
    request: str
    owners: tuple[str, ...] = ()
    offsets: dict[str, int] = field(default_factory=dict)
    is_read: bool = False

    def prefixes(self) -> tuple[str, ...]:
        """Return the prefix of the log's topics for each owner."""
        return tuple(log_topic(owner, self.container, "") for owner in self.owners)


@dataclass(frozen=True, slots=True)
class LogPositions:
    """The positions of all followed logs, and when those of other containers had been published whole."""

    followed: tuple[LogPosition, ...] = ()
    ended: Mapping[str, datetime] = field(default_factory=dict)

    @classmethod
    def of(cls, followed: Iterable[LogPosition], ended: Mapping[str, datetime], now: datetime) -> "LogPositions":
        """Return a copy of positions that change meanwhile, without containers that the cluster lists no more."""
        copies = tuple(replace(one, offsets=dict(one.offsets)) for one in followed)
        recent = [(name, at) for name, at in ended.items() if now - at < ENDED_KEPT_FOR]
        return cls(copies, dict(sorted(recent, key=lambda one: one[1])[-MAXIMUM_ENDED:]))

    def document(self) -> Document:
        """Return the JSON document."""
        text = json.dumps(_FORM.write(self), separators=(",", ":"))
        return {"version": VERSION, "deflated": b64encode(zlib.compress(text.encode())).decode("ascii")}

    @classmethod
    def parse(cls, document: Document) -> "LogPositions":
        """Return the positions of a document. Raises `InvalidCheckpoint`."""
        try:
            if document["version"] != VERSION:
                raise InvalidCheckpoint(f"positions.version: expected {VERSION}, not {document['version']!r}")
            deflated = b64decode(document["deflated"], validate=True)
            return _FORM.read(json.loads(zlib.decompressobj().decompress(deflated, MAXIMUM_INFLATED)))
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise InvalidCheckpoint("positions: expected what a bridge has written") from error


_SECONDS = Form(lambda at: int(at.timestamp()), lambda written: datetime.fromtimestamp(written, UTC))
_FORM = Forms({datetime: _SECONDS}).record(LogPositions)
