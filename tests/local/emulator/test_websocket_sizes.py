"""WebSocket messages that are too large for API Gateway close their connection here, too."""

from collections.abc import Iterable

import pytest
from websockets.exceptions import ConnectionClosedError
from websockets.sync.client import connect

from signalbox.local.emulator.server import MAXIMUM_FRAME_BYTES, MAXIMUM_MESSAGE_BYTES
from tests.local.emulator.functions import make_function, make_websocket

pytestmark = [pytest.mark.emulator, pytest.mark.release]

ACCEPT = "def handler(event, context):\n    return {'statusCode': 200}\n"
FRAME = "x" * MAXIMUM_FRAME_BYTES
FRAMES = [FRAME] * (MAXIMUM_MESSAGE_BYTES // MAXIMUM_FRAME_BYTES)


@pytest.fixture(scope="module")
def url(running) -> str:
    session = running.session()
    return make_websocket(session, "sizes", make_function(session, "sizes", ACCEPT)).replace("http:", "ws:")


@pytest.mark.parametrize("message", [FRAME, FRAMES], ids=["a frame", "several frames"])
def test_a_message_up_to_the_limits_is_received(url: str, message: str | Iterable[str]) -> None:
    with connect(url, compression=None) as socket:
        socket.send(message)

        assert socket.ping().wait(timeout=10)


@pytest.mark.parametrize("message", [FRAME + "x", [*FRAMES, "x"]], ids=["a frame", "several frames"])
def test_a_larger_message_closes_the_connection(url: str, message: str | Iterable[str]) -> None:
    with connect(url, compression=None) as socket:
        socket.send(message)
        with pytest.raises(ConnectionClosedError) as closed:
            socket.recv(timeout=10)

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009
