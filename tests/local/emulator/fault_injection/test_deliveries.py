"""A standard queue delivers in any order and some messages twice; a FIFO queue does neither."""

import time
from typing import Any

from tests.fault_injection.chance import Chance
from tests.fault_injection.deliveries import Deliveries
from tests.local.emulator.fault_injection.service import FixedChance


def collect(queue: Any, limit: int, visibility_seconds: int) -> list[Any]:
    """Receive as MiniStack does."""
    now = time.time()
    found = [message for message in queue["messages"] if message["visible_at"] <= now][:limit]
    for message in found:
        message["receipt_handle"] = f"handle {message['id']}"
        message["visible_at"] = now + visibility_seconds
        message["receive_count"] += 1
    return found


def queue(count: int, *, is_fifo: bool = False) -> dict[str, Any]:
    messages = [
        {"id": number, "visible_at": 0.0, "receive_count": 0, "receipt_handle": None} for number in range(count)
    ]
    return {"name": "q", "is_fifo": is_fifo, "messages": messages}


def all_received(deliveries: Deliveries, source: dict[str, Any]) -> list[int]:
    received: list[int] = []
    while found := deliveries(source, 10, 30):
        received += [message["id"] for message in found]
        handles = {message["receipt_handle"] for message in found}
        source["messages"] = [one for one in source["messages"] if one["receipt_handle"] not in handles]
    return received


def test_the_same_seed_delivers_the_same():
    first, second, other = (all_received(Deliveries(Chance(seed), collect), queue(100)) for seed in (1, 1, 2))

    assert first == second != other


def test_a_message_comes_twice_at_most_and_with_the_same_count():
    source, deliveries = queue(1), Deliveries(FixedChance(), collect)

    first, second = deliveries(source, 10, 30), deliveries(source, 10, 30)

    assert [(message["id"], message["receive_count"]) for message in (*first, *second)] == [(0, 1), (0, 1)]
    assert deliveries(source, 10, 30) == []


def test_messages_that_are_sent_meanwhile_are_kept():
    source = queue(2)

    def collect_while_sending(given: Any, limit: int, seconds: int) -> list[Any]:
        source["messages"].append({"id": 2, "visible_at": 0.0, "receive_count": 0, "receipt_handle": None})
        return collect(given, limit, seconds)

    Deliveries(FixedChance(hits=False), collect_while_sending)(source, 10, 30)

    assert [message["id"] for message in source["messages"]] == [0, 1, 2]
