"""The order of rows: gaps wait for the transactions that may fill them, and for no longer."""

from datetime import timedelta

from signalbox.live.bridge.row_order import MAXIMUM_LATE_RANGES, RowOrder
from signalbox.live.bridge.rows import IdRange
from tests.fakes.bridge import NOON

PATIENCE = timedelta(seconds=30)
LATER = NOON + PATIENCE


def order(position: int = 0, late: tuple[IdRange, ...] = ()) -> RowOrder:
    return RowOrder(position, late, patience=PATIENCE)


def test_rows_without_a_gap_are_ready_at_once():
    rows = order(position=4)

    assert rows.ready([5, 6], (), NOON) == [5, 6]
    assert not rows.is_waiting


def test_nothing_is_ready_without_rows():
    assert order().ready([], (), NOON) == []


def test_a_row_behind_a_gap_waits_for_the_transactions_that_write_now():
    rows = order()

    assert rows.ready([1, 3], (), NOON) == [1]
    rows.note_writers({"2/7"})
    rows.published(1)
    assert rows.ready([3], (), NOON) == []
    assert rows.is_waiting


def test_a_row_that_fills_the_gap_is_ready_in_its_order():
    rows = order()
    rows.ready([1, 3], (), NOON)
    rows.note_writers({"2/7"})

    assert rows.ready([1, 2, 3], (), NOON) == [1, 2, 3]


def test_a_gap_ends_when_its_transactions_have_ended_and_a_later_read_does_not_show_it():
    rows = order()
    rows.ready([1, 3], (), NOON)
    rows.note_writers({"2/7", "3/1"})
    rows.ready([1, 3], (), NOON)
    rows.note_writers({"3/1", "9/9"})
    assert rows.ready([1, 3], (), NOON) == [1]
    rows.note_writers({"9/9"})

    assert rows.ready([1, 3], (), NOON) == [1, 3]
    assert not rows.is_waiting


def test_a_row_right_behind_an_ended_gap_is_ready():
    rows = order()
    rows.ready([3], (), NOON)
    rows.note_writers(set())

    assert rows.ready([3, 4, 6], (), NOON) == [3, 4]


def test_ids_of_a_transaction_that_takes_too_long_become_late():
    rows = order()
    rows.ready([1, 5], (), NOON)
    rows.note_writers({"2/7"})

    assert rows.ready([1, 3, 5], (), LATER) == [1, 3, 5]
    assert rows.late == (IdRange(2, 2), IdRange(4, 4))
    assert rows.is_waiting


def test_a_late_row_is_ready_when_it_is_visible():
    rows = order()
    rows.ready([2], (), NOON)
    rows.note_writers({"2/7"})
    rows.ready([2], (), LATER)
    rows.published(2)

    assert rows.ready([3], [1], LATER) == [1, 3]
    rows.published(1)
    assert rows.late == ()


def test_late_ids_that_were_rolled_back_are_forgotten():
    rows = order(position=5, late=(IdRange(1, 3),))
    rows.note_writers(set())

    assert rows.ready([], [2], NOON) == [2]
    assert rows.late == (IdRange(2, 2),)
    rows.published(2)
    assert not rows.is_waiting


def test_late_ids_wait_for_the_transactions_that_write_after_a_restart():
    rows = order(position=5, late=(IdRange(1, 1),))
    rows.note_writers({"2/7"})
    rows.ready([], [], NOON)
    rows.note_writers({"2/7"})

    assert rows.late == (IdRange(1, 1),)


def test_late_ids_behind_the_position_of_a_checkpoint_are_gaps_again():
    rows = order(position=5, late=(IdRange(4, 7), IdRange(9, 9)))

    assert rows.late == (IdRange(4, 5),)
    assert order(position=5, late=(IdRange(9, 9),)).late == ()


def test_a_late_row_behind_the_position_is_ready_once():
    rows = order()
    rows.ready([1, 3], (), NOON)
    rows.note_writers({"2/7"})
    rows.ready([1, 3], (), LATER)

    assert rows.ready([1, 2, 3], [2], LATER) == [1, 2, 3]


def test_the_same_id_is_late_once():
    rows = order()
    rows.ready([1, 3], (), NOON)
    rows.note_writers({"2/7"})
    rows.ready([1, 3, 5], (), LATER)
    rows.ready([1, 3, 5], (), LATER)
    rows.note_writers({"2/7"})

    assert rows.ready([1, 3, 5], (), LATER + PATIENCE) == [1, 3, 5]
    assert rows.late == (IdRange(2, 2), IdRange(4, 4))


def test_ids_behind_the_last_one_of_a_limited_read_are_not_late():
    rows = order()
    rows.ready([2, 9], (), NOON)
    rows.note_writers({"2/7"})

    assert rows.ready([2, 4], (), LATER) == [2, 4]
    assert rows.late == (IdRange(1, 1), IdRange(3, 3))


def test_nothing_is_late_when_the_rows_behind_the_gap_are_gone():
    rows = order()
    rows.ready([2], (), NOON)
    rows.note_writers({"2/7"})

    assert rows.ready([], (), LATER) == []
    assert not rows.is_waiting


def test_more_late_ranges_than_a_checkpoint_holds_make_rows_wait():
    rows = order()
    visible = list(range(2, 2 * MAXIMUM_LATE_RANGES + 4, 2))
    rows.ready(visible, (), NOON)
    rows.note_writers({"2/7"})

    assert rows.ready(visible, (), LATER) == []
    assert rows.late == ()


def test_a_range_without_a_number_that_it_does_not_contain_is_itself():
    assert IdRange(2, 4).without(5) == (IdRange(2, 4),)
    assert IdRange(2, 4).without(3) == (IdRange(2, 2), IdRange(4, 4))
