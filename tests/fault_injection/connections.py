"""Patch: calls of WebSocket connections are throttled or fail like others, and connections end before a post.

These calls do not pass MiniStack's table of services, which `injection` replaces.
"""

from collections.abc import Awaitable, Callable, Mapping

from signalbox.local.emulator.patches.patch import Patch, original
from tests.fault_injection.calls import Answer, ServiceCall, Wire
from tests.fault_injection.chance import Chance
from tests.fault_injection.errors import GONE
from tests.fault_injection.failed_calls import FailedCalls

GONE_ODDS = 200

CONNECTIONS = "ministack.services.apigateway:handle_connections_api"
WEBSOCKET = "ministack.services.apigateway:handle_websocket"

Raw = tuple[int, Mapping[str, str], bytes]
Handle = Callable[..., Awaitable[Raw]]


def with_faults(handle: Handle, chance: Chance) -> Handle:
    """Return a handler of the calls of connections that ends 1 in 200 connections before a post."""
    faults = FailedCalls(chance, lambda _queue: False)

    async def handle_with_faults(method: str, api: str, stage: str, connection: str, *others: object) -> Raw:
        call = ServiceCall("execute-api", f"{method} {stage}", {}, wire=Wire.REST_JSON)

        async def forward(_call: ServiceCall) -> Answer:
            if method == "POST" and chance.is_one_in(GONE_ODDS, "gone connections", stage):
                await handle("DELETE", api, stage, connection, *others)
                return GONE.answer(call)
            status, headers, body = await handle(method, api, stage, connection, *others)
            return Answer(status, body, headers)

        answer = await faults.answer(call, forward)
        return answer.status, dict(answer.headers), answer.body

    return handle_with_faults


def patch(chance: Chance) -> Patch:
    """Return the patch for this chance."""

    def replacements() -> Mapping[str, object]:
        return {CONNECTIONS: with_faults(original(CONNECTIONS), chance)}

    return Patch(
        sources={CONNECTIONS: "6fe56ee5b2472e1f", WEBSOCKET: "6d609b2db6a0147d"},
        replacements=replacements,
    )
