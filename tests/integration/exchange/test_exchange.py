"""The exchange on the deployed stage: declarations, publications, routing and consumers."""

import json
import secrets
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.consumer import ReceivedMessage
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.local.stage_folder import StageFolder
from tests.integration.rendezvous.peers import dead_letter_reasons
from tests.patience import SOON_SECONDS, Deadline, wait_for

pytestmark = pytest.mark.emulator

WORKERS = 2
# The start of a function on a busy machine, and all attempts of a message.
LATE_SECONDS = 240


@dataclass
class Desk:
    """An administrator with exchanges and queues of one test's own."""

    client: ExchangeClient
    mark: str = field(default_factory=lambda: secrets.token_hex(4))
    exchanges: list[str] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)

    def exchange(self, what: str = "", **settings: Any) -> str:
        name = f"xs_{self.mark}{what}"
        self.client.declare_exchange(name, **settings)
        self.exchanges.append(name)
        return name

    def queue(self, what: str = "", **settings: Any) -> str:
        name = f"q_{self.mark}{what}"
        self.client.declare_queue(name, **settings)
        self.queues.append(name)
        return name

    def clear(self) -> None:
        for name in self.exchanges:
            self.client.delete_exchange(name, force=True)
        for name in self.queues:
            self.client.delete_queue(name)

    def url(self, name: str) -> str:
        return f"{self.client.url_prefix}{self.client.names.queue(name)}"

    def taken(self, queue: str, count: int) -> list[ReceivedMessage]:
        """Receive the expected number of messages of a queue; fail if more arrive."""
        found: list[ReceivedMessage] = []
        with self.client.consumer(queue) as consumer:

            def all_of_them() -> bool:
                more = consumer.receive(wait_seconds=1)
                consumer.ack(*more)
                found.extend(more)
                return len(found) >= count

            wait_for(all_of_them, f"{count} messages in {queue}", seconds=LATE_SECONDS)
        assert len(found) == count
        return found

    def bodies(self, queue: str, count: int) -> list[str]:
        return [one.delivered.body for one in self.taken(queue, count)]

    def dead_letters(self, url: str, count: int) -> dict[str, str]:
        """Return the reasons of dead letters by their bodies."""
        return dead_letter_reasons(self.client.sqs, url, count, seconds=LATE_SECONDS)


@pytest.fixture
def desk(deployment: Deployment) -> Iterator[Desk]:
    client = client_of(deployment)
    desk = Desk(client)
    yield desk
    desk.clear()


def test_each_queue_gets_what_its_patterns_match_and_gets_it_once(desk: Desk):
    exchange, weather, everything = desk.exchange(), desk.queue("_weather"), desk.queue("_all")
    desk.client.bind(exchange, weather, "v03.*.weather.#")
    for pattern in ("#", "v03.#", ""):
        desk.client.bind(exchange, everything, pattern)

    keys = ["v03.can.weather", "v03.can.weather.alerts", "v03.can.traffic", "", "v03..weather"]
    posted = list(desk.client.publish_all(exchange, (PublishRequest(key, key or "the empty key") for key in keys)))

    assert all(one.message_id for one in posted)
    assert sorted(desk.bodies(weather, 3)) == ["v03..weather", "v03.can.weather", "v03.can.weather.alerts"]
    assert Counter(desk.bodies(everything, 5)) == Counter(key or "the empty key" for key in keys)


def test_a_binding_counts_for_what_is_published_after_it_and_no_more_when_it_is_gone(desk: Desk):
    exchange, queue, other = desk.exchange(), desk.queue(), desk.queue("_other")
    desk.client.bind(exchange, other, "#")
    desk.client.publish(exchange, "a", "before")
    assert desk.bodies(other, 1) == ["before"]

    desk.client.bind(exchange, queue, "a")
    desk.client.publish(exchange, "a", "bound")
    assert desk.bodies(other, 1) == ["bound"]
    desk.client.unbind(exchange, queue, "a")
    desk.client.publish(exchange, "a", "unbound")
    assert desk.bodies(other, 1) == ["unbound"]

    assert desk.bodies(queue, 1) == ["bound"]


