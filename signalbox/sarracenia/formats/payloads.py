"""Payloads of messages: detection of their format, parsing and serialization."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from signalbox.sarracenia.formats import v02, v03
from signalbox.sarracenia.formats.announcement import Announcement


class Format(StrEnum):
    """A payload format."""

    V02 = "v02"
    V03 = "v03"


@dataclass(frozen=True, slots=True)
class Payload:
    """The body, headers and content type of a message."""

    body: str
    headers: Mapping[str, object]
    content_type: str | None

    @property
    def format(self) -> Format:
        """Return the format by sr3's rule: by content type, else by whether the body looks like JSON."""
        if self.content_type == v03.CONTENT_TYPE:
            return Format.V03
        # sr3 looks for the brace in the first five characters.
        is_line = self.content_type == v02.CONTENT_TYPE or "{" not in self.body[:5]
        return Format.V02 if is_line else Format.V03


def payload(announcement: Announcement, form: Format) -> Payload:
    """Serialize an announcement in a format."""
    if form == Format.V02:
        return Payload(v02.body(announcement), v02.headers(announcement), v02.CONTENT_TYPE)
    return Payload(v03.body(announcement), {}, v03.CONTENT_TYPE)


def announcement(received: Payload) -> Announcement:
    """Parse the announcement in a payload. Raises `InvalidAnnouncement`."""
    if received.format == Format.V02:
        return v02.parse(received.body, received.headers)
    return v03.parse(received.body)
