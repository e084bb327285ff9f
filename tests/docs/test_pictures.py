"""Tests that the pictures are accessible and agree with the code."""

from xml.etree import ElementTree

import pytest

from signalbox.rendezvous.model.states import OfferState
from tests.docs import live_states, split_states, states
from tests.docs.markdown import ROOT, name_of

PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
ROWS = (states.ROW, live_states.ROW, *split_states.ROWS)


@pytest.mark.parametrize("states", [states, split_states, live_states], ids=lambda module: module.__name__)
def test_a_picture_of_states_is_up_to_date(states):
    assert states.PICTURE.read_text() == states.drawn()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)
def test_every_transition_has_a_label(row):
    assert set(row.meaning) == set(row.transitions)


def test_every_state_is_in_the_picture():
    assert all(f">{state}</text>" in states.PICTURE.read_text() for state in OfferState)


@pytest.mark.parametrize("picture", PICTURES, ids=name_of)
def test_a_picture_has_a_title_text_elements_and_dark_colors(picture):
    root = ElementTree.parse(picture).getroot()  # noqa: S314 - ours

    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert len(texts) > 5
    assert "prefers-color-scheme: dark" in picture.read_text()
