"""Which connections may begin."""

from http import HTTPStatus

import pytest

from signalbox.live.session.connection import MAXIMUM_PER_SECOND, Refusal, protocol_refusal, storm_refusal

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
def test_who_offers_json_may_begin(headers: dict[str, str]) -> None:
    """autobahn-js puts a space behind the comma or not, with its age."""
    assert protocol_refusal(headers) is None


@pytest.mark.parametrize("headers", [{}, {NAME: ""}, {NAME: "wamp.2.msgpack"}, {NAME: "wamp.2.json.batched"}])
def test_who_does_not_is_told_what_to_offer(headers: dict[str, str]) -> None:
    refusal = protocol_refusal(headers)

    assert refusal == Refusal(HTTPStatus.BAD_REQUEST, "offer the subprotocol wamp.2.json: nothing else is spoken here")


def test_a_storm_is_told_to_come_back() -> None:
    refusal = storm_refusal(MAXIMUM_PER_SECOND + 1)

    assert storm_refusal(MAXIMUM_PER_SECOND) is None
    assert refusal == Refusal(HTTPStatus.TOO_MANY_REQUESTS, "too many connections at once: come back in some seconds")
