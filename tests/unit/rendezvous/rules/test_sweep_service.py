"""The sweep of client queues."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.history.event import HistoryEvent
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG, Lease, QueueName, QueueUrl
from signalbox.rendezvous.model.states import ClientId, RendezvousMethod, RendezvousRecord
from signalbox.rendezvous.rules.sweep_service import PART, LeaseSweep, OrphanSweep, Parts, SweptPart
from tests.fakes.found_queues import MemoryFoundQueue, MemoryFoundQueues
from tests.fakes.rendezvous import START, MemoryClock, MemoryCursor, MemoryLeases, MemoryQueueLeases

OURS = {STAGE_TAG: "signalbox", CAPABILITY_TAG: "rendezvous"}
OLD = START - timedelta(minutes=11)
LATER = START + timedelta(seconds=40)


class Sweep:
    """Both sweeps, over the same queues."""

    def __init__(self) -> None:
        self.leases, self.queue_leases = MemoryLeases(), MemoryQueueLeases()
        self.queues, self.clock = MemoryFoundQueues(), MemoryClock()
        self.swept_until, self.cursor, parts = MemoryCursor(), MemoryCursor(), Parts(self.clock)
        self.ends = LeaseSweep(self.leases, self.queue_leases, self.queues, self.swept_until, parts)
        self.orphans = OrphanSweep(self.queue_leases, self.queues, self.cursor, parts, "signalbox")


def end_leases(sweep: Sweep) -> list[HistoryEvent]:
    return [event for part in sweep.ends.end_leases(until=LATER) for event in part.events]


def delete_strays(sweep: Sweep) -> list[HistoryEvent]:
    sweep.orphans.start()
    return [event for part in continued(sweep) for event in part.events]


def continued(sweep: Sweep) -> list[SweptPart]:
    return list(sweep.orphans.delete_strays(prefix="snowflake-client-", age=timedelta(minutes=10), until=LATER))


def add_stray(sweep: Sweep, name: str) -> QueueUrl:
    url = QueueUrl(f"https://queues.example/{name}")
    sweep.queues.queues[url] = MemoryFoundQueue(OURS, OLD)
    return url


def lease(name: str, *, seconds: float) -> Lease:
    due_at = START + timedelta(seconds=seconds)
    return Lease(QueueName(name), QueueUrl(f"https://queues.example/{name}"), "rendezvous", due_at)


def test_only_queues_past_their_lease_are_deleted_with_one_call_each() -> None:
    sweep = Sweep()
    sweep.leases.put(lease("over", seconds=0))
    sweep.leases.put(lease("running", seconds=1))

    events = end_leases(sweep)

    assert sweep.queues.deleted == ["https://queues.example/over"]
    assert list(sweep.leases.leases) == ["running"]
    assert [(e.outcome, e.destination) for e in events] == [("deleted", "over")]


def end_offer(sweep: Sweep, client: str, *, seconds: float) -> None:
    sent_at = START + timedelta(seconds=seconds) - sweep.queue_leases.kept_for
    sweep.queue_leases.offers.open(RendezvousRecord(ClientId(client), RendezvousMethod.SQS, sent_at, sent_at, sent_at))


def test_the_queue_of_an_ended_offer_is_deleted_once_with_one_call() -> None:
    sweep = Sweep()
    end_offer(sweep, "over", seconds=0)
    end_offer(sweep, "running", seconds=30)

    first = end_leases(sweep)
    again = end_leases(sweep)
    sweep.clock.moment = START + timedelta(seconds=30)
    later = end_leases(sweep)

    names = [[event.destination for event in events] for events in (first, again, later)]
    assert names == [["snowflake-client-over"], [], ["snowflake-client-running"]]
    assert sweep.queues.deleted == [f"https://queues.example/snowflake-client-{name}" for name in ("over", "running")]


def test_an_idle_sweep_writes_nothing() -> None:
    sweep = Sweep()
    sweep.swept_until.save = lambda position: pytest.fail("saved")

    assert end_leases(sweep) == []


def test_the_queue_of_an_ended_offer_that_cannot_be_deleted_is_tried_again() -> None:
    sweep = Sweep()
    for name in ("a", "b"):
        end_offer(sweep, name, seconds=-1)
    url = QueueUrl("https://queues.example/snowflake-client-a")
    sweep.queues.refused.add(url)

    (part,) = sweep.ends.end_leases(until=LATER)
    sweep.queues.refused.clear()
    again = end_leases(sweep)

    assert [event.destination for event in part.events] == ["snowflake-client-b"]
    assert part.failures == ("snowflake-client-a is refused",)
    assert [event.destination for event in again] == ["snowflake-client-a"]
    assert sweep.leases.leases == {}


def test_a_sweep_of_ended_offers_stops_before_its_function_does_and_is_continued() -> None:
    sweep = Sweep()
    for number in range(2 * PART):
        end_offer(sweep, f"c{number:03}", seconds=-300 + number)

    parts = sweep.ends.end_leases(until=LATER)
    next(parts)
    sweep.clock.sleep(41)
    assert list(parts) == []
    sweep.clock.moment = START

    assert len(end_leases(sweep)) == PART
    assert len(set(sweep.queues.deleted)) == len(sweep.queues.deleted) == 2 * PART


def test_leases_of_other_capabilities_are_left_alone() -> None:
    sweep = Sweep()
    other = Lease(QueueName("q"), QueueUrl("u"), "splitting", START)
    sweep.leases.put(other)

    assert end_leases(sweep) == []
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
    sweep = Sweep()
    url = QueueUrl(f"https://queues.example/{name}")
    sweep.queues.queues[url] = MemoryFoundQueue(tags, modified_at)

    events = delete_strays(sweep)

    assert (sweep.queues.deleted == [url]) is deleted
    assert (len(events) == 1) is deleted


def test_a_queue_with_a_lease_is_not_an_orphan() -> None:
    sweep = Sweep()
    add_stray(sweep, "snowflake-client-a")
    end_offer(sweep, "a", seconds=60)

    assert delete_strays(sweep) == []


def test_a_queue_that_cannot_be_deleted_does_not_hinder_the_others() -> None:
    sweep = Sweep()
    for name in ("a", "b", "c"):
        sweep.leases.put(lease(name, seconds=-1))
    sweep.queues.refused.add(QueueUrl("https://queues.example/b"))

    (part,) = sweep.ends.end_leases(until=LATER)

    assert [event.destination for event in part.events] == ["a", "c"]
    assert part.failures == ("b is refused",)
    assert list(sweep.leases.leases) == ["b"]


def test_a_sweep_stops_before_its_function_does_and_keeps_what_it_did() -> None:
    sweep = Sweep()
    for number in range(3 * PART):
        sweep.leases.put(lease(f"q{number:03}", seconds=-1))

    parts = sweep.ends.end_leases(until=LATER)
    first = next(parts)
    sweep.clock.sleep(41)

    assert list(parts) == []
    assert len(first.events) == PART
    assert list(sweep.leases.leases) == [f"q{number:03}" for number in range(PART, 3 * PART)]


def test_queues_are_deleted_side_by_side() -> None:
    sweep, at_once = Sweep(), []
    for number in range(30):
        sweep.leases.put(lease(f"q{number}", seconds=-1))

    def parallel_map(function: Callable[[object], object], values: Iterable[object]) -> list[object]:
        chosen = list(values)
        at_once.append(len(chosen))
        return list(map(function, chosen))

    list(replace(sweep.ends, parts=Parts(sweep.clock, parallel_map)).end_leases(until=LATER))

    assert at_once == [30]


def test_a_search_for_orphans_that_ran_out_of_time_continues_where_it_was() -> None:
    sweep = Sweep()
    urls = [add_stray(sweep, f"snowflake-client-{first}") for first in ("a1", "b1", "c1")]

    parts = sweep.orphans.delete_strays(prefix="snowflake-client-", age=timedelta(minutes=10), until=LATER)
    sweep.orphans.start()
    next(parts)
    sweep.clock.sleep(41)
    assert list(parts) == []
    deleted_first = list(sweep.queues.deleted)
    sweep.orphans.start()  # the next day comes before the end
    sweep.clock.moment = START
    continued(sweep)

    assert deleted_first == urls[:1]
    assert sweep.queues.deleted == urls
    assert sweep.cursor.position() is None


def test_a_search_that_runs_out_of_time_between_two_parts_begins_there_again() -> None:
    sweep = Sweep()
    urls = [add_stray(sweep, f"snowflake-client-a{number:03}") for number in range(PART + 1)]
    sweep.orphans.start()

    parts = sweep.orphans.delete_strays(prefix="snowflake-client-", age=timedelta(minutes=10), until=LATER)
    next(parts)
    sweep.clock.sleep(41)

    assert list(parts) == []
    assert sweep.queues.deleted == urls[:PART]
    sweep.clock.moment = START
    continued(sweep)
    assert sweep.queues.deleted[-1] == urls[-1]


def test_without_a_search_no_queue_is_looked_for() -> None:
    sweep = Sweep()
    add_stray(sweep, "snowflake-client-a")

    assert continued(sweep) == []
    assert sweep.queues.deleted == []


def test_a_queue_that_is_gone_meanwhile_is_no_orphan() -> None:
    sweep = Sweep()
    add_stray(sweep, "snowflake-client-a")
    sweep.queues.modified_at = lambda url: None

    assert delete_strays(sweep) == []
    assert sweep.queues.deleted == sweep.queues.asked_for_tags == []


def test_a_part_of_paced_calls_stops_before_its_function_does_and_is_repeated() -> None:
    """AWS allows few calls for tags a second; the last character of ClientIDs has no part after it."""
    sweep = Sweep()
    urls = [add_stray(sweep, f"snowflake-client-_{number}") for number in range(3)]
    tags = sweep.queues.tags

    def paced(url: QueueUrl) -> Mapping[str, str]:
        sweep.clock.sleep(21)
        return tags(url)

    sweep.queues.tags = paced
    first = delete_strays(sweep)
    sweep.clock.moment = START

    assert len(first) == 2
    assert [event for part in continued(sweep) for event in part.events]
    assert set(sweep.queues.deleted) == set(urls)


def test_the_old_queue_of_a_client_that_uses_it_again_is_not_deleted() -> None:
    sweep = Sweep()
    needed = add_stray(sweep, "snowflake-client-needed")
    stray = add_stray(sweep, "snowflake-client-not")
    end_offer(sweep, "needed", seconds=-60)
    end_offer(sweep, "needed", seconds=60)
    end_offer(sweep, "not", seconds=-60)
    sweep.leases.put(lease("snowflake-client-needed", seconds=-1))  # its deletion was refused

    deleted = [event.destination for event in end_leases(sweep)]
    delete_strays(sweep)

    assert deleted == ["snowflake-client-not"]
    assert set(sweep.queues.deleted) == {stray}
    assert not sweep.leases.leases
    assert needed in sweep.queues.queues
