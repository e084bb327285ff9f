"""The pace of a bridge: it stays below the limit of a publisher, and no row waits for the log of a container."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from signalbox.clients.bridge.pace import RATE, PublicationPace
from signalbox.exchange.routing.limits import Share
from tests.fakes.allowances import MemoryAllowanceCounter

START = datetime(2026, 11, 21, 20, 0, 7, tzinfo=UTC)
LARGEST = 6 * 115  # KB of a retained event


@dataclass
class Clock:
    seconds: float = 0.0
    pace: PublicationPace = field(init=False)

    def __post_init__(self) -> None:
        self.pace = PublicationPace(lambda: self.seconds, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize("kilobytes", [1, 20, LARGEST])
@pytest.mark.parametrize("is_log", [False, True])
def test_a_bridge_never_publishes_what_its_realm_refuses(clock: Clock, kilobytes: int, *, is_log: bool) -> None:
    allowance, taken = MemoryAllowanceCounter().instance(), []
    while clock.seconds < 40:
        clock.pace.wait(kilobytes, is_log=is_log)
        taken.append(allowance.admits([Share("bridge")], kilobytes, at=START + timedelta(seconds=clock.seconds)))

    assert all(taken)
    assert sum(taken) * kilobytes / clock.seconds == pytest.approx(RATE, rel=0.1)


def test_a_row_does_not_wait_for_logs(clock: Clock) -> None:
    for _ in range(500):
        clock.pace.wait(20, is_log=True)
    before = clock.seconds

    clock.pace.wait(115, is_log=False)

    assert clock.seconds == before


def test_what_was_not_used_for_long_is_no_more_than_that_of_a_second(clock: Clock) -> None:
    clock.pace.wait(1, is_log=False)
    clock.sleep(3_600)

    for _ in range(10):
        clock.pace.wait(LARGEST, is_log=False)

    assert clock.seconds - 3_600 > 8 * LARGEST / RATE - 1
