"""The options of SUBSCRIBE and PUBLISH: those that we know must be as they should, the rest is ignored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError
from signalbox.live.wamp.audience import Audience
from signalbox.live.wamp.codec import MAXIMUM_ID
from signalbox.live.wamp.messages import PublicationId, SessionId
from signalbox.live.wamp.patterns import MatchPolicy


class InvalidOptions(RejectedError):
    """Raised when options that we know are not as they should be."""


@dataclass(frozen=True, slots=True)
class LastEvents:
    """The newest events before the first live one, at most so many."""

    count: int


@dataclass(frozen=True, slots=True)
class AfterSequence:
    """The events of a topic behind the one with this number."""

    sequence: int


@dataclass(frozen=True, slots=True)
class AfterPublication:
    """The events behind this one."""

    publication: PublicationId


@dataclass(frozen=True, slots=True)
class AfterTime:
    """The events that were published later."""

    at: datetime


@dataclass(frozen=True, slots=True)
class AfterTopicSequences:
    """The events of each topic behind its own number, and of all topics without one, those since a time.

    What a client says that comes back with a pattern: an event that was long on its way is older than what overtook it
    in other topics, so a time alone would leave it out.
    """

    since: datetime
    numbers: Mapping[str, int]


BackfillStart = LastEvents | AfterSequence | AfterPublication | AfterTime | AfterTopicSequences


@dataclass(frozen=True, slots=True)
class SubscribeOptions:
    """How a client wants to subscribe: which topics, and what it wants of the past before the first live event."""

    match: MatchPolicy = MatchPolicy.EXACT
    get_retained: bool = False
    history: BackfillStart | None = None

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> "SubscribeOptions":
        """Return what the options say. Raises `InvalidOptions` with all problems."""
        problems = Problems()
        section = Section.of(options, "options", problems)
        match = _match(section)
        parsed = cls(match, section.flag("get_retained"), _history(section, match))
        problems.refuse(InvalidOptions)
        return parsed


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """How a client wants to publish."""

    audience: Audience
    acknowledge: bool = False
    disclose_me: bool = False
    retain: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, object], *, publisher: SessionId | None) -> "PublishOptions":
        """Return what the options say. Raises `InvalidOptions` with all problems."""
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


def history_option(past: BackfillStart) -> dict[str, object]:
    """Return the `_history` that says this."""
    if isinstance(past, LastEvents):
        return {"last": past.count}
    if isinstance(past, AfterSequence):
        return {"after": past.sequence}
    if isinstance(past, AfterTime):
        return {"after": past.at.isoformat()}
    if isinstance(past, AfterTopicSequences):
        return {"after": {"since": past.since.isoformat(), "topics": dict(past.numbers)}}
    return {"after_publication": past.publication}


def is_acknowledged(options: Mapping[str, object]) -> bool:
    """Say whether a publisher waits for a reply, whatever else it says."""
    return options.get("acknowledge") is True


def parse_timestamp(text: str) -> datetime | None:
    """Return a time in RFC 3339's form, which has a zone, or None when it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def _match(section: Section) -> MatchPolicy:
    text = section.text("match")
    if text is None:
        return MatchPolicy.EXACT
    known = {match.value: match for match in MatchPolicy}
    if text not in known:
        section.problem("match", f"expected one of {', '.join(known)}, not {shown(text)}")
    return known.get(text, MatchPolicy.EXACT)


def _audience(section: Section, publisher: SessionId | None) -> Audience:
    wants_own = section.fields.get("exclude_me") is not None and not section.flag("exclude_me")
    return Audience(
        eligible=_sessions(section, "eligible"),
        eligible_authid=_names(section, "eligible_authid"),
        eligible_authrole=_names(section, "eligible_authrole"),
        exclude=_sessions(section, "exclude"),
        exclude_authid=_names(section, "exclude_authid"),
        exclude_authrole=_names(section, "exclude_authrole"),
        excluded_publisher=None if wants_own else publisher,
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
    """Return what of `_history`, an option of ours, is wanted.

    `{"last": N}`, `{"after": N}` by a topic's own numbers, `{"after": "2026-11-21T20:15:00Z"}`,
    `{"after": {"since": "2026-11-21T20:15:00Z", "topics": {"a.b": N}}}`, or `{"after_publication": N}`.
    """
    if section.fields.get("_history") is None:
        return None
    wish = section.section("_history")
    if len(wish.fields) != 1 or not wish.fields.keys() <= HISTORY_PARSERS.keys():
        section.problem("_history", f"expected one of {', '.join(HISTORY_PARSERS)}, not {shown(dict(wish.fields))}")
        return None
    name = next(iter(wish.fields))
    past = HISTORY_PARSERS[name](wish.fields[name])
    if past is None:
        wish.problem(name, f"expected {EXPECTED_VALUES[name]}, not {shown(wish.fields[name])}")
    if isinstance(past, AfterSequence) and match is not MatchPolicy.EXACT:
        wish.problem(name, "numbers are a topic's own, and this is a pattern: say a time or a publication")
    return past


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
    if moment is None or not isinstance(numbers, Mapping) or not all(map(_is_number, numbers.values())):
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
    "last": "a number from 1 on",
    "after": "a sequence number, a time with its zone, or numbers by topics and since when",
    "after_publication": "the id of a publication",
}
