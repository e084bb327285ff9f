"""Sets of log ids as ranges, and the state that has them."""

import itertools
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from signalbox.live.arvados.id_sets import contains, with_id
from signalbox.live.arvados.row_state import MAXIMUM_RANGES, NO_ROWS, POSTED_KEPT_FOR, pruned, with_posted
from tests.unit.live.session.stage import NOW

IDS = st.lists(st.integers(1, 40), max_size=40)


@given(IDS)
def test_ranges_are_a_set(ids: list[int]) -> None:
    ranges = ()
    for number in ids:
        ranges = with_id(ranges, number)

    assert [number for number in range(42) if contains(ranges, number)] == sorted(set(ids))
    assert all(first <= last for first, last in ranges)
    assert all(last + 1 < first for (_, last), (first, _) in itertools.pairwise(ranges))


def test_the_ids_of_a_connection_are_limited() -> None:
    rows = NO_ROWS
    for number in range(MAXIMUM_RANGES + 1):
        rows = with_posted(rows, 2 * number, now=NOW, is_kept=True)

    assert len(rows.posted) == MAXIMUM_RANGES
    assert not contains(rows.posted, 0)
    assert rows.number == MAXIMUM_RANGES + 1


def test_ids_are_kept_for_some_minutes() -> None:
    rows = with_posted(NO_ROWS, 7, now=NOW, is_kept=True)

    assert pruned(rows, now=NOW + POSTED_KEPT_FOR) == rows
    assert pruned(rows, now=NOW + POSTED_KEPT_FOR + timedelta(seconds=1)).posted == ()
    assert with_posted(NO_ROWS, 7, now=NOW, is_kept=False).posted == ()
