"""Tests that the pictures are accessible and agree with the code."""

from xml.etree import ElementTree

import pytest

from signalbox.rendezvous.model.states import OfferState
from tests.docs.markdown import ROOT, name_of
from tests.docs.states import MEANING, PICTURE, drawn, transitions

PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))


def test_the_picture_of_the_states_is_up_to_date():
    assert PICTURE.read_text() == drawn()


def test_every_transition_has_a_label():
    assert set(MEANING) == set(transitions())


def test_every_state_is_in_the_picture():
    assert all(f">{state}</text>" in PICTURE.read_text() for state in OfferState)


@pytest.mark.parametrize("picture", PICTURES, ids=name_of)
def test_a_picture_has_a_title_text_elements_and_dark_colors(picture):
    root = ElementTree.parse(picture).getroot()  # noqa: S314 - ours

    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert root.find("{http://www.w3.org/2000/svg}title") is not None
    assert len(texts) > 5
    assert "prefers-color-scheme: dark" in picture.read_text()
