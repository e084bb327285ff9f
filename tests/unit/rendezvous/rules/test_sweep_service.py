"""The sweep of client queues."""

from datetime import timedelta

import pytest

from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, Lease, QueueName, QueueUrl, StrayQueue, lease_tags
from signalbox.rendezvous.rules.sweep_service import SweepService
from tests.fakes.rendezvous import START, MemoryClock, MemoryLeases, MemoryTemporaryQueues

OURS = {STAGE_TAG: "signalbox", CAPABILITY_TAG: "rendezvous"}
OLD = START - timedelta(minutes=11)


def service() -> SweepService:
    return SweepService(MemoryLeases(), MemoryTemporaryQueues(), MemoryClock(), stage="signalbox")


def lease(name: str, *, seconds: float) -> Lease:
    due_at = START + timedelta(seconds=seconds)
    return Lease(QueueName(name), QueueUrl(f"https://queues.example/{name}"), "rendezvous", due_at)


def test_only_queues_past_their_lease_are_deleted_with_one_call_each() -> None:
    sweep = service()
    sweep.leases.put(lease("over", seconds=0))
    sweep.leases.put(lease("running", seconds=1))

    events = list(sweep.end_leases())

    assert sweep.queues.deleted == ["https://queues.example/over"]
    assert list(sweep.leases.leases) == ["running"]
    assert [(e.outcome, e.destination) for e in events] == [("deleted", "over")]


def test_leases_of_other_capabilities_are_left_alone() -> None:
    sweep = service()
    other = Lease(QueueName("q"), QueueUrl("u"), "splitting", START)
    sweep.leases.put(other)

    assert list(sweep.end_leases()) == []
    assert sweep.queues.deleted == []


@pytest.mark.parametrize(
    ("name", "tags", "modified_at", "deleted"),
    [
        pytest.param("snowflake-client-a", OURS, OLD, True, id="ours and old"),
        pytest.param("snowflake-client-a", OURS, START, False, id="too young"),
        pytest.param("snowflake-client-a", {}, OLD, False, id="no tags"),
        pytest.param("snowflake-client-a", OURS | {STAGE_TAG: "other"}, OLD, False, id="another stage"),
        pytest.param("snowflake-client-a", OURS | {CAPABILITY_TAG: "exchange"}, OLD, False, id="another capability"),
        pytest.param("my-snowflake-client-a", OURS, OLD, False, id="prefix not at the start"),
    ],
)
def test_only_orphans_of_this_stage_are_deleted(name: str, tags: dict, modified_at: object, deleted: bool) -> None:  # noqa: FBT001
    sweep = service()
    url = QueueUrl(f"https://queues.example/{name}")
    sweep.queues.queues[url] = StrayQueue(QueueName(name), url, tags, modified_at)

    events = list(sweep.delete_strays(prefix="snowflake-client-", age=timedelta(minutes=10)))

    assert (sweep.queues.deleted == [url]) is deleted
    assert (len(events) == 1) is deleted


def test_a_queue_with_a_lease_is_not_an_orphan() -> None:
    sweep = service()
    held = lease("snowflake-client-a", seconds=60)
    sweep.leases.put(held)
    sweep.queues.queues[held.queue_url] = StrayQueue(held.queue_name, held.queue_url, OURS, OLD)

    assert list(sweep.delete_strays(prefix="snowflake-client-", age=timedelta(minutes=10))) == []


def test_tags_contain_stage_capability_and_lease_end() -> None:
    assert lease_tags(stage="signalbox", capability="rendezvous", due_at=START) == {
        "signalbox:stage": "signalbox",
        "signalbox:capability": "rendezvous",
        "signalbox:expires-at": "2026-11-21T12:00:00+00:00",
    }
