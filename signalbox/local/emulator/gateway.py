"""The gateway in front of MiniStack: stable URLs, closed administration pages, TLS marks and WebSocket handshakes."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from signalbox.local.emulator.asgi import Application, Receive, Scope, Send
from signalbox.local.emulator.handshakes import with_refusal_status, with_subprotocol
from signalbox.local.emulator.routes import ApiPaths

HEALTH = "/_signalbox/health"
# MiniStack's own pages need no signature and can reset everything, so only these are open. A stack's custom resources
# and wait conditions answer at a URL that only they have, and a Kubernetes API server asks about tokens at such a one.
OPEN_PAGES = (
    "/_ministack/health",
    "/_ministack/ready",
    "/_ministack/cfn-response/",
    "/_ministack/cfn-signal/",
    "/_ministack/eks-auth/",
)
CLOSED_PAGES = ("/_ministack/", "/_localstack/")


@dataclass(frozen=True, slots=True)
class Gateway:
    """An ASGI application that wraps MiniStack's."""

    application: Application
    routes: ApiPaths
    instance: str
    """Id of this emulator, which its health page shows."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http" and scope["path"] == HEALTH:
            await _respond(send, 200, {"status": "ok", "instance": self.instance})
        elif scope["type"] == "http" and is_closed(scope["path"]):
            await _respond(send, 403, {"message": "this page of the emulator is closed; use AWS calls"})
        elif scope["type"] == "http":
            await self.application(with_secure_transport(self._routed(scope)), receive, send)
        elif scope["type"] == "websocket":
            handshake = with_refusal_status(with_subprotocol(send))
            await self.application(self._routed(scope), receive, handshake)
        else:
            await self.application(scope, receive, send)

    def _routed(self, scope: Scope) -> Scope:
        target = self.routes.target(scope["path"])
        if target is None:
            return scope
        raw = self.routes.target(scope["raw_path"].decode("latin-1")) or target
        return {**scope, "path": target, "raw_path": raw.encode("latin-1"), "method": _routable_method(scope)}


def _routable_method(scope: Scope) -> str | None:
    """Return the method in a form that reaches a route.

    MiniStack responds to OPTIONS itself. API Gateway does so only for an API with a CORS configuration, which ours
    does not have, and otherwise calls the route.
    """
    method: str | None = scope.get("method")  # a WebSocket has none
    return "options" if method == "OPTIONS" else method


def is_closed(path: str) -> bool:
    """Return whether this is one of the emulator's own pages that work without a signature and are closed."""
    return path.startswith(CLOSED_PAGES) and not path.startswith(OPEN_PAGES)


def with_secure_transport(scope: Scope) -> Scope:
    """Mark a request as received over TLS.

    Policies deny plain HTTP (`aws:SecureTransport`). Loopback has no TLS, and its traffic cannot be intercepted.
    The header that a load balancer would add lets the policies be tested unchanged.
    """
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    if any(name.lower() == b"x-forwarded-proto" for name, _ in headers):
        return scope
    return {**scope, "headers": [*headers, (b"x-forwarded-proto", b"https")]}


async def _respond(send: Send, status: int, body: dict[str, str]) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
