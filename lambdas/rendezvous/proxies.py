"""The function `proxies`: the door of proxies, for polls, answers and pages."""

from typing import Any

from lambdas.rendezvous import answer, page, poll, wiring
from lambdas.shared import shutdown
from lambdas.shared.http import Response

ROUTES = {"/proxy": poll.respond, "/answer": answer.respond}

shutdown.before_end(wiring.flush)


def handler(event: dict[str, Any], _context: object) -> Response:
    """Return the response to a request of a proxy."""
    return ROUTES.get(event["rawPath"], page.respond)(event)
