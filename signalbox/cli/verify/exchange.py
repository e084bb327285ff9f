"""The exchange: the flow of files through a topic exchange, and an ordered exchange."""

import time

from signalbox.cli.verify.trial import NamedTrial
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.consumer import ReceivedMessage
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.flows.exchange import CAPABILITY, WeatherNames, once_usable, received, route_weather
from signalbox.flows.trial import Timing, expect
from signalbox.verify.patience import RECEIVE_SECONDS

ORDERED_KEYS, PER_KEY = ("o.1", "o.2"), 10


def verify_exchange(trial: NamedTrial, client: ExchangeClient) -> None:
    """Run all steps."""
    names = trial.names
    route_weather(trial, client, WeatherNames(names.topic_exchange, names.all_queue, names.some_queue))
    with trial.journal.step(CAPABILITY, "an ordered exchange keeps the order of each key") as timing:
        _order(trial, client, timing)


def _order(trial: NamedTrial, client: ExchangeClient, timing: Timing) -> None:
    names = trial.names
    client.declare_exchange(names.ordered_exchange)
    client.declare_queue(names.ordered_queue)
    client.bind(names.ordered_exchange, names.ordered_queue, "o.*")
    requests = [PublishRequest(key, str(number)) for number in range(PER_KEY) for key in ORDERED_KEYS]
    with client.consumer(names.ordered_queue) as consumer:
        started = time.monotonic()
        sent = once_usable(trial, lambda: list(client.publish_all(names.ordered_exchange, requests)))
        expect(all(one.message_id for one in sent), "SQS did not accept all messages")
        taken: dict[str, ReceivedMessage] = {}

        def has_all() -> bool:
            found = received(consumer)
            for one in found:
                # A message whose deletion failed comes again.
                taken.setdefault(one.delivered.message_id, one)
            # A FIFO queue delivers a key's later messages after its earlier ones are deleted.
            consumer.ack(*found)
            return len(taken) >= len(requests)

        trial.wait_until(has_all, f"{names.ordered_queue} receives all messages", seconds=RECEIVE_SECONDS, pause=0)
        timing.latencies.append(time.monotonic() - started)
    for key in ORDERED_KEYS:
        of_key = [one.delivered for one in taken.values() if one.delivered.key == key]
        bodies, numbers = [int(one.body) for one in of_key], [one.sequence for one in of_key]
        expect(bodies == list(range(PER_KEY)), f"{key} arrived as {bodies}")
        expect(numbers == list(range(1, PER_KEY + 1)), f"{key} has the numbers {numbers}")
    trial.meter.note(CAPABILITY, "publication", len(requests))
    trial.meter.note(CAPABILITY, "copy", len(requests))
    trial.meter.note("history", "event", 2 * len(requests))
