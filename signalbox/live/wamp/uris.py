"""The URIs of topics and procedures, by WAMP's loose rule and the limit of routing keys, and of errors."""

from signalbox.errors import RejectedError
from signalbox.exchange.model.topics import RESERVED_WORD, RoutingKey, is_reserved, short_string_problem, shown

INVALID_URI = "wamp.error.invalid_uri"
INVALID_ARGUMENT = "wamp.error.invalid_argument"
NOT_AUTHORIZED = "wamp.error.not_authorized"
NO_SUCH_PROCEDURE = "wamp.error.no_such_procedure"
NO_SUCH_REALM = "wamp.error.no_such_realm"
NO_SUCH_REGISTRATION = "wamp.error.no_such_registration"
NO_SUCH_SUBSCRIPTION = "wamp.error.no_such_subscription"
PAYLOAD_SIZE_EXCEEDED = "wamp.error.payload_size_exceeded"
PROTOCOL_VIOLATION = "wamp.error.protocol_violation"
TIMEOUT = "wamp.error.timeout"
NO_SUCH_SESSION = "wamp.error.no_such_session"
UNAVAILABLE = "wamp.error.unavailable"

# Also sent for wrong secrets, as Autobahn and nexus do; the newest specification has `authentication_denied` for them.
AUTHENTICATION_FAILED = "wamp.error.authentication_failed"
AUTHENTICATION_REQUIRED = "wamp.error.authentication_required"
NO_MATCHING_AUTH_METHOD = "wamp.error.no_matching_auth_method"

GOODBYE_AND_OUT = "wamp.close.goodbye_and_out"

# WAMP defines no reasons for these; a client has to join again.
TOKEN_EXPIRED = "signalbox.close.token_expired"  # noqa: S105 - a URI
ROLE_CHANGED = "signalbox.close.role_changed"

TOO_MANY_SUBSCRIPTIONS = "signalbox.error.too_many_subscriptions"  # WAMP defines no URI for it


FORBIDDEN_CHARACTER = "#"  # WAMP reserves it for routers


class InvalidUri(RejectedError):
    """Raised when a text is not a valid URI of a topic, a pattern or a procedure."""


def parse_topic(text: str) -> RoutingKey:
    """Validate the topic of a publication, which is a routing key of the exchange. Raises `InvalidUri`."""
    topic = _parsed(text, "topic", empty_components=False)
    if is_reserved(topic):
        raise InvalidUri(f"topic {shown(text)} begins with {RESERVED_WORD!r}, which is reserved for WAMP")
    return RoutingKey(topic)


def parse_procedure(text: str) -> str:
    """Validate the URI of a procedure. Raises `InvalidUri`."""
    return _parsed(text, "procedure", empty_components=False)


def parse_pattern_uri(text: str, *, empty_components: bool) -> str:
    """Validate the URI of a subscription, which may be one of WAMP's meta topics. Raises `InvalidUri`."""
    return _parsed(text, "topic", empty_components=empty_components)


def _parsed(text: str, what: str, *, empty_components: bool) -> str:
    problem = short_string_problem(text) or _problem(text, empty_components=empty_components)
    if problem:
        raise InvalidUri(f"{what} {shown(text)} {problem}")
    return text


def _problem(text: str, *, empty_components: bool) -> str | None:
    """Return how a text violates the loose URI rule (basic profile, 2.1.1), or None.

    Strict URIs allow only lower-case letters, digits and `_`. Arvados' UUIDs contain `-`, and names in other systems
    contain more, so a strict realm could not carry them; there is no setting for strict URIs.
    """
    if any(character.isspace() for character in text):
        return "has white space"
    if FORBIDDEN_CHARACTER in text:
        return f"has {FORBIDDEN_CHARACTER!r}, which is reserved for routers"
    if not empty_components and "" in text.split("."):
        return "has an empty component, as only patterns may"
    return None
