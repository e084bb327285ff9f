"""What each user and all together may read of the logs in a function instance."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

import pytest

from signalbox.live.log.read_limits import (
    CREDIT,
    MAXIMUM_OF_REQUEST,
    PER_SECOND,
    POST,
    SMALL,
    InstanceReads,
    ReadBudget,
    ReadsBusy,
)


@dataclass
class Instance:
    moment: float = 0.0
    is_late: bool = False
    reads: InstanceReads = field(init=False)

    def __post_init__(self) -> None:
        self.reads = InstanceReads(lambda: self.moment, nullcontext())

    @contextmanager
    def request(self, reader: str, cost: int = SMALL + 1) -> Iterator[ReadBudget]:
        self.moment += 1
        with self.reads.request(reader, lambda: self.is_late) as budget:
            budget.spend(cost)
            yield budget

    def is_admitted(self, reader: str, cost: int = SMALL + 1) -> bool:
        try:
            with self.request(reader, cost):
                return True
        except ReadsBusy:
            return False


@pytest.fixture
def instance() -> Instance:
    return Instance()


@pytest.mark.parametrize(("cost", "posts"), [(SMALL, 0), (0, SMALL // POST)], ids=["reads", "posts"])
def test_small_requests_without_end_of_one_user_have_a_share_and_leave_the_rest_to_others(
    instance: Instance, cost: int, posts: int
) -> None:
    """Nothing is lost of the share, and reads of others are never refused."""
    admitted = 0
    for tenth in range(1_000):
        instance.moment = tenth / 10 - 1
        try:
            with instance.request("alice", cost) as budget:
                budget.posts = posts
                admitted += 1
        except ReadsBusy:
            pass
        assert instance.is_admitted(f"user-{tenth % 100}", SMALL)

    share = CREDIT + 100 * PER_SECOND
    assert share - SMALL <= admitted * SMALL <= share + SMALL


def test_a_user_with_a_large_request_waits_until_it_is_paid(instance: Instance) -> None:
    assert instance.is_admitted("alice", MAXIMUM_OF_REQUEST)
    ended = instance.moment

    while not instance.is_admitted("alice"):
        pass

    assert instance.moment - ended == (MAXIMUM_OF_REQUEST - CREDIT) / PER_SECOND


def test_what_is_read_in_vain_is_spent(instance: Instance) -> None:
    with instance.request("bob", MAXIMUM_OF_REQUEST):
        for _ in range(2 * CREDIT // SMALL):
            instance.moment = 0
            assert not instance.is_admitted("alice")

        assert not instance.is_admitted("alice", 0)


def test_nothing_begins_when_the_invocation_is_late(instance: Instance) -> None:
    instance.is_late = True

    assert not instance.is_admitted("alice", 0)


def test_a_large_request_that_grows_beyond_the_room_of_the_others_is_refused(instance: Instance) -> None:
    large = instance.request("alice", MAXIMUM_OF_REQUEST - SMALL - 1)
    with large, instance.request("bob") as grown, pytest.raises(ReadsBusy):
        grown.spend(1)


def test_a_user_who_waits_goes_before_one_who_has_had_a_turn(instance: Instance) -> None:
    with instance.request("alice", MAXIMUM_OF_REQUEST):
        assert not instance.is_admitted("bob")

    assert [instance.is_admitted(one) for one in ("alice", "bob")] == [False, True]
