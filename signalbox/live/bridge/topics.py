"""The topics of an Arvados cluster's events: each about an object has its owner, by which Arvados gives permissions."""

from urllib.parse import quote

ABSENT_WORD = "-"
MAXIMUM_WORD = 40  # a topic has 255 bytes; a UUID has 27 characters


def log_topic(owner: str, container: str, name: str) -> str:
    """Return the topic of a container's log file, or with an empty name the prefix of all of them."""
    return f"container.{word(owner)}.{word(container)}.log.{word(name) if name else ''}"


def word(text: str) -> str:
    """Return a text as a word of a topic; one that is empty or too long to be a name of Arvados is a dash."""
    found = quote(text, safe="!$&'()+,/:;=?@-_~").replace(".", "%2E")
    return found if 0 < len(found) <= MAXIMUM_WORD else ABSENT_WORD
