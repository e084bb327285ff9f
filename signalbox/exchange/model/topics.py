"""Routing keys: words between dots, split, compared and limited as in RabbitMQ."""

from typing import NewType

from signalbox.errors import RejectedError

RoutingKey = NewType("RoutingKey", str)

MAXIMUM_BYTES = 255  # AMQP 0-9-1, 4.2.5.3: the length of a short string is one octet
RESERVED_WORD = "wamp"  # as the first word, reserved by WAMP
SHOWN_CHARACTERS = 300  # the longest valid key or pattern is quoted in full


class InvalidRoutingKey(RejectedError):
    """Raised when a text cannot be a routing key."""


def parse_routing_key(text: str) -> RoutingKey:
    """Return a routing key, for which see `short_string_problem`; "" is one. Raises `InvalidRoutingKey`."""
    problem = short_string_problem(text)
    if problem:
        raise InvalidRoutingKey(f"routing key {shown(text)} {problem}")
    return RoutingKey(text)


def words_of(topic: str) -> list[str]:
    """Return the words of a key or a pattern: "" has none, and dots without text between them enclose an empty one."""
    return topic.split(".") if topic else []


def is_reserved(topic: str) -> bool:
    """Return whether the first word of a topic is `wamp`: only sessions publish such events."""
    return topic.partition(".")[0] == RESERVED_WORD


def short_string_problem(text: str) -> str | None:
    """Return why a text cannot be an AMQP short string, or None.

    AMQP's short strings have no U+0000. One that begins with it would end the session of a WAMP client that reads it.
    """
    if text.startswith("\0"):
        return "begins with U+0000, which marks binary values in WAMP"
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError:
        return "has half of a surrogate pair, which UTF-8 cannot encode"
    if size_bytes > MAXIMUM_BYTES:
        return f"has {size_bytes} bytes of UTF-8; at most {MAXIMUM_BYTES} are allowed"
    return None


def shown(value: object) -> str:
    """Return a value as an error message quotes it."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
