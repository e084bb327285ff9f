"""The picture of past messages."""

from xml.etree import ElementTree

import pytest

from glue_jobs.pictures.what_if import LABELS_ON_AXIS, WhatIf, what_if_picture

SVG = "{http://www.w3.org/2000/svg}"


def drawn(columns, *, bars=(("a.b", 7),)) -> ElementTree.Element:
    contents = WhatIf("Title", "Subtitle", ["First.", "Second."], [("7", "messages")], columns, "Topics", bars)
    return ElementTree.fromstring(what_if_picture(contents))  # noqa: S314 - ours


def columns_of(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [box for box in root.iter(f"{SVG}rect") if "x" in box.attrib and box.get("height") != "14"]


@pytest.mark.parametrize("number", [1, 24, 360, 744])
def test_a_column_for_each_step_with_messages_stays_within_the_picture(number):
    root = drawn([(f"at {place}", place % 3) for place in range(number)])

    found = columns_of(root)
    assert len(found) == sum(1 for place in range(number) if place % 3)
    assert all(84 <= float(box.attrib["x"]) <= 736 for box in found)
    labels = [text for text in root.iter(f"{SVG}text") if (text.text or "").startswith("at ")]
    assert 1 <= len(labels) <= LABELS_ON_AXIS


def test_the_words_of_the_answer_are_its_description_and_are_shown():
    root = drawn([("1", 1)])

    assert root.findtext(f"{SVG}desc") == "First. Second."
    assert {"First.", "Second."} <= {text.text for text in root.iter(f"{SVG}text")}


def test_a_picture_without_messages_has_no_bars_and_the_empty_key_has_a_name():
    assert "Topics" not in {text.text for text in drawn([], bars=()).iter(f"{SVG}text")}
    assert "the empty key" in {text.text for text in drawn([("1", 1)], bars=[("", 1)]).iter(f"{SVG}text")}
