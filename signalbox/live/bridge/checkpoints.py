"""The checkpoint of a bridge: the retained event of a topic of the realm, from which the next run continues.

It is published before each window of rows, and names them. So after a crash the rows that may be published are known,
with their topics, and everything before them is published.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from signalbox.documents import Problems, Section
from signalbox.errors import RejectedError
from signalbox.live.bridge.rows import IdRange

VERSION = 1


class InvalidCheckpoint(RejectedError):
    """Raised when the checkpoint of a bridge cannot be parsed."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A publication that is about to be made: the id of its row, and its topic."""

    id: int
    topic: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a bridge.

    Every row up to `position` is published or rolled back, except those of `late`. The publications of `window` may be
    made; those of `published` are, of a row of which others are missing. `run` is the id of the run that wrote it.
    """

    position: int
    late: tuple[IdRange, ...] = ()
    window: tuple[Intent, ...] = ()
    run: str = ""
    published: tuple[Intent, ...] = ()

    def document(self) -> dict[str, object]:
        """Return the checkpoint as a JSON document."""
        return {
            "version": VERSION,
            "run": self.run,
            "position": self.position,
            "late": [{"first": one.first, "last": one.last} for one in self.late],
            "window": [{"id": one.id, "topic": one.topic} for one in self.window],
            "published": [{"id": one.id, "topic": one.topic} for one in self.published],
        }

    @classmethod
    def parse(cls, document: object) -> "Checkpoint":
        """Return the checkpoint of a document. Raises `InvalidCheckpoint`."""
        problems = Problems()
        fields = Section.of(document, "checkpoint", problems)
        if (version := fields.whole_number("version")) != VERSION:
            fields.problem("version", f"expected {VERSION}, not {version!r}")
        checkpoint = cls(
            _number(fields, "position"),
            tuple(IdRange(_number(one, "first"), _number(one, "last")) for one in fields.sections("late")),
            _intents(fields, "window"),
            fields.text("run") or "",
            _intents(fields, "published"),
        )
        problems.refuse(InvalidCheckpoint)
        return checkpoint


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint and the time when the realm accepted it."""

    checkpoint: Checkpoint
    at: datetime


def published_part(window: tuple[Intent, ...], found: Collection[Intent]) -> tuple[Intent, ...]:
    """Return the publications of a window that the realm has accepted, given those that its log has.

    They are accepted in order, so all before the last found one are published.
    """
    places = [place for place, one in enumerate(window) if one in found]
    return window[: max(places, default=-1) + 1]


def _intents(fields: Section, name: str) -> tuple[Intent, ...]:
    return tuple(Intent(_number(one, "id"), one.required_text("topic")) for one in fields.sections(name))


def _number(fields: Section, name: str) -> int:
    number = fields.whole_number(name)
    if number is None:
        fields.problem(name, "is missing")
    return number or 0
