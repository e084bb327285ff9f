"""Report pictures: well-formed for any name, with light and dark variants, and accessible to screen readers."""

from collections.abc import Callable
from datetime import date
from xml.etree import ElementTree

import pytest

from glue_jobs.pictures.canvas import COLOURS, LINE, Canvas, shortened
from glue_jobs.pictures.costs import cost_picture, format_usd
from glue_jobs.pictures.deliveries import delivery_picture
from glue_jobs.pictures.order import order_picture
from glue_jobs.pictures.panels import (
    LABELS,
    NO_DATA,
    Bar,
    Series,
    draw_bars,
    draw_hours,
    draw_percentiles,
    format_bytes,
    format_duration,
    new_picture,
)
from glue_jobs.pictures.rendezvous import rendezvous_picture
from glue_jobs.pictures.splitting import split_picture
from glue_jobs.pictures.topics import topic_picture
from glue_jobs.texts.cost_text import DISCLAIMER

DIGIT = 7.64  # its width at 12 px in DejaVu Sans
DAY = date(2026, 11, 21)
SVG = "{http://www.w3.org/2000/svg}"
PICTURES: dict[str, Callable[[], str]] = {
    "topics": lambda: topic_picture(DAY, []),
    "deliveries": lambda: delivery_picture(DAY, []),
    "order": lambda: order_picture(DAY, [], counts=[]),
    "costs": lambda: cost_picture(DAY, []),
    "rendezvous": lambda: rendezvous_picture(DAY, []),
    "splitting": lambda: split_picture(DAY, []),
}


def read(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)  # noqa: S314 - ours


