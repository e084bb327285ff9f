"""The pictures of the documentation as a browser draws them: texts stay in their boxes and do not meet."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

PICTURES = sorted((Path(__file__).parents[2] / "docs" / "pictures").glob("*.svg"))
# Returns the texts that leave the picture or the box of their center, and the pairs of texts that overlap.
FAULTS = """() => {
  const area = (element) => element.getBoundingClientRect();
  const holds = (outer, inner) => outer.left <= inner.left && inner.right <= outer.right
    && outer.top <= inner.top && inner.bottom <= outer.bottom;
  const hasCenter = (outer, inner) => {
    const [x, y] = [(inner.left + inner.right) / 2, (inner.top + inner.bottom) / 2];
    return outer.left < x && x < outer.right && outer.top < y && y < outer.bottom;
  };
  // Lines that do not touch may still share a few pixels: the height of a line exceeds that of its characters.
  const meets = (one, other) => one.left < other.right && other.left < one.right
    && one.top + 4 < other.bottom && other.top + 4 < one.bottom;
  const boxes = [document.documentElement, ...document.querySelectorAll("rect.box")].map(area);
  const texts = [...document.querySelectorAll("text")].map((element) => [element.textContent, area(element)]);
  const outside = texts.filter(([, at]) => boxes.some((box) => hasCenter(box, at) && !holds(box, at)));
  const pairs = texts.flatMap((one, number) => texts.slice(number + 1).map((other) => [one, other]));
  const met = pairs.filter(([one, other]) => meets(one[1], other[1]));
  return [...outside.map(([text]) => text), ...met.map(([one, other]) => `${one[0]} / ${other[0]}`)];
}"""


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.stem)
def test_texts_stay_in_their_boxes_and_do_not_meet(chromium: Browser, picture: Path):
    page = chromium.new_page()
    try:
        page.goto(picture.as_uri())
        assert page.locator("text").count() > 5
        assert page.evaluate(FAULTS) == []
    finally:
        page.close()
