"""Patch: calls of services pass the weather's rules, after their signatures and permissions were checked.

Rules that withhold entries of a batch change the body of the request, which the signature covers: the gateway in front
of MiniStack is too early for them.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original
from signalbox.local.emulator.weather.calls import Answer, Call, Request, parse_call
from signalbox.local.emulator.weather.sky import Sky

DISPATCH = "ministack.app:_dispatch_service_request"
HANDLERS = "ministack.app:SERVICE_HANDLERS"

Raw = tuple[int, Mapping[str, str], Any]
"""MiniStack's answer: status, headers and body."""
Handler = Callable[..., Awaitable[Raw]]


def under(sky: Sky, service: str, handler: Handler) -> Handler:
    """Return a handler of a service's requests that passes them through the rules."""

    async def handle(
        method: str, path: str, headers: Mapping[str, str], body: bytes, query: Mapping[str, Any]
    ) -> tuple[int, dict[str, str], bytes]:
        request = Request(method, path, headers, body, query)
        parsed = parse_call(service, request)

        async def forward(call: Call) -> Answer:
            sent = request if call is parsed else request.with_call(call)
            status, answered, content = await handler(sent.method, sent.path, sent.headers, sent.body, sent.query)
            return Answer(status, content.encode() if isinstance(content, str) else content, answered)

        answer = await sky.answer(parsed, forward)
        return answer.status, dict(answer.headers), answer.body

    return handle


def patch(sky: Sky) -> Patch:
    """Return the patch for this weather."""

    def replacements() -> Mapping[str, object]:
        handlers: Mapping[str, Handler] = original(HANDLERS)
        return {HANDLERS: {service: under(sky, service, handler) for service, handler in handlers.items()}}

    return Patch(
        sources={DISPATCH: "17e5ef6dcfa0d4e6"},
        replacements=replacements,
    )
