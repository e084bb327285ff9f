"""The page about the constructs has their properties."""

from tests.docs import constructs


def test_the_page_has_the_properties_of_the_constructs():
    text = constructs.PAGE.read_text()

    assert constructs.page(text) == text