def test_two_workers_share_a_queue_and_no_message_goes_to_both(desk: Desk, deployment: Deployment):
    exchange, queue = desk.exchange(), desk.queue(prefetch=5)
    desk.client.bind(exchange, queue, "#")
    wanted = {str(number) for number in range(60)}

    found: list[list[str]] = [[] for _ in range(WORKERS)]
    everybody = Barrier(WORKERS + 1)

    def work(mine: list[str]) -> None:
        client = client_of(deployment)
        with client.consumer(queue) as consumer:
            everybody.wait(LATE_SECONDS)
            deadline = Deadline(LATE_SECONDS)
            while sum(map(len, found)) < len(wanted) and not deadline.is_over():
                more = consumer.receive(wait_seconds=1)
                consumer.ack(*more)
                mine += [one.delivered.body for one in more]

    with ThreadPoolExecutor(WORKERS) as threads:
        working = [threads.submit(work, mine) for mine in found]
        everybody.wait(LATE_SECONDS)
        list(desk.client.publish_all(exchange, (PublishRequest("a", body) for body in sorted(wanted))))
        for one in working:
            one.result()

    assert Counter(body for mine in found for body in mine) == Counter(wanted)
    assert all(found)


def test_an_ordered_exchange_keeps_the_order_of_each_key_and_numbers_it(desk: Desk):
    exchange, fifo, standard = desk.exchange(".fifo"), desk.queue(".fifo"), desk.queue("_plain")
    for queue in (fifo, standard):
        desk.client.bind(exchange, queue, "log.#")
    posts = [PublishRequest(f"log.{number % 3}", str(number)) for number in range(30)]

    assert all(one.message_id for one in desk.client.publish_all(exchange, posts))

    ordered, numbered = ([one.delivered for one in desk.taken(queue, 30)] for queue in (fifo, standard))
    for key in ("log.0", "log.1", "log.2"):
        bodies = [post.body for post in posts if post.routing_key == key]
        assert [one.body for one in ordered if one.key == key] == bodies
        assert [one.sequence for one in ordered if one.key == key] == list(range(1, 11))
        mine = sorted((one for one in numbered if one.key == key), key=lambda one: one.sequence or 0)
        assert [one.body for one in mine] == bodies


def test_a_failing_target_does_not_block_others_and_its_copy_is_dead_lettered(desk: Desk):
    """A queue is deleted by hand in SQS."""
    exchange, gone, there = desk.exchange(), desk.queue("_gone"), desk.queue()
    for queue in (gone, there):
        desk.client.bind(exchange, queue, "#")
    desk.client.sqs.delete_queue(QueueUrl=desk.url(gone))

    desk.client.publish(exchange, "a", "hello")

    assert desk.bodies(there, 1) == ["hello"]
    assert gone in desk.dead_letters(desk.url(f"{gone}-dlq"), 1)["hello"]


def test_the_command_publishes_and_two_of_it_consume_until_they_are_interrupted(
    desk: Desk, stage_folder: StageFolder, tmp_path: Path
):
    exchange, queue = desk.exchange(), desk.queue(prefetch=3)
    desk.client.bind(exchange, queue, "#")
    (tmp_path / ".signalbox").symlink_to(stage_folder.path)
    program = [sys.executable, "-c", "from signalbox.cli.main import main; main()"]

    def start(*arguments: str, **more: Any) -> "subprocess.Popen[str]":
        return subprocess.Popen([*program, *arguments], cwd=tmp_path, text=True, **more)  # noqa: S603 - our own words

    outputs = [tmp_path / f"worker-{number}" for number in range(WORKERS)]
    workers = [start("consume", queue, "--json", stdout=output.open("w")) for output in outputs]
    wait_for(lambda: _consumed(desk, queue), "a consumer", every=0.5, seconds=LATE_SECONDS)
    publisher = start("publish", exchange, "a", "--lines", stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    publisher.communicate("".join(f"{number}\n" for number in range(20)))
    wait_for(lambda: len(_lines(outputs)) >= 20, "all messages", every=0.2, seconds=LATE_SECONDS)
    for worker in workers:
        worker.send_signal(signal.SIGTERM)

    assert publisher.returncode == 0
    assert [worker.wait(SOON_SECONDS) for worker in workers] == [0] * WORKERS
    assert Counter(json.loads(line)["body"] for line in _lines(outputs)) == Counter(map(str, range(20)))


def _consumed(desk: Desk, queue: str) -> bool:
    return any(one["queue"] == queue and one["consumed_at"] for one in desk.client.queues())


def _lines(outputs: list[Path]) -> list[str]:
    return [line for output in outputs for line in output.read_text().splitlines()]
