"""Calls pass the rules; connections end before a post; policies are those that count."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.fakes.clock import Seconds
from tests.fault_injection.chance import Chance
from tests.fault_injection.connections import GONE_ODDS, with_faults
from tests.fault_injection.failed_calls import FAULT_ODDS
from tests.fault_injection.iam_changes import IamChanges, delayed
from tests.fault_injection.injection import FaultInjection, through
from tests.local.emulator.fault_injection.service import FixedChance

BATCH = {"QueueUrl": "http://x/0/q", "Entries": [{"Id": str(number)} for number in range(10)]}
HEADERS = {"x-amz-target": "AmazonSQS.SendMessageBatch"}


def requests_of(seed: int, count: int, body: Mapping[str, Any], *, text: bool = False) -> list[tuple[int, bytes]]:
    """Return the bodies that a service gets with faults, with the status that each caller gets."""
    faults = FaultInjection(
        seed,
        Seconds(),
        is_encrypted=lambda _queue: False,
        policies=lambda _principal: [],
        queue_policy=lambda _queue: "",
        queue_tags=lambda _queue: None,
        outages=Path("no-such-file"),
    )
    seen = []

    async def handler(*request: Any) -> tuple[int, dict[str, str], Any]:
        seen.append(request[3])
        return 200, {}, "{}" if text else b"{}"

    handle = through(faults, "sqs", handler)
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


def posts(chance: Any, count: int, method: str = "POST") -> tuple[list[int], list[str]]:
    """Return the statuses of calls of a connection, and the methods that reach MiniStack."""
    called = []

    async def handle(method: str, *_: object) -> tuple[int, dict[str, str], bytes]:
        called.append(method)
        return 200, {}, b""

    handle_with_faults = with_faults(handle, chance)
    return [asyncio.run(handle_with_faults(method, "api", "live", "c", b"", {}))[0] for _ in range(count)], called


def test_a_connection_is_closed_before_the_post_that_finds_it_gone():
    statuses, called = posts(FixedChance(misses=("failed calls",)), 1)

    assert (statuses, called) == ([410], ["DELETE"])


def test_other_calls_of_connections_find_them():
    assert posts(FixedChance(misses=("failed calls",)), 1, "GET") == ([200], ["GET"])


def test_posts_are_throttled_and_fail_as_often_as_other_calls():
    statuses, _ = posts(Chance(1), 20 * GONE_ODDS)

    assert set(statuses) == {200, 410, 429, 500}
    assert 0.5 < statuses.count(410) / 20 < 2
    assert 0.5 < (statuses.count(429) + statuses.count(500)) / (20 * GONE_ODDS / FAULT_ODDS) < 2


def test_policies_are_those_that_count():
    class Changes(IamChanges):
        def policies(self, principal, current):
            return [principal, current]

    gather = delayed(lambda name, account: [name, account], Changes(Seconds(), lambda _principal: []), "user")

    assert gather("alice", "0") == [("user", "alice"), ["alice", "0"]]
