"""The table of kills: a function is killed before or after each of its calls, and the client gets one answer."""

import http.client
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from benchmarks.shared.stage import Stage
from signalbox.clients.rendezvous.simulator import BrokerUnreachableError, new_session_id
from signalbox.local.processes import processes_naming
from signalbox.local.stage_folder import StageFolder
from signalbox.rendezvous.wire.nat import Nat
from tests.handlers.rendezvous.ledger import kind_of
from tests.integration.rendezvous.peers import PATIENCE_SECONDS, Asked, Parties
from tests.patience import Deadline, wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

FUNCTIONS = {"offer": "offer", "poll": "proxies", "answer": "proxies"}
CALLS = {
    "offer": [("CreateQueue", ""), ("Query", "pace"), ("PutItem", "offer")],
    "poll": [("Query", "offer"), ("UpdateItem", "offer")],
    "answer": [("Query", "offer"), ("UpdateItem", "offer"), ("SendMessage", ""), ("DeleteMessage", "")],
}
KILLS = [(step, call, after) for step, calls in CALLS.items() for call in calls for after in (False, True)]


@dataclass(eq=False)
class Killer(ThreadingHTTPServer):
    """A server between a function and the emulator, which kills the function at a call."""

    behind: tuple[str, int]
    instances: str
    """The beginning of the command lines of the function's processes."""
    due: tuple[tuple[str, str], bool] | None = None
    """The operation and the kind of item of the call, and whether the function is killed after it."""
    killed: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Call)

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def kill(self) -> None:
        for process in processes_naming(self.instances):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.killed.set()


class _Call(BaseHTTPRequestHandler):
    server: Killer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        call = (self.headers.get("X-Amz-Target", "").rpartition(".")[2], kind_of(json.loads(body)))
        after = self._take(call)
        if after is False:
            self.server.kill()
            return
        status, headers, answer = self._forwarded(body)
        if after:
            self.server.kill()
            return
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def _take(self, call: tuple[str, str]) -> bool | None:
        """Return whether the function is killed after this call; None if it is not killed."""
        due = self.server.due
        if due is None or due[0] != call:
            return None
        self.server.due = None
        return due[1]

    def _forwarded(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection(*self.server.behind)
        try:
            # With the header Host that the function has signed.
            connection.putrequest("POST", self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def killers(deployed: dict[str, Any], stage_folder: StageFolder) -> Iterator[dict[str, Killer]]:
    """The killer of each function, whose calls go through it until the module ends."""
    stage, behind = Stage(deployed), urlsplit(deployed["endpoint_url"])
    names = {name: stage.functions()[name] for name in set(FUNCTIONS.values())}
    found: dict[str, Killer] = {}
    for function, name in names.items():
        instances = f"{stage_folder.temporary}{os.sep}ministack-lambda-{name}-"
        found[function] = Killer((str(behind.hostname), int(behind.port or 80)), instances)
        threading.Thread(target=found[function].serve_forever, daemon=True).start()
        stage.redirect(name, found[function].endpoint_url)
    yield found
    for function, name in names.items():
        stage.redirect(name, deployed["endpoint_url"])
        found[function].shutdown()
        found[function].server_close()


@contextmanager
def killing(killer: Killer, call: tuple[str, str], *, after: bool) -> Iterator[None]:
    """Kill the function at its next call of this kind; the block ends with the kill."""
    killer.killed.clear()
    killer.due = (call, after)
    with suppress(BrokerUnreachableError):  # the killed function does not respond
        yield
    assert killer.killed.wait(PATIENCE_SECONDS), "the function did not make the call"


@pytest.mark.parametrize(
    ("step", "call", "after"),
    KILLS,
    ids=[f"{step} {'after' if after else 'before'} {' '.join(call)}" for step, call, after in KILLS],
)
def test_after_a_kill_the_client_gets_one_answer(parties: Parties, killers, step, call, after):
    parties.expect_proxies(*Nat)
    killer = killers[FUNCTIONS[step]]
    if step == "offer":
        with killing(killer, call, after=after):
            asked = parties.ask(Nat.RESTRICTED)
    else:
        asked = _parked(parties)
        if step == "answer":
            holder = parties.wait(parties.proxy(is_silent=True))
            assert holder.offer() == asked.offer
        with killing(killer, call, after=after):
            if step == "poll":
                parties.proxy().poll_once(new_session_id())
            else:
                parties.proxy().answer(holder.sid, offer=asked.offer)

    reply = parties.pool.submit(parties.reply, asked.client_id, seconds=2 * PATIENCE_SECONDS)
    _serve_until(parties, reply.done)

    assert reply.result() == asked.answer
    wait_for(lambda: parties.waiting_messages() == 0, "the offer deleted", seconds=2 * PATIENCE_SECONDS)
    assert parties.messages_for(asked.client_id) == 1


def _parked(parties: Parties) -> Asked:
    asked = parties.ask(Nat.RESTRICTED)
    wait_for(lambda: parties.record(asked.client_id), "the offer parked")
    return asked


def _serve_until(parties: Parties, is_over: Any) -> None:
    """Let one proxy after the other poll, and answer at once."""
    deadline = Deadline(2 * PATIENCE_SECONDS)
    while not (is_over() or deadline.is_over()):
        with suppress(BrokerUnreachableError):  # the function was just killed
            parties.proxy().serve_once()
