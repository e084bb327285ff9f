"""What our own procedures answer: the topics of a realm, the stage at a glance, and the pictures of the reports."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NewType, Protocol

from signalbox.documents import Problems, Section, shown
from signalbox.errors import UnavailableError
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.admin.grants import Rights
from signalbox.live.log.events import rfc3339
from signalbox.live.log.history_request import InvalidArgument
from signalbox.live.wamp.codec import MAXIMUM_ID, MAXIMUM_MESSAGE_BYTES, serialize, size_bytes
from signalbox.live.wamp.messages import Payload, RequestId, Result
from signalbox.sarracenia.rights.names import ExchangeName

PictureName = NewType("PictureName", str)

TOPICS = "signalbox.topics"
OVERVIEW = "signalbox.overview"
REPORT = "signalbox.report"
MAXIMUM_TOPICS = 1_000  # of one answer: topics have 255 bytes at most, and most have far fewer
MAXIMUM_PICTURES = 200


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a realm, and when the latest of its events that are retained was published, if one is."""

    name: RoutingKey
    retained_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a job made of a report: its name is the file's, below the folder of all reports."""

    name: PictureName
    made_at: datetime


class Topics(Protocol):
    """The topics that a realm has or had."""

    def beginning_with(self, realm: ExchangeName, prefix: str) -> Sequence[Topic]:
        """Return the topics that begin with a text, in their order."""
        ...


class Pictures(Protocol):
    """The pictures of the reports, as SVG."""

    def every(self) -> Sequence[Picture]:
        """Return all pictures, in any order."""
        ...

    def find(self, name: PictureName) -> str | None:
        """Return a picture, or None."""
        ...


# Tells something of the stage as it is at a moment, in values that JSON has. May raise `UnavailableError`.
Part = Callable[[datetime], object]


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks and when: a session's realm, and its rights there."""

    realm: ExchangeName
    rights: Rights
    now: datetime


@dataclass(frozen=True, slots=True)
class Glances:
    """Answers our own procedures; `parts` are what the overview tells, by their names in the answer."""

    topics: Topics
    parts: Mapping[str, Part]
    pictures: Pictures

    def answer(self, procedure: str, payload: Payload, asking: Asking) -> Payload:
        """Return the result of one of `PROCEDURES`. Raises `InvalidArgument` with all problems."""
        return PROCEDURES[procedure](self, payload, asking)

    def listed(self, payload: Payload, asking: Asking) -> Payload:
        """Return the topics that may be seen, of those that begin with the keyword `prefix`; `more` if not all."""
        problems = Problems()
        section = Section.of(payload.keywords, "", problems)
        prefix = section.text("prefix") or ""
        problems.refuse(InvalidArgument)
        found = [
            topic for topic in self.topics.beginning_with(asking.realm, prefix) if asking.rights.may_receive(topic.name)
        ]
        documents = [_topic_document(topic) for topic in found[:MAXIMUM_TOPICS]]
        return Payload((documents,), {"more": len(found) > MAXIMUM_TOPICS})

    def overview(self, payload: Payload, asking: Asking) -> Payload:
        """Return the stage at a glance; a part that is not to be had right now is missing, and named."""
        del payload
        told: dict[str, object] = {"at": rfc3339(asking.now)}
        unavailable: dict[str, str] = {}
        for name, part in self.parts.items():
            try:
                told[name] = part(asking.now)
            except UnavailableError as error:
                unavailable[name] = str(error)
        return Payload((told,), {"unavailable": unavailable})

    def report(self, payload: Payload, asking: Asking) -> Payload:
        """Return a picture by its name, or without one the names of the newest pictures, the newest first."""
        del asking
        if not payload.arguments:
            newest = sorted(self.pictures.every(), key=lambda picture: (picture.made_at, picture.name), reverse=True)
            return Payload(([_picture_document(picture) for picture in newest[:MAXIMUM_PICTURES]],))
        name = payload.arguments[0]
        svg = self.pictures.find(PictureName(name)) if isinstance(name, str) else None
        if svg is None:
            raise InvalidArgument(
                f"arguments[0]: there is no picture {shown(name)}; a call without arguments lists them"
            )
        return _fitting(Payload((svg,)))


PROCEDURES: Mapping[str, Callable[[Glances, Payload, Asking], Payload]] = {
    TOPICS: Glances.listed,
    OVERVIEW: Glances.overview,
    REPORT: Glances.report,
}


def _topic_document(topic: Topic) -> Mapping[str, object]:
    return {"topic": topic.name, "retained_at": topic.retained_at and rfc3339(topic.retained_at)}


def _picture_document(picture: Picture) -> Mapping[str, object]:
    return {"name": picture.name, "made_at": rfc3339(picture.made_at)}


def _fitting(payload: Payload) -> Payload:
    size = size_bytes(serialize(Result(RequestId(MAXIMUM_ID), {}, payload)))
    if size > MAXIMUM_MESSAGE_BYTES:
        raise InvalidArgument(
            f"the picture takes {size} bytes; at most {MAXIMUM_MESSAGE_BYTES} fit through a connection: read its file"
        )
    return payload
