"""The turns of large requests for past events."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import pytest

from signalbox.live.log.read_limits import MAXIMUM_OF_REQUEST, REMEMBERED, SMALL, LargeReads, ReadBudget, ReadsBusy


@dataclass
class Instance:
    moment: float = 0.0
    reads: LargeReads = field(init=False)

    def __post_init__(self) -> None:
        self.reads = LargeReads(lambda: self.moment, nullcontext())

    @contextmanager
    def request(self, reader: str, cost: int = SMALL + 1) -> Iterator[ReadBudget]:
        budget = ReadBudget(self.reads, reader)
        self.moment += 1
        try:
            budget.spend(cost)
            yield budget
        finally:
            self.reads.end(budget)

    def is_admitted(self, reader: str, cost: int = SMALL + 1) -> bool:
        try:
            with self.request(reader, cost):
                return True
        except ReadsBusy:
            return False


@pytest.fixture
def instance() -> Instance:
    return Instance()


def test_one_reader_has_one_large_request_at_a_time(instance: Instance) -> None:
    with instance.request("alice") as running:
        running.spend(1)
        assert not instance.is_admitted("alice")
        assert instance.is_admitted("alice", SMALL)
        assert instance.is_admitted("bob")

    assert instance.is_admitted("alice")


def test_a_large_request_that_grows_beyond_the_room_of_the_others_is_refused(instance: Instance) -> None:
    large = instance.request("alice", MAXIMUM_OF_REQUEST - SMALL - 1)
    with large, instance.request("bob") as grown, pytest.raises(ReadsBusy):
        grown.spend(1)


def test_a_reader_who_was_refused_goes_before_those_who_have_had_a_turn_since(instance: Instance) -> None:
    with instance.request("alice", MAXIMUM_OF_REQUEST):
        assert not instance.is_admitted("bob")

    assert [instance.is_admitted(one) for one in ("alice", "carol", "bob", "alice")] == [False, True, True, True]


def test_a_reader_who_does_not_come_again_is_forgotten(instance: Instance) -> None:
    with instance.request("alice", MAXIMUM_OF_REQUEST):
        assert not instance.is_admitted("bob")
    assert not instance.is_admitted("alice")

    instance.moment += REMEMBERED

    assert instance.is_admitted("alice")
