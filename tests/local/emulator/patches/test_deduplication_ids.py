"""The deduplication ids of a FIFO queue are removed when they expire, and not copied."""

import time

from signalbox.local.emulator.patches.deduplication_ids import prune


def test_expired_ids_are_removed():
    now = time.time()
    queue = {"dedup_cache": {"a": {"expire": now - 2}, "b": {"expire": now - 1}, "c": {"expire": now + 60}}}

    prune(queue)

    assert list(queue["dedup_cache"]) == ["c"]


def test_the_others_are_not_copied():
    known = {str(number): {"expire": time.time() + 60} for number in range(10)}
    queue = {"dedup_cache": known}

    prune(queue)

    assert queue["dedup_cache"] is known
    assert len(known) == 10
