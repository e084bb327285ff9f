"""The gateway in front of MiniStack, called as an ASGI server calls it."""

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from signalbox.local.emulator.gateway import Gateway
from signalbox.local.emulator.patches.websocket_handshakes import recording_response
from signalbox.local.emulator.routes import ApiPaths
from signalbox.local.files import write_json

TARGET = "/_aws/execute-api/abc/$default"


class Emulator:
    """A fake MiniStack: records the scopes of connections, and accepts WebSockets without a subprotocol."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []

    async def __call__(self, scope, receive, send):
        self.scopes.append(scope)
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})


@pytest.fixture
def emulator():
    return Emulator()


def gateway_of(application, folder):
    return Gateway(application, ApiPaths(folder / "routes.json"), "instance-1")


@pytest.fixture
def gateway(emulator, tmp_path):
    write_json(tmp_path / "routes.json", {"rendezvous": TARGET})
    return gateway_of(emulator, tmp_path)


def call(gateway, path, *, kind="http", headers=(), **more):
    """Make one connection; return the messages for the client."""
    sent, events = [], iter([f"{kind}.request", f"{kind}.disconnect"])

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": next(events)}

    scope = {"type": kind, "path": path, "raw_path": path.encode(), "headers": list(headers), **more}
    asyncio.run(gateway(scope, receive, send))
    return sent


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/rendezvous/proxy", f"{TARGET}/proxy"),
        ("/rendezvous/", f"{TARGET}/"),
        ("/rendezvous", f"{TARGET}/"),
        ("/rendezvous/amp/client/a/b", f"{TARGET}/amp/client/a/b"),
        ("/rendezvousing/proxy", "/rendezvousing/proxy"),
        ("/bucket/rendezvous/key", "/bucket/rendezvous/key"),
        ("/", "/"),
        ("/rendezvous/amp/client/a%2Fb", f"{TARGET}/amp/client/a%2Fb"),
        # These pages of the emulator are open, since stacks need them.
        *((f"/_ministack/{name}",) * 2 for name in ("health", "cfn-response/token", "eks-auth/1/r/c/secret")),
    ],
)
def test_a_path_with_a_stable_prefix_is_routed_to_its_api_and_others_are_unchanged(gateway, emulator, path, expected):
    call(gateway, unquote(path), raw_path=path.encode())

    assert emulator.scopes[0]["path"] == unquote(expected)
    assert emulator.scopes[0]["raw_path"] == expected.encode()


def test_the_routes_of_a_new_deployment_are_used_without_a_restart(gateway, emulator, tmp_path):
    call(gateway, "/rendezvous/proxy")

    write_json(tmp_path / "routes.json", {"rendezvous": "/_aws/execute-api/new/$default"})
    call(gateway, "/rendezvous/proxy")

    assert emulator.scopes[1]["path"] == "/_aws/execute-api/new/$default/proxy"


def test_before_the_first_deployment_no_path_is_routed(emulator, tmp_path):
    call(gateway_of(emulator, tmp_path), "/rendezvous/proxy")

    assert emulator.scopes[0]["path"] == "/rendezvous/proxy"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([(b"host", b"127.0.0.1")], [(b"host", b"127.0.0.1"), (b"x-forwarded-proto", b"https")]),
        ([(b"X-Forwarded-Proto", b"http")], [(b"X-Forwarded-Proto", b"http")]),
    ],
)
def test_a_request_that_names_no_protocol_is_marked_as_received_over_tls(gateway, emulator, headers, expected):
    call(gateway, "/bucket", headers=headers)

    assert emulator.scopes[0]["headers"] == expected


@pytest.mark.parametrize("path", ["/_ministack/reset", "/_ministack/config", "/_localstack/health"])
def test_administration_pages_that_need_no_signature_are_closed(gateway, emulator, path):
    response = call(gateway, path)

    assert response[0]["status"] == 403
    assert emulator.scopes == []


def test_the_health_page_has_the_id_of_the_emulator(gateway):
    start, body = call(gateway, "/_signalbox/health")

    assert start["status"] == 200
    assert json.loads(body["body"]) == {"status": "ok", "instance": "instance-1"}


def test_a_websocket_is_accepted_with_the_subprotocol_that_the_function_returned(tmp_path):
    answer = {"statusCode": 200, "headers": {"Sec-WebSocket-Protocol": "wamp.2.json"}}

    accepted, _ = call(responding(tmp_path, answer), "/live-ws", kind="websocket", subprotocols=["mqtt", "wamp.2.json"])

    assert accepted == {"type": "websocket.accept", "subprotocol": "wamp.2.json"}


@pytest.mark.parametrize("status", [400, "429"])
def test_a_websocket_is_refused_with_the_status_of_its_function(tmp_path, status):
    answer = call(responding(tmp_path, {"statusCode": status, "body": "why"}), "/live-ws", kind="websocket")

    assert answer == [
        {"type": "websocket.http.response.start", "status": int(status), "headers": []},
        {"type": "websocket.http.response.body", "body": b""},
    ]


@pytest.mark.parametrize("answer", [{"statusCode": 200}, {}, None], ids=["success", "no status", "no response"])
def test_an_accepted_websocket_is_closed_as_by_ministack(tmp_path, answer):
    accepted, closed = call(responding(tmp_path, answer, "said"), "/live-ws", kind="websocket")

    assert (accepted, closed) == ({"type": "websocket.accept"}, CLOSED)


def test_a_websocket_that_no_function_refused_is_closed_as_by_ministack(tmp_path):
    assert call(responding(tmp_path), "/live-ws", kind="websocket") == [CLOSED]


CLOSED = {"type": "websocket.close", "code": 1008}


def responding(tmp_path, *responses):
    """Return a gateway of an emulator whose function returns `responses`: at `$connect`, then for each message."""

    async def invoke(route, event_type, *, answer):
        return answer

    invoked = recording_response(invoke)

    async def websocket(scope, receive, send):
        for number, answer in enumerate(responses):
            await invoked("route", "MESSAGE" if number else "CONNECT", answer=answer)
            if number == 0 and int((answer or {}).get("statusCode", 200)) < 300:
                await send({"type": "websocket.accept"})
        await send(CLOSED)

    return gateway_of(websocket, tmp_path)


def test_other_connections_pass_unchanged(gateway, emulator):
    call(gateway, "", kind="lifespan")

    assert emulator.scopes[0]["type"] == "lifespan"


def test_the_file_of_routes_is_read_again_only_when_it_has_changed(tmp_path, monkeypatch):
    write_json(tmp_path / "routes.json", {"rendezvous": TARGET})
    routes = ApiPaths(tmp_path / "routes.json")
    routes.target("/rendezvous/proxy")

    monkeypatch.setattr(Path, "read_text", None)

    assert routes.target("/rendezvous/answer") == f"{TARGET}/answer"
