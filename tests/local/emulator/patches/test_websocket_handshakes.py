"""A WebSocket is refused with the status, or accepted with the subprotocol, that the function at `$connect` returns."""

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests.local.emulator.functions import make_function, make_websocket

pytestmark = [pytest.mark.emulator, pytest.mark.release]

RETURN_REQUESTED_STATUS = (
    "def handler(event, context):\n"
    "    return {'statusCode': int(event['queryStringParameters']['status']), 'body': 'why'}\n"
)
RETURN_SECOND_SUBPROTOCOL = (
    "def handler(event, context):\n"
    "    headers = {name.lower(): value for name, value in event['headers'].items()}\n"
    "    offered = headers['sec-websocket-protocol'].replace(' ', '').split(',')\n"
    "    return {'statusCode': 200, 'headers': {'Sec-WebSocket-Protocol': offered[1]}}\n"
)


def websocket_of(session, name, program):
    """Return the URL of a WebSocket API with a program at `$connect`."""
    return make_websocket(session, name, make_function(session, name, program)).replace("http:", "ws:")


def test_a_websocket_is_refused_with_the_status_of_its_function(running):
    """As "Set up a $connect route that requires a WebSocket subprotocol" in API Gateway's developer guide shows."""
    url = websocket_of(running.session(), "answer", RETURN_REQUESTED_STATUS)

    with connect(f"{url}?status=200"):
        pass
    with pytest.raises(InvalidStatus) as refused, connect(f"{url}?status=429"):
        pass

    assert (refused.value.response.status_code, refused.value.response.body) == (429, b"")


def test_a_websocket_is_accepted_with_the_subprotocol_of_its_function(running):
    url = websocket_of(running.session(), "choose", RETURN_SECOND_SUBPROTOCOL)

    with connect(url, subprotocols=[Subprotocol("a"), Subprotocol("b")]) as chosen:
        assert chosen.subprotocol == "b"
