"""The load of rendezvous: clients over SQS, one after the other, and simulated proxies. An offer may find no proxy."""

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from signalbox.clients.deployment import Deployment
from signalbox.clients.rendezvous.client import NoAnswer
from signalbox.clients.rendezvous.simulator import ProxySimulator, sample_offer
from signalbox.errors import SignalboxError
from signalbox.flows.rendezvous import sqs_rendezvous
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body
from tests.soak.accounts import Account, DeadLetter, Outage
from tests.soak.loads import PASSING

PROXIES, CLIENTS = 4, 2


@dataclass(slots=True)
class RendezvousLoad:
    """Clients with the limited key, and proxies; the outcomes are counted."""

    deployment: Deployment
    name: str = "rendezvous"
    outcomes: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, until: Callable[[], bool], _is_ahead: Callable[[], bool]) -> None:
        """Send offers, and answer them, until `until`."""
        with ThreadPoolExecutor(PROXIES + CLIENTS) as threads:
            running = [threads.submit(self._serve, until) for _ in range(PROXIES)]
            running += [threads.submit(self._ask, until) for _ in range(CLIENTS)]
            for one in running:
                one.result()

    def sent_count(self) -> int:
        """Return the number of offers."""
        return sum(self.outcomes.values())

    def progress(self) -> tuple[int, int]:
        """Return the number of offers, and of answers."""
        return self.sent_count(), self.outcomes["answered"]

    def is_complete(self) -> bool:
        """Return True: every client waits for its own outcome."""
        return True

    def close(self) -> None:
        """Do nothing: proxies end with `run`."""

    def counts(self) -> Mapping[str, int]:
        """Return the numbers of offers by their outcome."""
        return {f"rendezvous: {outcome}": count for outcome, count in self.outcomes.items()}

    def accounts(self, _letters: Sequence[DeadLetter], _outages: Sequence[Outage]) -> Sequence[Account]:
        """Return no account: an offer may find no proxy."""
        return ()

    def _serve(self, until: Callable[[], bool]) -> None:
        while not until():
            with suppress(SignalboxError):
                ProxySimulator(self.deployment.rendezvous_url).serve()

    def _ask(self, until: Callable[[], bool]) -> None:
        client = sqs_rendezvous(self.deployment)
        while not until():
            offer = offer_body(sample_offer(secrets.token_hex(8)), Nat.UNRESTRICTED)
            outcome = "answered"
            try:
                client.exchange(offer)
            except NoAnswer:
                outcome = "without an answer"
            except PASSING:
                outcome = "refused"
            with self._lock:
                self.outcomes[outcome] += 1
