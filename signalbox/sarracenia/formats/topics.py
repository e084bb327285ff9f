"""The topic of a path, letter for letter as sr3 3.3.1 makes it."""

from signalbox.errors import RejectedError

V03_PREFIX = "v03"
V02_PREFIX = "v02.post"  # sr3 uses it for every message in the format v02, whatever prefix is configured
MAXIMUM_TOPIC_LENGTH = 255  # AMQP, short string
LEAD_BYTE = 0b1100_0000
# An asterisk as %22, which is a quotation mark's code, is sr3's; it reads it back the same way (moth/amqp.py).
ESCAPES = (("#", "%23"), ("*", "%22"))


class InvalidTopic(RejectedError):
    """Raised when a path has no topic that AMQP could carry, so that sr3 could not announce it either."""


def topic_of(path: str, *, prefix: str = V03_PREFIX) -> str:
    """Return the topic under which a path is announced: its directories. Raises `InvalidTopic`."""
    return escaped(".".join((prefix, *path.split("/")[:-1])))


def escaped(words: str) -> str:
    """Return the topic that sr3 makes of words with dots between them. Raises `InvalidTopic`."""
    topic = words
    for character, escape in ESCAPES:
        topic = topic.replace(character, escape)
    try:
        encoded = _shortened(topic).encode()
    except UnicodeError as error:
        raise InvalidTopic(f"the topic {words[:80]!r} is not UTF-8, or is where its length has it cut") from error
    if len(encoded) > MAXIMUM_TOPIC_LENGTH:
        raise InvalidTopic(f"the topic {words[:80]!r} has {len(encoded)} bytes; at most {MAXIMUM_TOPIC_LENGTH} fit")
    return encoded.decode()


def _shortened(topic: str) -> str:
    # sr3 counts characters but cuts bytes, and where that leaves part of a character it can only undo the first byte:
    # a topic of fewer characters is left too long, and some cuts cannot be sent.
    if len(topic) < MAXIMUM_TOPIC_LENGTH:
        return topic
    cut = topic.encode()[:MAXIMUM_TOPIC_LENGTH]
    return (cut[:-1] if cut[-1] >= LEAD_BYTE else cut).decode()


def unescaped(topic: str) -> str:
    """Return a received topic as its sender meant it."""
    for character, escape in ESCAPES:
        topic = topic.replace(escape, character)
    return topic


def binding_key(subtopic: str, *, prefix: str = V03_PREFIX) -> str:
    """Return the pattern that a `subtopic` binds; without a prefix, for `topicPrefix none`, it stands alone."""
    return f"{prefix}.{subtopic}" if prefix else subtopic
