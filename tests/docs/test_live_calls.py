"""docs/live.md has the calls of AWS that a publication makes, as `make bench OF=live` counts them."""

from benchmarks.parts.live.calls import measure
from tests.docs.markdown import ROOT, section

SUBSCRIPTIONS = 10
"""The smallest row of the table; the others take minutes to fill moto's tables."""


def test_the_page_has_the_counted_calls_of_a_publication():
    (counted,) = measure(lambda _: None, [SUBSCRIPTIONS])

    text = section(ROOT / "docs" / "live.md", "AWS calls of a publication")
    (row,) = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith(f"| {SUBSCRIPTIONS} |")]
    assert [int(row[cell]) for cell in (1, 3, 5)] == [one.calls for one in (counted.warm, counted.cold, counted.behind)]
