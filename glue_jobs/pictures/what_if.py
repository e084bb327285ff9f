"""The picture of past messages that a change would have matched."""

from collections.abc import Sequence
from dataclasses import dataclass

from glue_jobs.pictures.canvas import MARGIN, WIDTH, Canvas
from glue_jobs.pictures.panels import (
    COLUMN_HEIGHT,
    LONG_LABELS,
    Bar,
    Series,
    draw_bars,
    draw_figures,
    draw_text,
    format_number,
    new_picture,
)

LABELS_ON_AXIS = 7
AXIS = 60  # width of the axis' numbers


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The contents: `sentences` also describe the picture for readers who do not see it.

    `columns` are the numbers of messages by time, with their labels; `bars` the largest topics or recipients.
    """

    title: str
    subtitle: str
    sentences: Sequence[str]
    figures: Sequence[tuple[str, str]]
    columns: Sequence[tuple[str, int]]
    bars_heading: str
    bars: Sequence[tuple[str, int]]


def what_if_picture(contents: WhatIf) -> str:
    """Return the SVG."""
    canvas = new_picture(contents.title, contents.subtitle, " ".join(contents.sentences))
    draw_figures(canvas, contents.figures)
    draw_text(canvas, "In words", contents.sentences)
    _draw_columns(canvas, contents.columns)
    rows = [Bar(name or "the empty key", (number,)) for name, number in contents.bars]
    if rows:
        draw_bars(canvas, contents.bars_heading, [Series("messages", "blue")], rows=rows, labels=LONG_LABELS)
    return canvas.svg()


def _draw_columns(canvas: Canvas, columns: Sequence[tuple[str, int]]) -> None:
    """Draw a column for each step of time."""
    highest = max((number for _, number in columns), default=0) or 1
    left, base = MARGIN + AXIS, canvas.y + 36 + COLUMN_HEIGHT
    width = (WIDTH - MARGIN - left) / max(len(columns), 1)
    canvas.text(left - 8, base - COLUMN_HEIGHT + 4, format_number(highest), "soft end")
    canvas.text(left - 8, base + 4, "0", "soft end")
    for y in (base, base - COLUMN_HEIGHT):
        canvas.line(left, y, "line", to=(WIDTH - MARGIN, y))
    every = max(1, -(-len(columns) // LABELS_ON_AXIS))
    for place, (label, number) in enumerate(columns):
        x = left + place * width
        if place % every == 0:
            canvas.text(x, base + 16, label, "soft")
        if number:
            height = max(number / highest * COLUMN_HEIGHT, 1)
            tooltip = f"{label}: {format_number(number)}"
            canvas.box(x, base - height, "blue", width=max(width * 0.9, 0.5), height=height, tooltip=tooltip)
    canvas.y = base + 18
