"""Tests that the pictures of splitting agree with the code."""

import pytest

from tests.docs.split_states import PICTURE, ROWS, drawn


def test_the_picture_of_stages_and_phases_is_up_to_date():
    assert PICTURE.read_text() == drawn()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kind)
def test_every_transition_of_a_split_and_a_session_has_a_label(row):
    assert set(row.meaning) == set(row.transitions)
