"""Tests that the picture of a session's states agrees with the code."""

from tests.docs.live_states import PICTURE, ROW, drawn


def test_the_picture_of_a_session_is_up_to_date():
    assert PICTURE.read_text() == drawn()


def test_every_transition_of_a_session_has_a_label():
    assert set(ROW.meaning) == set(ROW.transitions)
