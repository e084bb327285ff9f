"""The client's side of AMP: paths with offers, and replies from pages."""

import base64

from signalbox.errors import RejectedError

VERSION = "0"


class InvalidAmpPage(RejectedError):
    """Raised when a page contains no reply of a broker."""


def amp_path(body: str | bytes) -> str:
    """Return the path with a client's body for an AMP cache."""
    content = body if isinstance(body, bytes) else body.encode()
    return f"amp/client/0cache-breaker/{base64.urlsafe_b64encode(content).decode().rstrip('=')}"


def armored(page: str) -> str:
    """Return the reply in an AMP page."""
    elements = [element.partition("</pre>")[0] for element in page.split("<pre>")[1:]]
    text = "".join("".join(elements).split())
    if text[:1] != VERSION:
        raise InvalidAmpPage(f"the page is not of version {VERSION} of AMP's armor: {text[:20]!r}")
    return base64.b64decode(text[1:]).decode()
