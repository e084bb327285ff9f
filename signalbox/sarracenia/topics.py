"""Topics of sr3's messages, escaped and shortened byte for byte as sr3 3.3.1 does."""

from signalbox.errors import RejectedError

MAXIMUM_TOPIC_LENGTH = 255  # AMQP, short string
LEAD_BYTE = 0b1100_0000
# sr3 encodes an asterisk as %22, the code of a quotation mark, and decodes it the same way (moth/amqp.py).
ESCAPES = (("#", "%23"), ("*", "%22"))


class InvalidTopic(RejectedError):
    """Raised when the topic of a path is too long for AMQP or not UTF-8; sr3 cannot announce such a path either."""


def escaped(words: str) -> str:
    """Escape and shorten dot-separated words as sr3 does. Raises `InvalidTopic`."""
    topic = words
    for character, escape in ESCAPES:
        topic = topic.replace(character, escape)
    try:
        encoded = _shortened(topic).encode()
    except UnicodeError as error:
        raise InvalidTopic(
            f"the topic {words[:80]!r} is not UTF-8, or is not UTF-8 when it is cut to its maximum length"
        ) from error
    if len(encoded) > MAXIMUM_TOPIC_LENGTH:
        raise InvalidTopic(f"the topic {words[:80]!r} has {len(encoded)} bytes; at most {MAXIMUM_TOPIC_LENGTH} fit")
    return encoded.decode()


def _shortened(topic: str) -> str:
    # sr3 counts characters but cuts bytes, and of a character that is cut it removes a lead byte only. So topics of
    # fewer characters stay too long, and some cuts give invalid UTF-8 that cannot be sent.
    if len(topic) < MAXIMUM_TOPIC_LENGTH:
        return topic
    cut = topic.encode()[:MAXIMUM_TOPIC_LENGTH]
    return (cut[:-1] if cut[-1] >= LEAD_BYTE else cut).decode()


def unescaped(topic: str) -> str:
    """Reverse the escapes in a received topic."""
    for character, escape in ESCAPES:
        topic = topic.replace(escape, character)
    return topic
