"""The emulator's process: patches MiniStack and serves it behind the gateway on an inherited socket.

`lifecycle.py` starts it with the Python of the emulator's own environment.
"""

import fcntl
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TextIO

from signalbox.local.emulator.asgi import Application
from signalbox.local.emulator.gateway import Gateway
from signalbox.local.emulator.patches import patches
from signalbox.local.emulator.patches.patch import apply_all
from signalbox.local.emulator.routes import ApiPaths

# API Gateway closes a WebSocket with 1009 on a larger message, and on a larger frame of it.
# https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-execution-service-websocket-limits-table.html
MAXIMUM_MESSAGE_BYTES, MAXIMUM_FRAME_BYTES = 131_072, 32_768
FAULT_PATCHES = "tests.fault_injection.patches:fault_patches"  # a local stage always has its checkout


def main(arguments: Sequence[str]) -> None:
    """Serve until the process is killed.

    Arguments: the emulator's folder, the number of the listening socket, and optionally the number of the lifeline,
    the reading end of a pipe. Standard input has JSON: the root's `access_key_id`, `instance`, and `faults`, the seed
    of fault injection or null.
    """
    folder, socket_number, *lifelines = arguments
    root = json.load(sys.stdin)
    del os.environ["PYTHONPATH"]  # functions inherit the environment, and are not to find the checkout
    for lifeline in map(int, lifelines):
        threading.Thread(target=_end_with, args=(lifeline,), daemon=True).start()
    with Path(folder, "lock").open("a+") as lock:
        _hold(lock)
        application = _ministack(root["access_key_id"], root["faults"])
        gateway = Gateway(application, ApiPaths(Path(folder, "routes.json")), root["instance"])
        _serve(gateway, int(socket_number))


def _hold(lock: TextIO) -> None:
    """Hold the lock that shows that this emulator runs: the kernel releases it however the process ends."""
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()


def _end_with(lifeline: int) -> None:
    """Kill this process and all its workers as soon as the other end of the pipe is closed."""
    os.read(lifeline, 1)
    os.killpg(0, signal.SIGKILL)


def _ministack(root_access_key_id: str, faults: int | None) -> Application:
    apply_all(patches(root_access_key_id))
    if faults is not None:
        # Afterwards: these patches import MiniStack's services, which copy functions of the evaluator.
        apply_all(resolve_name(FAULT_PATCHES)(faults))
    from ministack.app import app  # noqa: PLC0415 - only the emulator's environment has it; imported patched

    application: Application = app
    return application


def _serve(gateway: Gateway, socket_number: int) -> None:
    # Most of the work of a call is HTTP, which uvicorn does in C: with hypercorn, MiniStack's own server, each call
    # takes half as long again.
    import uvicorn  # noqa: PLC0415 - only the emulator's environment has it

    config = uvicorn.Config(
        gateway,
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        # uvicorn passes this on to websockets, which takes a pair, too.
        ws_max_size=(MAXIMUM_MESSAGE_BYTES, MAXIMUM_FRAME_BYTES),
        ws_ping_interval=None,  # API Gateway does not ping its clients
        log_config=None,
        access_log=False,
        date_header=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=1,
    )
    # Passed as a socket and not as a file descriptor: uvicorn takes any descriptor for a Unix socket, and then leaves
    # Nagle's algorithm on, so that packets wait for others.
    uvicorn.Server(config).run(sockets=[socket.socket(fileno=socket_number)])


if __name__ == "__main__":
    main(sys.argv[1:])
