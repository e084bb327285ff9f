"""What a publisher may publish in some seconds."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.exchange.routing.limits import KNOWN_SHARES, PERIOD_SECONDS, Allowance, Share
from signalbox.live.model.state import ConnectionId, opened
from signalbox.live.router.write_limits import LEAST_IN_GROUP, kilobytes_of, shares_of
from signalbox.live.wamp.authentication import AuthMethod, Identity
from tests.fakes.allowances import MemoryAllowanceCounter

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
MALLORY = Share("mallory")
SECONDS = PERIOD_SECONDS


@pytest.fixture
def counter() -> MemoryAllowanceCounter:
    return MemoryAllowanceCounter()


def taken(instances: Sequence[Allowance], number: int, size: int, share: Share = MALLORY, **kind: bool) -> int:
    """Publish a number of messages of a size, each at the next instance; return how many were taken."""
    kilobytes = kilobytes_of(size, is_retained=kind.get("is_retained", False))
    return sum(instances[place % len(instances)].admits([share], kilobytes, at=NOW) for place in range(number))


def test_a_publisher_writes_1500_kb_a_second_at_all_instances_together(counter: MemoryAllowanceCounter) -> None:
    instances = [counter.instance() for _ in range(200)]

    assert taken(instances, 4_000, 120_000) * 120_000 / SECONDS == pytest.approx(1_500 * 1_024, rel=0.02)


def test_small_events_at_some_instances_are_little_more(counter: MemoryAllowanceCounter) -> None:
    assert taken([counter.instance() for _ in range(20)], 40_000, 100) == pytest.approx(1_500 * SECONDS, rel=0.07)
    assert counter.calls <= 320


def test_retained_events_of_a_publisher_take_a_quarter_of_their_partition(counter: MemoryAllowanceCounter) -> None:
    retained = taken([counter.instance()], 1_000, 120_000, is_retained=True)

    # One write unit for each KB: such events are written without a transaction.
    assert retained * 120_000 / 1_024 / SECONDS == pytest.approx(234, rel=0.06)


def test_a_publisher_sends_100_events_a_second_to_a_message_group(counter: MemoryAllowanceCounter) -> None:
    group = Share("mallory#x.fifo#exchange", least=LEAST_IN_GROUP)

    assert taken([counter.instance() for _ in range(10)], 3_000, 100, group) == pytest.approx(100 * SECONDS, rel=0.05)


def test_a_publisher_sends_half_of_what_a_realm_routes_by_all_of_its_sessions(counter: MemoryAllowanceCounter) -> None:
    session = replace(opened(ConnectionId("c"), now=NOW), identity=Identity("mallory", "source", AuthMethod.TICKET))
    instance = counter.instance()

    taken = [instance.admits(shares_of(session, f"c{number % 20}"), 1, at=NOW) for number in range(15_000)]

    assert sum(taken) == pytest.approx(750 * SECONDS, abs=30)


def test_others_go_on_and_the_publisher_with_the_next_period(counter: MemoryAllowanceCounter) -> None:
    instance = counter.instance()
    taken([instance], 200, 120_000)

    assert [instance.admits([Share(name)], 1, at=NOW) for name in ("mallory", "alice")] == [False, True]
    assert instance.admits([MALLORY], 1, at=NOW + timedelta(seconds=SECONDS))


def test_all_shares_must_have_room(counter: MemoryAllowanceCounter) -> None:
    instance, small = counter.instance(), Share("network", 1 / 150)

    assert [instance.admits([small, MALLORY], 60, at=NOW) for _ in range(3)] == [True, False, False]
    assert counter.amounts["mallory", int(NOW.timestamp()) // SECONDS] == 60


def test_what_is_refused_is_refused_again_and_what_was_counted_is_not_counted_twice(
    counter: MemoryAllowanceCounter,
) -> None:
    """A message is received again if its function was killed, maybe by an instance that knows nothing of it."""
    assert counter.instance().admits([MALLORY], 9_000, at=NOW)
    assert counter.instance().admits([MALLORY], 0, at=NOW)

    assert not counter.instance().admits([MALLORY], 9_000, at=NOW)
    assert not counter.instance().admits([MALLORY], 0, at=NOW)


def test_what_an_instance_has_not_counted_is_counted_with_what_is_refused(counter: MemoryAllowanceCounter) -> None:
    first, second = counter.instance(), counter.instance()
    assert taken([first], 49, 100) == 49
    assert second.admits([MALLORY], 14_960, at=NOW)

    assert not first.admits([MALLORY], 1, at=NOW)

    assert sum(counter.amounts.values()) == 15_010


def test_a_refused_publisher_costs_one_write_of_each_instance_in_a_period(counter: MemoryAllowanceCounter) -> None:
    instance = counter.instance()
    taken([instance], 200, 120_000)
    calls = counter.calls

    assert (taken([instance], 100, 120_000), counter.calls) == (0, calls)


def test_an_instance_knows_a_bounded_number_of_shares(counter: MemoryAllowanceCounter) -> None:
    instance = counter.instance()

    for number in range(KNOWN_SHARES + 10):
        instance.admits([Share(f"user{number}")], 1, at=NOW)

    assert len(instance._uncounted) <= KNOWN_SHARES
