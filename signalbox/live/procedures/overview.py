"""The `signalbox.*` procedures: a realm's topics, the overview of the stage, and the pictures of its reports."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NewType, Protocol

from signalbox.documents import Problems, Section, shown
from signalbox.errors import UnavailableError
from signalbox.exchange.model.topics import RoutingKey, short_string_problem
from signalbox.live.log.events import rfc3339
from signalbox.live.log.history_request import InvalidArgument
from signalbox.live.log.read_limits import SMALL
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp.codec import MAXIMUM_ID, MAXIMUM_MESSAGE_BYTES, serialize, size_bytes
from signalbox.live.wamp.messages import Payload, RequestId, Result
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from signalbox.activity.recent import RecentActivity  # the function `session` has this module, and does not use it


PictureName = NewType("PictureName", str)

MAXIMUM_TOPICS = 1_000  # of one result: a topic has at most 255 bytes, and most have far fewer
MAXIMUM_RANGES = 10  # each is read from several partitions
MAXIMUM_PICTURES = 200


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of a realm, and the publication time of its latest retained event, if it has one."""

    name: RoutingKey
    retained_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a report; its name is the path below the folder of all reports."""

    name: PictureName
    made_at: datetime


class Topics(Protocol):
    """The topics of a realm that have or had events."""

    def behind(self, realm: ExchangeName, prefix: str, after: str) -> Iterator[tuple[Topic, int]]:
        """Yield the topics that begin with a prefix and follow `after`, sorted, each with the cost of its read.

        They are read as they are taken.
        """


class Pictures(Protocol):
    """The pictures of the reports, as SVG. Methods may raise `UnavailableError`."""

    def every(self) -> Sequence[Picture]:
        """Return all pictures, in any order."""

    def find(self, name: PictureName) -> str | None:
        """Return a picture, or None."""


# Returns whether the caller may read an exchange.
MayRead = Callable[[ExchangeName], bool]


@dataclass(frozen=True, slots=True)
class OverviewPart:
    """A part of the overview; `read` returns it as JSON values and may raise `UnavailableError`."""

    read: Callable[[datetime, MayRead], object]
    for_administrators: bool = False


@dataclass(frozen=True, slots=True)
class StageOverview:
    """The sources of the overview procedures; `parts` are the parts of the overview by their names in the result."""

    topics: Topics
    parts: Mapping[str, OverviewPart]
    pictures: Pictures
    activity: "RecentActivity"


@dataclass(frozen=True, slots=True)
class OverviewContext:
    """A call of an overview procedure: its sources, the caller's realm and rights there, and the time of the call.

    `may_read` decides about exchanges, the realm and others; `spend` adds the cost of a read to what the caller owes.
    """

    stage: StageOverview
    realm: ExchangeName
    rights: Rights
    now: datetime
    may_read: MayRead
    spend: Callable[[int], None]


def list_topics(context: OverviewContext, payload: Payload) -> Payload:
    """Return the topics that the caller may receive, that begin with the keyword `prefix` and follow `after`.

    A result is a page: with the keyword `more`, the next one follows its last topic. Raises `InvalidArgument`.
    """
    problems = Problems()
    section = Section.of(payload.keywords, "", problems)
    texts = {name: section.text(name) or "" for name in ("prefix", "after")}
    for name, text in texts.items():
        if problem := short_string_problem(text):  # no table has such a key
            section.problem(name, problem)
    problems.refuse(InvalidArgument)
    page, more = _page(context, **texts)
    return Payload((page,), {"more": more})


def _page(context: OverviewContext, prefix: str, after: str) -> tuple[list[Mapping[str, object]], bool]:
    """Return the next topics, and whether there may be others, after a small part of what an instance may read."""
    ranges = context.rights.readable_beginnings(prefix)
    page, left = list[Mapping[str, object]](), SMALL
    for one in ranges if len(ranges) <= MAXIMUM_RANGES else [_common(ranges)]:
        for topic, cost in context.stage.topics.behind(context.realm, one, after):
            if len(page) == MAXIMUM_TOPICS or (left < 0 and page):
                return page, True
            if left < 0:
                raise InvalidArgument(
                    "prefix: too many topics that begin with it are denied to this user: give a longer one"
                )
            if context.rights.may_receive(topic.name):
                page.append({"topic": topic.name, "retained_at": topic.retained_at and rfc3339(topic.retained_at)})
            context.spend(cost)
            left -= cost
    return page, False


def _common(ranges: Sequence[str]) -> str:
    """Return the common beginning of sorted texts of which none begins another."""
    first, last = ranges[0], ranges[-1]
    return first[: next(place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other)]


def summarize_stage(context: OverviewContext, payload: Payload) -> Payload:
    """Return the overview of the stage, limited to exchanges and parts that the caller may read.

    The keyword `parts` has the names of all parts of the stage, and `unavailable` the reason of each that cannot be
    read.
    """
    del payload
    summary: dict[str, object] = {"at": rfc3339(context.now)}
    unavailable: dict[str, str] = {}
    for name, part in context.stage.parts.items():
        if part.for_administrators and not context.rights.is_admin:
            continue
        try:
            summary[name] = part.read(context.now, context.may_read)
        except UnavailableError as error:
            unavailable[name] = str(error)
    return Payload((summary,), {"parts": list(context.stage.parts), "unavailable": unavailable})


def summarize_activity(context: OverviewContext, payload: Payload) -> Payload:
    """Return rate, backlog, oldest message, errors and cost of each capability. Raises `UnavailableError`."""
    del payload
    at, found = context.stage.activity.at(context.now)
    options = context.stage.activity.options
    return Payload(({"at": rfc3339(at), "capabilities": [one.document(options=options) for one in found]},))


def find_reports(context: OverviewContext, payload: Payload) -> Payload:
    """Return the picture that the first argument names, or without one the names of the newest pictures.

    Raises `InvalidArgument` and `UnavailableError`.
    """
    return _picture(context, payload.arguments[0]) if payload.arguments else _newest(context)


def _newest(context: OverviewContext) -> Payload:
    pictures = context.stage.pictures.every()
    newest = sorted(pictures, key=lambda picture: (picture.made_at, picture.name), reverse=True)
    return Payload(
        ([{"name": picture.name, "made_at": rfc3339(picture.made_at)} for picture in newest[:MAXIMUM_PICTURES]],)
    )


def _picture(context: OverviewContext, name: object) -> Payload:
    svg = context.stage.pictures.find(PictureName(name)) if isinstance(name, str) else None
    if svg is None:
        raise InvalidArgument(f"arguments[0]: there is no picture {shown(name)}; a call without arguments lists them")
    return _fitting(Payload((svg,)))


def _fitting(payload: Payload) -> Payload:
    size = size_bytes(serialize(Result(RequestId(MAXIMUM_ID), {}, payload)))
    if size > MAXIMUM_MESSAGE_BYTES:
        raise InvalidArgument(
            f"the picture takes {size} bytes; a message may have at most {MAXIMUM_MESSAGE_BYTES}: read its file"
        )
    return payload
