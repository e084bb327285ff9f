"""The exchange: a user, a topic exchange with two queues, and an ordered exchange."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from signalbox.cli.verify.trial import Timing, Trial, expect
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.errors import SignalboxError
from signalbox.exchange.control.errors import NotFound

if TYPE_CHECKING:
    from signalbox.clients.exchange.consumer import Consumer, ReceivedMessage

T = TypeVar("T")
CAPABILITY = "exchange"
# A key and its policy count after some seconds, the mapping of the user's control queue after up to a minute.
KEY_SECONDS = 180.0
USABLE_SECONDS = 30.0  # a new queue may be unknown for a second
RECEIVE_SECONDS = 150.0  # a message whose function failed comes again after its visibility timeout
ALL, SOME = "v.#", "v.*.b"
KEYS = ("v.1.a", "v.1.b", "v.2.b", "w.1.b")
ROUTED, ROUTED_TO_SOME = ("v.1.a", "v.1.b", "v.2.b"), ("v.1.b", "v.2.b")
ROUNDS = 5
ORDERED_KEYS, PER_KEY = ("o.1", "o.2"), 10


def await_key(trial: Trial, client: ExchangeClient) -> None:
    """Wait until AWS knows a user's new key and policy."""

    def is_known() -> bool:
        try:
            return bool(client.whoami())
        except SignalboxError:
            return False
        except Exception as error:
            if "InvalidClientTokenId" not in str(error) and "AccessDenied" not in str(error):
                raise
            return False

    trial.wait_until(is_known, "AWS knows the user's key", seconds=KEY_SECONDS)


def verify_exchange(trial: Trial, client: ExchangeClient) -> None:
    """Run all steps."""
    names, journal = trial.names, trial.journal
    with journal.step(CAPABILITY, "a user's new key counts"):
        await_key(trial, client)
    with journal.step(CAPABILITY, "exchange, queues and bindings are declared"):
        client.declare_exchange(names.topic_exchange)
        for queue, pattern in ((names.all_queue, ALL), (names.some_queue, SOME)):
            client.declare_queue(queue)
            client.bind(names.topic_exchange, queue, pattern)
    with journal.step(CAPABILITY, "messages are routed by topic") as timing:
        _route(trial, client, timing)
    with journal.step(CAPABILITY, "an ordered exchange keeps the order of each key") as timing:
        _order(trial, client, timing)


def _route(trial: Trial, client: ExchangeClient, timing: Timing) -> None:
    names = trial.names
    with client.consumer(names.all_queue) as everything, client.consumer(names.some_queue) as some:
        for number in range(ROUNDS):
            started = time.monotonic()
            for key in KEYS:
                publish = partial(client.publish, names.topic_exchange, key, f"{key} {number}")
                trial.published.append(_once_usable(trial, publish))
            trial.published_at.append(time.time())
            senders = _arrive(trial, everything, {f"{key} {number}" for key in ROUTED})
            timing.latencies.append(time.monotonic() - started)
            senders |= _arrive(trial, some, {f"{key} {number}" for key in ROUTED_TO_SOME})
            expect(senders == {client.user}, f"the messages are of {senders}, not of {client.user}")
    trial.meter.note(CAPABILITY, "publication", ROUNDS * len(KEYS))
    trial.meter.note(CAPABILITY, "copy", ROUNDS * (len(ROUTED) + len(ROUTED_TO_SOME)))
    trial.meter.note("history", "event", ROUNDS * len(KEYS) * 2)
    trial.has_published.set()


def _order(trial: Trial, client: ExchangeClient, timing: Timing) -> None:
    names = trial.names
    client.declare_exchange(names.ordered_exchange)
    client.declare_queue(names.ordered_queue)
    client.bind(names.ordered_exchange, names.ordered_queue, "o.*")
    requests = [PublishRequest(key, str(number)) for number in range(PER_KEY) for key in ORDERED_KEYS]
    with client.consumer(names.ordered_queue) as consumer:
        started = time.monotonic()
        sent = _once_usable(trial, lambda: list(client.publish_all(names.ordered_exchange, requests)))
        expect(all(one.message_id for one in sent), "SQS did not accept all messages")
        taken: dict[str, ReceivedMessage] = {}

        def received() -> bool:
            found = _received(consumer)
            for one in found:
                # A message whose deletion failed comes again.
                taken.setdefault(one.delivered.message_id, one)
            # A FIFO queue delivers a key's later messages after its earlier ones are deleted.
            consumer.ack(*found)
            return len(taken) >= len(requests)

        trial.wait_until(received, f"{names.ordered_queue} receives all messages", seconds=RECEIVE_SECONDS, pause=0)
        timing.latencies.append(time.monotonic() - started)
    for key in ORDERED_KEYS:
        of_key = [one.delivered for one in taken.values() if one.delivered.key == key]
        bodies, numbers = [int(one.body) for one in of_key], [one.sequence for one in of_key]
        expect(bodies == list(range(PER_KEY)), f"{key} arrived as {bodies}")
        expect(numbers == list(range(1, PER_KEY + 1)), f"{key} has the numbers {numbers}")
    trial.meter.note(CAPABILITY, "publication", len(requests))
    trial.meter.note(CAPABILITY, "copy", len(requests))
    trial.meter.note("history", "event", 2 * len(requests))


def _arrive(trial: Trial, consumer: "Consumer", bodies: set[str]) -> set[str]:
    """Receive and acknowledge messages until these bodies have arrived; return their publishers.

    Messages of earlier rounds are ignored: a standard queue may deliver a message twice. Raises `WrongResult` for a
    message that was never routed to the queue.
    """
    missing, senders = set(bodies), set[str]()

    def has_all() -> bool:
        found = _received(consumer)
        consumer.ack(*found)
        senders.update(one.delivered.publisher for one in found)
        missing.difference_update(one.delivered.body for one in found)
        wrong = {str(one.delivered.key) for one in found} - {body.split()[0] for body in bodies}
        expect(not wrong, f"{consumer.resource} received messages with the keys {sorted(wrong)}")
        return not missing

    trial.wait_until(has_all, f"{consumer.resource} receives {sorted(bodies)}", seconds=RECEIVE_SECONDS, pause=0)
    return senders


def _received(consumer: "Consumer") -> list["ReceivedMessage"]:
    try:
        return consumer.receive(wait_seconds=1)
    except NotFound:
        return []


def _once_usable(trial: Trial, publish: Callable[[], T]) -> T:
    """Publish to an exchange whose queue may not be known yet; nothing is sent to an unknown queue."""
    done: list[T] = []

    def is_published() -> bool:
        with suppress(NotFound):
            done.append(publish())
        return bool(done)

    trial.wait_until(is_published, "a new exchange takes messages", seconds=USABLE_SECONDS)
    return done[0]
