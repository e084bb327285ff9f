"""An existing Snowflake broker on loopback that answers every offer with the same status and body."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from signalbox.rendezvous.wire.reply import answer_reply
from tests.fakes.http_endpoint import Handler, serving

ANSWER = answer_reply('{"type":"answer","sdp":"v=0"}')
NO_PROXIES = '{"error":"no snowflake proxies currently available"}'
TIMED_OUT = '{"error":"timed out waiting for answer!"}'


@dataclass
class Broker:
    """A running broker; while `is_late`, it answers only after `until` is set, at the end.

    While it `drips`, the answer begins at once and continues byte by byte until then.
    """

    url: str
    status: int = 200
    body: bytes = ANSWER.encode()
    offers: list[tuple[str, bytes]] = field(default_factory=list)
    until: threading.Event = field(default_factory=threading.Event)
    is_late: bool = False
    drips: bool = False


@contextmanager
def running_broker() -> Iterator[Broker]:
    """Run a broker at a free port of loopback, with a path before its `/client`."""

    class Client(Handler):
        def respond(self) -> None:
            broker.offers.append((self.path, self.received()))
            if broker.is_late:
                broker.until.wait()
            self.send_response(broker.status)
            self.end_headers()
            while broker.drips and not broker.until.wait(0.01):
                self.wfile.write(b" ")
            self.wfile.write(broker.body)

    with serving(Client) as url:
        broker = Broker(f"{url}/broker/")
        yield broker
        broker.until.set()
