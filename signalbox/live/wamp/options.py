"""The options of SUBSCRIBE and PUBLISH: known options are validated, unknown ones are ignored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError
from signalbox.exchange.model.topics import short_string_problem
from signalbox.live.wamp.audience import Audience
from signalbox.live.wamp.codec import MAXIMUM_ID
from signalbox.live.wamp.messages import PublicationId, SessionId
from signalbox.live.wamp.patterns import MatchPolicy

# The topics that a SUBSCRIBE names, each of which is read: more than a client can name in a frame.
MOST_NUMBERS = 1_250


class InvalidOptions(RejectedError):
    """Raised when a known option has an invalid value; the text lists all problems."""


@dataclass(frozen=True, slots=True)
class LastEvents:
    """Backfill with at most the newest `count` events."""

    count: int


@dataclass(frozen=True, slots=True)
class AfterSequence:
    """Backfill with the events of one topic after a sequence number."""

    sequence: int


@dataclass(frozen=True, slots=True)
class AfterPublication:
    """Backfill with the events after a publication."""

    publication: PublicationId


@dataclass(frozen=True, slots=True)
class AfterTime:
    """Backfill with the events that were published after a time."""

    at: datetime


@dataclass(frozen=True, slots=True)
class AfterTopicSequences:
    """Backfill with each topic's events after its sequence number; for other topics, with those since a time.

    A client that reconnects with a pattern sends this. A delayed event may be older than events of other topics that
    the client has already received, so a time alone would miss it.
    """

    since: datetime
    numbers: Mapping[str, int]


BackfillStart = LastEvents | AfterSequence | AfterPublication | AfterTime | AfterTopicSequences


@dataclass(frozen=True, slots=True)
class SubscribeOptions:
    """The parsed options of SUBSCRIBE: match policy, and the backfill to send before the first live event."""

    match: MatchPolicy = MatchPolicy.EXACT
    get_retained: bool = False
    history: BackfillStart | None = None

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> "SubscribeOptions":
        """Parse the options of SUBSCRIBE. Raises `InvalidOptions` with all problems."""
        problems = Problems()
        section = Section.of(options, "options", problems)
        match = section.choice("match", MatchPolicy, default=MatchPolicy.EXACT)
        parsed = cls(match, section.flag("get_retained"), _history(section, match))
        problems.refuse(InvalidOptions)
        return parsed


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """The parsed options of PUBLISH."""

    audience: Audience
    acknowledge: bool = False
    disclose_me: bool = False
    retain: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, object], *, publisher: SessionId | None) -> "PublishOptions":
        """Parse the options of PUBLISH. Raises `InvalidOptions` with all problems."""
        problems = Problems()
        section = Section.of(options, "options", problems)
        parsed = cls(
            _audience(section, publisher),
            section.flag("acknowledge"),
            section.flag("disclose_me"),
            section.flag("retain"),
        )
        problems.refuse(InvalidOptions)
        return parsed


def history_option(start: BackfillStart) -> dict[str, object]:
    """Return the value of SUBSCRIBE's option `_history` for a backfill start."""
    if isinstance(start, LastEvents):
        return {"last": start.count}
    if isinstance(start, AfterSequence):
        return {"after": start.sequence}
    if isinstance(start, AfterTime):
        return {"after": start.at.isoformat()}
    if isinstance(start, AfterTopicSequences):
        return {"after": {"since": start.since.isoformat(), "topics": dict(start.numbers)}}
    return {"after_publication": start.publication}


def is_acknowledged(options: Mapping[str, object]) -> bool:
    """Return whether the options of a PUBLISH, valid or not, request an acknowledgement."""
    return options.get("acknowledge") is True


def parse_timestamp(text: str) -> datetime | None:
    """Parse an RFC 3339 timestamp; return None if the text is invalid or has no time zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _audience(section: Section, publisher: SessionId | None) -> Audience:
    includes_publisher = section.fields.get("exclude_me") is not None and not section.flag("exclude_me")
    return Audience(
        eligible=_sessions(section, "eligible"),
        eligible_authid=_names(section, "eligible_authid"),
        eligible_authrole=_names(section, "eligible_authrole"),
        exclude=_sessions(section, "exclude"),
        exclude_authid=_names(section, "exclude_authid"),
        exclude_authrole=_names(section, "exclude_authrole"),
        excluded_publisher=None if includes_publisher else publisher,
    )


def _names(section: Section, name: str) -> frozenset[str] | None:
    return None if section.fields.get(name) is None else frozenset(section.texts(name))


def _sessions(section: Section, name: str) -> frozenset[SessionId] | None:
    value = section.fields.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(map(_is_id, value)):
        section.problem(name, f"expected a list of session ids, not {shown(value)}")
        return frozenset()
    return frozenset(map(SessionId, value))


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAXIMUM_ID


def _history(section: Section, match: MatchPolicy) -> BackfillStart | None:
    """Parse Signalbox's own option `_history`.

    It has one of these forms:

    `{"last": N}`, `{"after": N}` with a topic's sequence number, `{"after": "2026-11-21T20:15:00Z"}`,
    `{"after": {"since": "2026-11-21T20:15:00Z", "topics": {"a.b": N}}}`, or `{"after_publication": N}`.
    """
    if section.fields.get("_history") is None:
        return None
    option = section.section("_history")
    if len(option.fields) != 1 or not option.fields.keys() <= HISTORY_PARSERS.keys():
        section.problem("_history", f"expected one of {', '.join(HISTORY_PARSERS)}, not {shown(dict(option.fields))}")
        return None
    name = next(iter(option.fields))
    start = HISTORY_PARSERS[name](option.fields[name])
    if start is None:
        option.problem(name, f"expected {EXPECTED_VALUES[name]}, not {shown(option.fields[name])}")
    if isinstance(start, AfterSequence) and match is not MatchPolicy.EXACT:
        option.problem(name, "a sequence number needs an exact topic; use a time or a publication")
    return start


def _last(value: object) -> BackfillStart | None:
    return LastEvents(value) if isinstance(value, int) and _is_id(value) else None


def _after(value: object) -> BackfillStart | None:
    if isinstance(value, str):
        moment = parse_timestamp(value)
        return AfterTime(moment) if moment else None
    if isinstance(value, Mapping):
        return _after_each(value)
    return AfterSequence(value) if isinstance(value, int) and _is_number(value) else None


def _after_each(value: Mapping[str, object]) -> AfterTopicSequences | None:
    since, numbers = value.get("since"), value.get("topics")
    moment = parse_timestamp(since) if isinstance(since, str) else None
    if moment is None or not isinstance(numbers, Mapping) or len(numbers) > MOST_NUMBERS:
        return None
    if any(map(short_string_problem, numbers)) or not all(map(_is_number, numbers.values())):
        return None
    return AfterTopicSequences(moment, dict(numbers))


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _after_publication(value: object) -> BackfillStart | None:
    return AfterPublication(PublicationId(value)) if isinstance(value, int) and _is_id(value) else None


HISTORY_PARSERS: Mapping[str, Callable[[object], BackfillStart | None]] = {
    "last": _last,
    "after": _after,
    "after_publication": _after_publication,
}
EXPECTED_VALUES = {
    "last": "an integer of at least 1",
    "after": f"a sequence number, a time with a time zone, or an object of `since` and up to {MOST_NUMBERS:,} `topics`",
    "after_publication": "a publication id",
}
