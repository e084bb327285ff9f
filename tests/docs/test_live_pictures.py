"""The picture of a session's states says what the code says."""

from tests.docs.live_states import PICTURE, ROW, drawn


def test_the_picture_of_a_session_is_the_one_that_the_table_gives():
    assert PICTURE.read_text() == drawn()


def test_every_transition_of_a_session_has_a_meaning():
    assert set(ROW.meaning) == set(ROW.transitions)
