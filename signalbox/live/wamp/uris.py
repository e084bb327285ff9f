"""URIs: the loose rule of WAMP, since the topics of real clients are not strict ones, and the limit of the exchange."""

from signalbox.errors import RejectedError
from signalbox.exchange.model.topics import RoutingKey, short_string_problem, shown

RESERVED_COMPONENT = "wamp"  # as the first component: WAMP's own
FORBIDDEN_CHARACTER = "#"  # WAMP reserves it for routers


class InvalidUri(RejectedError):
    """Raised when a text cannot be the URI of a topic, of a pattern or of a procedure."""


def parse_topic(text: str) -> RoutingKey:
    """Return the topic of a publication; it is a routing key of the exchange. Raises `InvalidUri`."""
    topic = _parsed(text, "topic", empty_components=False)
    if is_reserved(topic):
        raise InvalidUri(f"topic {shown(text)} begins with {RESERVED_COMPONENT!r}, which is reserved for WAMP's own")
    return RoutingKey(topic)


def parse_procedure(text: str) -> str:
    """Return the URI of a procedure. Raises `InvalidUri`."""
    return _parsed(text, "procedure", empty_components=False)


def parse_pattern_uri(text: str, *, empty_components: bool) -> str:
    """Return what a client subscribes to; WAMP's own topics may be subscribed to. Raises `InvalidUri`."""
    return _parsed(text, "topic", empty_components=empty_components)


def is_reserved(topic: str) -> bool:
    """Say whether a topic is one of WAMP's own."""
    return topic.partition(".")[0] == RESERVED_COMPONENT


def _parsed(text: str, what: str, *, empty_components: bool) -> str:
    problem = short_string_problem(text) or _problem(text, empty_components=empty_components)
    if problem:
        raise InvalidUri(f"{what} {shown(text)} {problem}")
    return text


def _problem(text: str, *, empty_components: bool) -> str | None:
    """Return what breaks the loose rule (basic profile, 2.1.1), or None.

    Strict URIs have lower-case letters, digits and `_` only. Arvados' UUIDs have `-`, and other systems' names have
    more, so a realm that is strict would be closed to them; that is why there is no such choice.
    """
    if any(character.isspace() for character in text):
        return "has white space"
    if FORBIDDEN_CHARACTER in text:
        return f"has {FORBIDDEN_CHARACTER!r}, which is reserved for routers"
    if not empty_components and "" in text.split("."):
        return "has an empty component, as only patterns may"
    return None
