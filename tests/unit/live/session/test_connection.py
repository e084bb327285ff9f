"""The rules for accepting a connection."""

import pytest

from signalbox.live.session.connection import Refusal, arvados_token, chosen_subprotocol, protocol_refusal

NAME = "Sec-WebSocket-Protocol"


@pytest.mark.parametrize(
    "headers",
    [
        {NAME: "wamp.2.json"},
        {NAME: "wamp.2.json,wamp.2.msgpack"},
        {NAME: "wamp.2.cbor, wamp.2.json"},
        {NAME.lower(): " wamp.2.json "},
        {"Host": "x", NAME.upper(): "wamp.2.json"},
    ],
)
def test_a_client_that_offers_json_is_accepted(headers: dict[str, str]) -> None:
    """autobahn-js puts a space behind the comma or not, with its age."""
    assert protocol_refusal(headers) is None
    assert chosen_subprotocol(headers) == "wamp.2.json"


@pytest.mark.parametrize("offered", ["wamp.2.json.batched", "wamp.2.json, wamp.2.json.batched,wamp.2.cbor"])
def test_a_client_that_offers_batches_receives_them(offered: str) -> None:
    assert protocol_refusal({NAME: offered}) is None
    assert chosen_subprotocol({NAME: offered}) == "wamp.2.json.batched"


@pytest.mark.parametrize("headers", [{}, {NAME: ""}, {NAME: "wamp.2.msgpack"}, {NAME: "wamp.2.cbor.batched"}])
def test_another_client_is_refused_with_the_subprotocol_to_offer(headers: dict[str, str]) -> None:
    refusal = protocol_refusal(headers)

    text = "offer the subprotocol wamp.2.json or wamp.2.json.batched: no other is supported"
    assert refusal == Refusal(400, text)
    assert chosen_subprotocol(headers) is None


@pytest.mark.parametrize("headers", [{}, {NAME: ""}, {"Host": "x"}])
def test_a_client_without_a_subprotocol_may_send_a_token(headers: dict[str, str]) -> None:
    assert arvados_token(headers, {"api_token": "v2/bob/secret"}) == "v2/bob/secret"
    assert arvados_token(headers, {"token": "v2/bob/secret"}) is None


@pytest.mark.parametrize("subprotocol", ["wamp.2.json", "wamp.2.msgpack"])
def test_a_client_that_offers_a_subprotocol_speaks_it(subprotocol: str) -> None:
    assert arvados_token({NAME: subprotocol}, {"api_token": "v2/bob/secret"}) is None
