"""After function instances were killed twice a second, while starting or working, new ones start as before."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from signalbox.clients.rendezvous.simulator import BrokerUnreachableError
from signalbox.local.emulator.patches.failed_starts import NOT_STARTED
from signalbox.local.stage_folder import StageFolder
from signalbox.rendezvous.wire.nat import Nat
from tests.integration.rendezvous.peers import Parties
from tests.integration.shared.fault_injection import FaultInjector

pytestmark = [pytest.mark.emulator, pytest.mark.release]

FUNCTIONS = ("offer", "proxies")
BETWEEN_KILLS = (0.5, 0.5)
KILLING_SECONDS = 20
PROXIES = 16
CLIENTS = 6
AT_ONCE = 6  # calls of each function after the last kill: more than it has idle instances, so that some start
ATTEMPTS = 2


def test_offers_and_polls_start_right_after_the_last_kill(parties: Parties, stage_folder: StageFolder):
    """Proxies and clients continue during the attempts, since their calls would let failed starts go on."""
    parties.expect_proxies(*Nat)
    names = _function_names(parties)
    injector = FaultInjector(stage_folder, tuple(names.values()), spared_seconds=0)

    with _calls_repeated(parties):
        with injector.continuous_kills(between=BETWEEN_KILLS) as kills:
            time.sleep(KILLING_SECONDS)
        called = [names[function] for function in FUNCTIONS] * AT_ONCE
        attempts = list(parties.pool.map(lambda name: _attempts(parties, name), called))

    assert len(kills) > KILLING_SECONDS / 2
    assert max(attempts) <= ATTEMPTS, f"attempts of each call: {attempts}"


def _function_names(parties: Parties) -> dict[str, str]:
    functions = parties.deployment.session().client("lambda").list_functions()["Functions"]
    found = {one["Handler"].split(".")[-2]: one["FunctionName"] for one in functions}
    return {function: found[function] for function in FUNCTIONS}


@contextmanager
def _calls_repeated(parties: Parties) -> Iterator[None]:
    """Let proxies poll and clients send offers until the block ends."""
    stopping = threading.Event()
    threads = [parties.pool.submit(_poll_until, parties, stopping) for _ in range(PROXIES)]
    threads += [parties.pool.submit(_ask_until, parties, stopping) for _ in range(CLIENTS)]
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.result()


def _poll_until(parties: Parties, stopping: threading.Event) -> None:
    while not stopping.is_set():
        with suppress(BrokerUnreachableError):  # its function was killed; a real proxy polls again, too
            parties.proxy().serve_once()
        stopping.wait(1)


def _ask_until(parties: Parties, stopping: threading.Event) -> None:
    while not stopping.is_set():
        parties.ask(Nat.RESTRICTED)
        stopping.wait(5)  # a client's patience for its queue


def _attempts(parties: Parties, function: str) -> int:
    """Return how many invocations it takes until an instance runs one, at most one more than allowed."""
    lambda_ = parties.deployment.session().client("lambda")
    return next((attempt for attempt in range(1, ATTEMPTS + 1) if _is_started(lambda_, function)), ATTEMPTS + 1)


def _is_started(lambda_: Any, function: str) -> bool:
    """Return whether an instance ran the handler, which fails on an empty event, or on a busy machine runs too long."""
    error = json.load(lambda_.invoke(FunctionName=function, Payload="{}")["Payload"])
    has_run = error["errorType"] in ("Runtime.HandlerError", "Sandbox.Timedout")
    return has_run and not error["errorMessage"].startswith(NOT_STARTED)