def shown(picture: str) -> list[str]:
    return [element.text or "" for element in read(picture).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_without_data_has_a_title_a_description_and_a_dark_variant(name):
    picture = PICTURES[name]()

    root = read(picture)
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert "2026-11-21" in (title.text or "")
    assert description is not None
    assert (description.text or "").endswith(".")
    assert root.get("aria-labelledby") == "title description"
    assert "prefers-color-scheme: dark" in picture


def test_every_colour_has_a_light_and_a_dark_variant():
    picture = Canvas("title", "description").svg()

    assert [picture.count(f"--{name}: #") for name in COLOURS] == [2] * len(COLOURS)


def test_sentences_and_labels_are_shown_whole_on_several_lines():
    label = "a reason of a dead letter that is longer than the labels of a picture are wide"
    costs = [{"capability": label, "item": "SQS FIFO request", "usd_least": 1.0, "usd_most": 2.0}]

    words = " ".join(shown(cost_picture(DAY, costs)))

    assert label in words
    assert all(sentence in words for sentence in DISCLAIMER)


@pytest.mark.parametrize("name", PICTURES)
def test_the_names_of_figures_are_shown_whole(name):
    assert [words for words in shown(PICTURES[name]()) if "…" in words] == []


def test_a_range_of_small_costs_is_shown_whole():
    canvas = new_picture("title", "subtitle", "description")

    draw_bars(canvas, "heading", [Series("one", "blue")], rows=[Bar("SQS", (1,), "0.00000040 to 0.0000033")])

    assert "0.00000040 to 0.0000033" in shown(canvas.svg())


def test_any_name_is_shown_and_a_shortened_one_has_a_tooltip():
    name = "<b>&\x00\ud800" + "x" * 100
    canvas = new_picture("title", "subtitle", "description")

    draw_bars(canvas, "heading", [Series("one", "blue")], rows=[Bar(name, (1,))])

    root = read(canvas.svg())
    label, _, _ = [element for element in root.iter(f"{SVG}text") if element.find(f"{SVG}title") is not None]
    assert "…" in "".join(shown(canvas.svg()))
    hint = label.find(f"{SVG}title")
    assert hint is not None
    assert hint.text == "<b>&\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}" + "x" * 100


def test_bars_are_proportional_to_their_values_and_zero_has_no_bar():
    canvas = new_picture("title", "subtitle", "description")
    rows = [Bar("long", (300, 100)), Bar("short", (0, 100)), Bar("none", (0, 0))]

    draw_bars(canvas, "heading", [Series("one", "blue"), Series("two", "red")], rows=rows)

    boxes = [box for box in read(canvas.svg()).iter(f"{SVG}rect") if box.find(f"{SVG}title") is not None]
    widths = [(box.get("class"), float(box.get("width") or 0)) for box in boxes]
    whole = sum(width for _, width in widths[:2])
    assert widths == [
        ("blue", pytest.approx(whole * 3 / 4, abs=0.1)),
        ("red", pytest.approx(whole / 4, abs=0.1)),
        ("red", pytest.approx(whole / 4, abs=0.1)),
    ]
    assert {"300 + 100", "100", "0"} <= set(shown(canvas.svg()))


def test_each_hour_has_its_column():
    canvas = new_picture("title", "subtitle", "description")

    draw_hours(canvas, "heading", [Series("one", "blue")], values={0: (10,), 12: (0,), 23: (5,)})

    boxes = [box for box in read(canvas.svg()).iter(f"{SVG}rect") if box.find(f"{SVG}title") is not None]
    first, last = sorted(float(box.get("x") or 0) for box in boxes)
    assert last - first == pytest.approx(23 * (760 - 48 - 60) / 24, abs=0.2)
    assert [box.findtext(f"{SVG}title") for box in boxes] == ["00:00: one 10", "23:00: one 5"]


def test_a_hash_in_a_label_ends_before_the_bar():
    canvas = new_picture("title", "subtitle", "description")

    draw_bars(canvas, "heading", [Series("one", "red")], rows=[Bar(f"expected 'sha256-{'0' * 64}'", (1,))])

    parts = [text for text in shown(canvas.svg()) if "000" in text]
    assert "".join(parts) == f"{'0' * 64}'"
    assert max(map(len, parts)) * DIGIT <= LABELS


def test_the_label_of_percentiles_is_shown_whole_above_the_next():
    canvas = new_picture("title", "subtitle", "description")
    label = "demo-memes → mirrord-tmp-62q3h0ab1mj4-fallback-demo-memes"

    draw_percentiles(canvas, "heading", rows=[(label, (1, 2, 3)), ("next", (1, 2, 3))])

    texts = {text.text or "": float(text.get("y") or 0) for text in read(canvas.svg()).iter(f"{SVG}text")}
    *_, last = found = [text for text in texts if text in label]
    assert "".join(found) == label
    assert texts["next"] - texts[last] >= LINE


def test_percentiles_use_a_logarithmic_scale_from_one_millisecond():
    canvas = new_picture("title", "subtitle", "description")

    draw_percentiles(canvas, "heading", rows=[("way", (0, 10, 1000))])

    places = {dot.get("class"): float(dot.get("cx") or 0) for dot in read(canvas.svg()).iter(f"{SVG}circle")}
    assert places["orange"] - places["blue"] == pytest.approx((places["purple"] - places["blue"]) / 3, abs=0.1)
    assert {"1 ms", "10 ms", "100 ms", "1 s", "0 ms to 1 s"} <= set(shown(canvas.svg()))


def test_a_panel_without_rows_has_a_note():
    canvas = new_picture("title", "subtitle", "description")

    draw_bars(canvas, "heading", [Series("one", "blue")], rows=[])
    draw_percentiles(canvas, "heading", rows=[])

    assert shown(canvas.svg()).count(NO_DATA) == 2


def test_an_audit_without_findings_shows_its_scope():
    counts = [{"finding": "audited", "rows": 1, "number": 4811}, {"finding": "seen", "rows": 12, "number": 4811}]

    texts = shown(order_picture(DAY, [], counts=counts))

    assert "looked at 4811 copies of numbered messages, in 12 pairs of queue and topic:" in texts
    assert "nothing is missing, duplicated or out of order." in texts


@pytest.mark.parametrize(
    ("formatted", "expected"),
    [
        (format_duration(999), "999 ms"),
        (format_duration(1500), "1.5 s"),
        (format_duration(90_000), "1.5 min"),
        (format_duration(5_400_000), "1.5 h"),
        (format_bytes(999), "999 bytes"),
        (format_bytes(43_400_000), "43.4 MB"),
        (format_bytes(2e15), "2,000.0 TB"),
        (format_usd(0), "0 USD"),
        (format_usd(0.00001234), "0.000012 USD"),
        (format_usd(1234.5), "1,234.50 USD"),
        (shortened("abcdefgh", 5), "ab…gh"),
        (shortened("abc", 3), "abc"),
    ],
)
def test_numbers_and_names_are_formatted(formatted, expected):
    assert formatted == expected
