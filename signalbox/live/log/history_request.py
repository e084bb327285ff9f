"""The arguments of the procedure `wamp.subscription.get_events`."""

from dataclasses import dataclass
from datetime import datetime

from signalbox.documents import Problems, Section, shown
from signalbox.errors import RejectedError
from signalbox.exchange.model.topics import short_string_problem
from signalbox.live.wamp.codec import MAXIMUM_ID
from signalbox.live.wamp.messages import Payload, PublicationId, SubscriptionId
from signalbox.live.wamp.options import parse_timestamp

DEFAULT_LIMIT = 1_000  # events per result; it may hold fewer, since it is one message


class InvalidArgument(RejectedError):
    """Raised when a call of one of the router's procedures has invalid arguments."""


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """A request for the events of a subscription that satisfy all bounds (advanced profile, «Event History»).

    `from…` and `until…` are inclusive, `after…` and `before…` exclusive.
    """

    subscription: SubscriptionId
    limit: int = DEFAULT_LIMIT
    is_reversed: bool = False
    from_time: datetime | None = None
    after_time: datetime | None = None
    before_time: datetime | None = None
    until_time: datetime | None = None
    topic: str | None = None
    from_publication: PublicationId | None = None
    after_publication: PublicationId | None = None
    before_publication: PublicationId | None = None
    until_publication: PublicationId | None = None

    @property
    def publications(self) -> tuple[PublicationId | None, ...]:
        """Return the bounds that are publications."""
        return self.from_publication, self.after_publication, self.before_publication, self.until_publication

    @classmethod
    def parse(cls, payload: Payload) -> "HistoryRequest":
        """Parse the arguments of a call. Raises `InvalidArgument` with all problems; unknown keywords are ignored."""
        problems = Problems()
        section = Section.of(payload.keywords, "", problems)
        parsed = cls(
            subscription=SubscriptionId(_subscription(payload.arguments, problems)),
            limit=min(_number(section, "limit") or DEFAULT_LIMIT, DEFAULT_LIMIT),
            is_reversed=section.flag("reverse"),
            from_time=_time(section, "from_time"),
            after_time=_time(section, "after_time"),
            before_time=_time(section, "before_time"),
            until_time=_time(section, "until_time"),
            topic=_topic(section),
            from_publication=_publication(section, "from_publication"),
            after_publication=_publication(section, "after_publication"),
            before_publication=_publication(section, "before_publication"),
            until_publication=_publication(section, "until_publication"),
        )
        problems.refuse(InvalidArgument)
        return parsed


def _subscription(arguments: tuple[object, ...], problems: Problems) -> int:
    first = arguments[0] if arguments else None
    if isinstance(first, int) and not isinstance(first, bool) and 1 <= first <= MAXIMUM_ID:
        return first
    problems.add("arguments[0]", f"expected a subscription id, not {shown(first)}")
    return 0


def _topic(section: Section) -> str | None:
    text = section.text("topic")
    problem = None if text is None else short_string_problem(text)
    if problem:
        section.problem("topic", problem)
    return text


def _number(section: Section, name: str) -> int | None:
    number = section.whole_number(name)
    if number == 0:
        section.problem(name, "expected an integer of at least 1, not 0")
    return number


def _publication(section: Section, name: str) -> PublicationId | None:
    number = _number(section, name)
    return None if number is None else PublicationId(number)


def _time(section: Section, name: str) -> datetime | None:
    text = section.text(name)
    moment = None if text is None else parse_timestamp(text)
    if text is not None and moment is None:
        section.problem(name, f"expected an RFC 3339 time with a time zone, not {shown(text)}")
    return moment
