"""The client's side of AMP: paths with offers, and replies from pages."""

import base64


def amp_path(body: str | bytes) -> str:
    """Return the path with a client's body for an AMP cache."""
    content = body if isinstance(body, bytes) else body.encode()
    return f"amp/client/0cache-breaker/{base64.urlsafe_b64encode(content).decode().rstrip('=')}"


def armored(page: str) -> str:
    """Return the reply in an AMP page."""
    elements = [element.partition("</pre>")[0] for element in page.split("<pre>")[1:]]
    text = "".join("".join(elements).split())
    assert text[0] == "0", "the version of the armor"
    return base64.b64decode(text[1:]).decode()
