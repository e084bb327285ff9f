"""The load of the exchange: a standard and an ordered exchange, each with a queue that gets everything."""

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.consumer import Consumer
from signalbox.exchange.model.records import ResourceKind, ResourceRef
from signalbox.queues import is_fifo
from tests.soak.accounts import Account, Arrival, DeadLetter, Outage, Stamp, account
from tests.soak.loads import PASSING, Sent, insistently, publish

# A key is a message group: a killed function blocks only the groups of its batch for a visibility timeout.
KEYS, CHUNK, PREFETCH = 400, 100, 100
# The emulator scans a whole queue for each batch, so publishers wait while the router is this far behind.
BACKLOG = 400


@dataclass(slots=True)
class ExchangeLoad:
    """Publishers and consumers of two exchanges."""

    deployment: Deployment
    name: str = "exchange"
    mark: str = field(default_factory=lambda: secrets.token_hex(4))
    sent: dict[str, Sent] = field(default_factory=dict)
    arrivals: dict[str, list[Arrival]] = field(default_factory=dict)
    _over: threading.Event = field(default_factory=threading.Event)
    _consumers: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Declare the exchanges and queues, and begin to consume."""
        for ending in ("", ".fifo"):
            exchange, queue = f"xs_soak{self.mark}{ending}", f"q_soak{self.mark}{ending}"
            insistently(lambda exchange=exchange, queue=queue: self._declare(exchange, queue))  # type: ignore[misc]
            self.sent[exchange], self.arrivals[exchange] = Sent(), []
            thread = threading.Thread(target=self._consume, args=(queue, self.arrivals[exchange]), daemon=True)
            thread.start()
            self._consumers.append(thread)

    def run(self, until: Callable[[], bool], is_ahead: Callable[[], bool]) -> None:
        """Publish to both exchanges, each with one publisher, whose order counts."""
        with ThreadPoolExecutor(len(self.sent)) as threads:
            list(threads.map(lambda exchange: self._publish(exchange, until, is_ahead), self.sent))

    def sent_count(self) -> int:
        """Return the number of published messages."""
        return sum(map(len, self.sent.values()))

    def progress(self) -> tuple[int, int]:
        """Return the number of published messages, and of arrivals."""
        return self.sent_count(), sum(map(len, self.arrivals.values()))

    def is_complete(self) -> bool:
        """Return whether every message that was sent has arrived."""
        return all(
            self.sent[name].times.keys() <= {one.stamp for one in list(self.arrivals[name])} for name in self.sent
        )

    def close(self) -> None:
        """Stop consuming."""
        self._over.set()
        for thread in self._consumers:
            thread.join()

    def counts(self) -> Mapping[str, int]:
        """Return nothing: all is in the accounts."""
        return {}

    def accounts(self, letters: Sequence[DeadLetter], outages: Sequence[Outage]) -> Sequence[Account]:
        """Return an account for each exchange."""
        return [
            account(
                f"exchange, {'ordered' if is_fifo(name) else 'standard'}",
                self.sent[name].times,
                self.arrivals[name],
                is_ordered=is_fifo(name),
                dead=[_stamp(one) for one in letters if self._exchange_of(one) == name],
                outages=outages,
            )
            for name in self.sent
        ]

    def _exchange_of(self, letter: DeadLetter) -> str | None:
        """Return the exchange of a dead letter, which is in the queue of the exchange, of its queue or of the stage."""
        ours = f"soak{self.mark}"
        if ours not in f"{letter.queue} {letter.attributes}":
            return None
        return f"xs_{ours}{'.fifo' if is_fifo(letter.queue) else ''}"

    def _declare(self, exchange: str, queue: str) -> None:
        client = client_of(self.deployment)
        client.declare_exchange(exchange)
        client.declare_queue(queue)
        client.bind(exchange, queue, "soak.#")

    def _publish(self, exchange: str, until: Callable[[], bool], is_ahead: Callable[[], bool]) -> None:
        client, sent, number = client_of(self.deployment), self.sent[exchange], 0
        while not until():
            if is_ahead() or len(sent) - len(self.arrivals[exchange]) > BACKLOG:
                time.sleep(0.2)
                continue
            stamps = [_stamp_of(one) for one in range(number, number + CHUNK)]
            publish(client, exchange, stamps, sent, mark=self.mark)
            number += CHUNK

    def _consume(self, queue: str, arrivals: list[Arrival]) -> None:
        client = client_of(self.deployment)
        url = client.url_prefix + client.names.queue(queue)  # type: ignore[arg-type]  # a queue's name
        consumer = Consumer(client.sqs, ResourceRef(ResourceKind.QUEUE, queue), url, prefetch=PREFETCH)
        while not self._over.is_set():
            with suppress(*PASSING):
                taken = consumer.receive(wait_seconds=1)
                at = time.time()
                arrivals += [
                    Arrival(Stamp(one.delivered.key, int(one.delivered.body)), queue, at, one.times_received > 1)
                    for one in taken
                ]
                consumer.ack(*taken)


def _stamp_of(number: int) -> Stamp:
    return Stamp(f"soak.{number % KEYS}", number)


def _stamp(letter: DeadLetter) -> Stamp:
    return _stamp_of(int(letter.body))
