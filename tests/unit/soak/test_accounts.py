"""The accounts of the soak: each kind of trouble is counted, in whatever stream and at whatever receiver."""

from typing import Any

import pytest

from tests.soak.accounts import LATE_SECONDS, Account, Arrival, Outage, Stamp, account

SENT = {Stamp(stream, number): 100.0 for stream in ("a", "b") for number in range(3)}


def arrivals(*stamps: tuple[str, int], receiver: str = "r", at: float = 101.0) -> list[Arrival]:
    return [Arrival(Stamp(*stamp), receiver, at) for stamp in stamps]


EVERYTHING = [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("b", 2), ("a", 2)]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(arrivals(*EVERYTHING), {}, id="everything in the order of each stream"),
        pytest.param(arrivals(*EVERYTHING[:-1]), {"received": 5, "lost": 1}, id="lost"),
        pytest.param(arrivals(*EVERYTHING, ("a", 0)), {"repeated": 1}, id="repeated"),
        pytest.param([*arrivals(*EVERYTHING), Arrival(Stamp("a", 0), "r", 9, is_again=True)], {}, id="received again"),
        pytest.param(arrivals(*EVERYTHING[::-1]), {"out_of_order": 4}, id="out of order"),
        pytest.param(
            [*arrivals(*EVERYTHING[1:]), *arrivals(("a", 0), receiver="s")], {}, id="earlier at another receiver"
        ),
        pytest.param(
            [*arrivals(*EVERYTHING[:-1]), *arrivals(("a", 2), at=101 + LATE_SECONDS)],
            {"late": {"": 1}, "slowest_seconds": LATE_SECONDS + 1, "newest": 101 + LATE_SECONDS},
            id="late",
        ),
    ],
)
def test_what_becomes_of_messages_is_counted(found: list[Arrival], expected: dict[str, Any]):
    counted = account("k", SENT, found, is_ordered=True)

    figures = {"sent": 6, "received": 6, "slowest_seconds": 1.0, "newest": 101.0, **expected}
    assert counted == Account("k", is_ordered=True, **figures, examples=counted.examples)
    assert bool(counted.examples) == (not counted.is_kept)


@pytest.mark.parametrize(
    ("begin", "end", "late"),
    [
        pytest.param(90.0, 400.0, {}, id="sent during the outage"),
        pytest.param(300.0, 400.0, {}, id="sent before it"),
        pytest.param(90.0, 379.0, {"sqs": 6}, id="too long after its end"),
        pytest.param(10.0, 99.0, {"": 6}, id="sent after it"),
        pytest.param(501.0, 600.0, {"": 6}, id="arrived before it"),
    ],
)
def test_a_message_is_late_two_minutes_after_the_last_outage_on_its_way(begin: float, end: float, late: dict[str, int]):
    found = arrivals(*EVERYTHING, at=500.0)

    counted = account("k", SENT, found, is_ordered=True, outages=[Outage("sqs", begin, end)])

    assert counted.late == late


def test_dead_letters_are_not_lost():
    counted = account("k", SENT, arrivals(*EVERYTHING[2:]), is_ordered=True, dead=[Stamp("a", 0), Stamp("a", 1)])

    assert (counted.received, counted.dead, counted.lost) == (4, 1, 1)


def test_a_message_that_nobody_sent_is_not_received():
    assert account("k", SENT, arrivals(*EVERYTHING, ("a", 7)), is_ordered=True).received == len(SENT)


def test_a_standard_queue_promises_no_order():
    counted = account("k", SENT, arrivals(*EVERYTHING[::-1]), is_ordered=False)

    assert (counted.out_of_order, counted.is_kept) == (0, True)


@pytest.mark.parametrize("trouble", [{"lost": 1}, {"dead": 1}, {"out_of_order": 1}])
def test_a_loss_a_dead_letter_and_a_wrong_order_break_the_promise(trouble: dict[str, int]):
    assert not Account("k", is_ordered=True, **trouble).is_kept


def test_accounts_add_up():
    one = Account("k", is_ordered=True, sent=2, received=1, lost=1, slowest_seconds=3.0, examples=("x",))

    assert one.plus(one) == Account(
        "k", is_ordered=True, sent=4, received=2, lost=2, slowest_seconds=3.0, examples=("x", "x")
    )
