"""The parts of the patches that need no MiniStack."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from signalbox.local.emulator.weather.dice import Dice
from signalbox.local.emulator.weather.iam_changes import IamChanges
from signalbox.local.emulator.weather.patches.cold_starts import slowly
from signalbox.local.emulator.weather.patches.connections import stormy
from signalbox.local.emulator.weather.patches.function_limits import with_limits
from signalbox.local.emulator.weather.patches.iam_delays import delayed
from signalbox.local.emulator.weather.patches.service_calls import under
from signalbox.local.emulator.weather.rules import FAULT_ODDS, GONE_ODDS
from signalbox.local.emulator.weather.sky import Lookups, Sky
from tests.local.emulator.weather.service import Clock, LoadedDice

BATCH = {"QueueUrl": "http://x/0/q", "Entries": [{"Id": str(number)} for number in range(10)]}
HEADERS = {"x-amz-target": "AmazonSQS.SendMessageBatch"}


def requests_of(seed: int, count: int, body: Mapping[str, Any], *, text: bool = False) -> list[tuple[int, bytes]]:
    """Return the bodies that a service gets under weather, with the status that each caller gets."""
    sky = Sky(
        seed, Clock(), Lookups(lambda _queue: False, lambda _table: "pk", lambda _principal: [], lambda _queue: "")
    )
    seen = []

    async def handler(*request: Any) -> tuple[int, dict[str, str], Any]:
        seen.append(request[3])
        return 200, {}, "{}" if text else b"{}"

    handle = under(sky, "sqs", handler)
    statuses = [asyncio.run(handle("POST", "/", HEADERS, json.dumps(body).encode(), {}))[0] for _ in range(count)]
    return list(zip(statuses, seen, strict=False))


def test_a_request_passes_unchanged_if_no_rule_changes_its_call():
    alone = {**BATCH, "Entries": BATCH["Entries"][:1]}

    assert {body for _, body in requests_of(1, 50, alone)} == {json.dumps(alone).encode()}


def test_the_body_of_a_request_is_that_of_the_changed_call():
    sizes = [len(json.loads(body)["Entries"]) for _, body in requests_of(1, 300, BATCH, text=True)]

    assert min(sizes) < 10 == max(sizes)


def test_the_same_seed_gives_the_same_requests_in_every_order_of_rules():
    assert requests_of(1, 300, BATCH) == requests_of(1, 300, BATCH) != requests_of(2, 300, BATCH)


@pytest.mark.parametrize(("took", "slept"), [(0.3, 0.7), (1.5, 0)])
def test_a_cold_start_takes_at_least_a_second(took, slept):
    clock, pauses, spawned = Clock(0), [], []

    def spawn(worker: object) -> None:
        clock.now += took
        spawned.append(worker)

    slowly(spawn, clock=clock, sleep=pauses.append)("worker")

    assert spawned == ["worker"]
    assert pauses == [pytest.approx(slept)]


@pytest.mark.parametrize(
    ("properties", "concurrency", "loop"),
    [({}, None, "Terminate"), ({"ReservedConcurrentExecutions": "5", "RecursiveLoop": "Allow"}, 5, "Allow")],
)
def test_a_stacks_limits_of_a_function_are_recorded(properties, concurrency, loop):
    functions: dict[str, dict[str, Any]] = {"f": {}}
    provision = with_limits(lambda *_, **__: ("f", {"Arn": "a"}), functions, properties_at=1)

    assert provision("Logical", properties, "stack", logical_id="x") == ("f", {"Arn": "a"})
    assert functions["f"] == {"concurrency": concurrency, "recursive_loop": loop}


def posts(dice: Any, count: int, method: str = "POST") -> tuple[list[int], list[str]]:
    """Return the statuses of calls of a connection, and the methods that reach MiniStack."""
    called = []

    async def handle(method: str, *_: object) -> tuple[int, dict[str, str], bytes]:
        called.append(method)
        return 200, {}, b""

    stormed = stormy(handle, dice)
    return [asyncio.run(stormed(method, "api", "live", "c", b"", {}))[0] for _ in range(count)], called


def test_a_connection_is_closed_before_the_post_that_finds_it_gone():
    statuses, called = posts(LoadedDice(misses=("faults",)), 1)

    assert (statuses, called) == ([410], ["DELETE"])


def test_other_calls_of_connections_find_them():
    assert posts(LoadedDice(misses=("faults",)), 1, "GET") == ([200], ["GET"])


def test_posts_are_throttled_and_fail_as_often_as_other_calls():
    statuses, _ = posts(Dice(1), 20 * GONE_ODDS)

    assert set(statuses) == {200, 410, 429, 500}
    assert 0.5 < statuses.count(410) / 20 < 2
    assert 0.5 < (statuses.count(429) + statuses.count(500)) / (20 * GONE_ODDS / FAULT_ODDS) < 2


def test_policies_are_those_that_count():
    class Changes(IamChanges):
        def policies(self, principal, current):
            return [principal, current]

    gather = delayed(lambda name, account: [name, account], Changes(Clock(), lambda _principal: []), "user")

    assert gather("alice", "0") == [("user", "alice"), ["alice", "0"]]
