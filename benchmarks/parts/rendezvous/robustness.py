"""The benchmark of failures: silent proxies, and offers that are delivered twice."""

import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from benchmarks.parts.rendezvous.clients import Clients, Exchange
from benchmarks.parts.rendezvous.proxies import ProxyPool, polling
from benchmarks.shared.sides import SIGNALBOX, Side
from signalbox.clients.rendezvous.client import new_client_id
from signalbox.clients.rendezvous.simulator import sample_offer
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body

DUPLICATED = 8
# A cold start of the function `answer` can take so long that the offer goes to a second proxy.
WARM_UPS = 3
QUIET_SECONDS = 3.0
LONGEST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Robustness:
    """The results of one broker; None if not measured."""

    only_silent: Exchange | None
    """The proxy receives the offer and never answers."""
    silent_then_good: Exchange | None
    """A silent proxy receives the offer, and a normal proxy polls afterwards."""
    proxies_for_duplicates: int
    """The number of proxies that received `DUPLICATED` offers, each of which was sent twice."""


def measure(
    sides: Sequence[Side], clients: Clients, *, slow: bool, say: Callable[[str], None]
) -> dict[str, Robustness]:
    """Measure all sides; upstream's two cases with a silent proxy take two minutes each and require `slow`."""
    return {side.name: _measure(side, clients, slow=slow or side.name == SIGNALBOX, say=say) for side in sides}


def _measure(side: Side, clients: Clients, *, slow: bool, say: Callable[[str], None]) -> Robustness:
    say(f"duplicates: {side.name}")
    duplicates = _proxies_for_duplicates(side, clients)
    if not slow:
        return Robustness(None, None, duplicates)
    say(f"a silent proxy: {side.name}")
    only_silent = _with_silence(side, clients, then_good=False)
    say(f"a silent proxy, then a good one: {side.name}")
    return Robustness(only_silent, _with_silence(side, clients, then_good=True), duplicates)


def _with_silence(side: Side, clients: Clients, *, then_good: bool) -> Exchange:
    """Send one offer to a silent proxy; if `then_good`, a normal proxy polls as soon as the offer is claimed."""
    with ThreadPoolExecutor(1) as thread, polling(side.broker_url, 1, is_silent=True) as silent:
        exchange = thread.submit(clients, side, 1, 1)
        _await(lambda: silent.matches > 0)
        silent.stopping.set()
        if then_good:
            with polling(side.broker_url, 1):
                return exchange.result()[0]
        return exchange.result()[0]


def _proxies_for_duplicates(side: Side, clients: Clients) -> int:
    sqs = side.session().client("sqs")
    with polling(side.broker_url, 3 * DUPLICATED) as pool:
        for _ in range(WARM_UPS):
            pool.settle()
            clients(side, DUPLICATED, DUPLICATED)
        pool.settle()
        before = _matches_when_quiet(pool)
        for _ in range(DUPLICATED):
            _send_twice(sqs, side.queue_url)
        _await(lambda: pool.matches >= before + DUPLICATED)
        return _matches_when_quiet(pool) - before


def _send_twice(sqs: Any, queue_url: str) -> None:  # noqa: ANN401 - a boto3 client
    client_id = {"DataType": "String", "StringValue": new_client_id()}
    body = offer_body(sample_offer(secrets.token_hex(8)), Nat.UNRESTRICTED)
    for _ in range(2):
        sqs.send_message(QueueUrl=queue_url, MessageBody=body, MessageAttributes={"ClientID": client_id})


def _matches_when_quiet(pool: ProxyPool) -> int:
    seen = -1
    while pool.matches != seen:
        seen = pool.matches
        time.sleep(QUIET_SECONDS)
    return seen


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONGEST_SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
