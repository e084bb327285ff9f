"""Routing keys: words between dots, split, compared and limited as RabbitMQ does it."""

from typing import NewType

from signalbox.errors import RejectedError

RoutingKey = NewType("RoutingKey", str)

MAXIMUM_BYTES = 255  # AMQP 0-9-1, 4.2.5.3: the length of a short string is one octet
SHOWN_CHARACTERS = 300  # all of any key or pattern that is allowed


class InvalidRoutingKey(RejectedError):
    """Raised when a text cannot be a routing key."""


def parse_routing_key(text: str) -> RoutingKey:
    """Return a routing key; every text that fits is one, the empty one too. Raises `InvalidRoutingKey`."""
    problem = short_string_problem(text)
    if problem:
        raise InvalidRoutingKey(f"routing key {shown(text)} {problem}")
    return RoutingKey(text)


def words_of(topic: str) -> list[str]:
    """Return the words of a key or a pattern: none in the empty text, an empty one wherever a dot has no neighbour."""
    return topic.split(".") if topic else []


def short_string_problem(text: str) -> str | None:
    """Return why a text cannot be one of AMQP's short strings, or None when it can."""
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError:
        return "has half of a surrogate pair, which UTF-8 cannot say"
    if size_bytes > MAXIMUM_BYTES:
        return f"has {size_bytes} bytes of UTF-8; at most {MAXIMUM_BYTES} are allowed"
    return None


def shown(value: object) -> str:
    """Return a value as a problem may quote it."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…"
