"""Payloads on the wire: which format they are in, and how to write either."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from signalbox.sarracenia.formats import v02, v03
from signalbox.sarracenia.formats.announcement import Announcement


class Format(StrEnum):
    """A format of payloads."""

    V02 = "v02"
    V03 = "v03"


@dataclass(frozen=True, slots=True)
class Payload:
    """A message as brokers carry it."""

    body: str
    headers: Mapping[str, object]
    content_type: str | None

    @property
    def format(self) -> Format:
        """Return the format, which sr3 tells by the content type, else by whether the body is JSON."""
        if self.content_type == v03.CONTENT_TYPE:
            return Format.V03
        # Five characters, as sr3 looks at them.
        is_line = self.content_type == v02.CONTENT_TYPE or "{" not in self.body[:5]
        return Format.V02 if is_line else Format.V03


def payload(announcement: Announcement, form: Format) -> Payload:
    """Return an announcement in one of the formats."""
    if form == Format.V02:
        return Payload(v02.body(announcement), v02.headers(announcement), v02.CONTENT_TYPE)
    return Payload(v03.body(announcement), {}, v03.CONTENT_TYPE)


def announcement(received: Payload) -> Announcement:
    """Return the announcement in a payload. Raises `InvalidAnnouncement`."""
    if received.format == Format.V02:
        return v02.parse(received.body, received.headers)
    return v03.parse(received.body)
