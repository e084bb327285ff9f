"""The function `clients`: the door of clients over HTTP and of AMP caches, and of pages."""

from typing import Any

from lambdas.rendezvous import client, page, wiring
from lambdas.shared import shutdown
from lambdas.shared.http import Response

PATH, AMP = "/client", "/amp/"

shutdown.before_end(wiring.flush)


def handler(event: dict[str, Any], _context: object) -> Response:
    """Return the response to a request of a client."""
    path: str = event["rawPath"]
    is_offer = path == PATH or path.startswith(AMP)
    return client.respond(event) if is_offer else page.respond(event)
