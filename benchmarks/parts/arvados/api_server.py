"""A stand-in for Arvados' API server, in a process of its own, with a running container that writes to its log.

It prints its URL, for each line of its standard input what it has done so far, and ends when its input is closed.
"""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from signalbox.local.files import CHECKOUT
from tests.fakes.arvados.http_server import serving
from tests.fakes.arvados.log_endpoint import ContainerLog, LogEndpoint, State, line

REQUEST, CONTAINER = "zzzzz-xvhdp-000000000000001", "zzzzz-dz642-000000000000001"
TOKEN, MARKER = "v2/zzzzz-gj3su-000000000000001/secret", "@@@@"  # in each line of stdout
FILES = ("crunch-run", "arv-mount", "node-info", "container", "hoststat", "stdout", "stderr")


class Work(NamedTuple):
    """What the API server has done, or does in a second."""

    requests: float
    sent_bytes: float
    processor_seconds: float


@contextmanager
def running() -> Iterator[tuple[str, Callable[[], Work]]]:
    """Run the stand-in; yield its URL, and a function that returns what it has done."""
    command = [sys.executable, "-m", "benchmarks.parts.arvados.api_server"]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asked, answered = process.stdin, process.stdout
        assert asked is not None
        assert answered is not None

        def work() -> Work:
            print(file=asked, flush=True)
            return Work(*json.loads(answered.readline()))

        yield answered.readline().strip(), work


def _write(log: ContainerLog) -> None:
    """Write each second to stdout and stderr, and each ten seconds to hoststat, as on a real node."""
    for second in range(3600):
        log.write("stdout.txt", line(MARKER))
        log.write("stderr.txt", line("of stderr"))
        if second % 10 == 0:
            log.write("hoststat.txt", line("of the node"))
        time.sleep(1)


if __name__ == "__main__":
    container = ContainerLog(REQUEST, CONTAINER, State.RUNNING, {f"{name}.txt": line("begun") for name in FILES})
    endpoint = LogEndpoint({TOKEN: None}, {CONTAINER: container})
    with serving(endpoint) as server:
        threading.Thread(target=_write, args=(container,), daemon=True).start()
        print(server.url, flush=True)
        for _ in sys.stdin:
            done = [endpoint.requests.total(), endpoint.bytes_sent.total(), time.process_time()]
            print(json.dumps(done), flush=True)
