"""The panels of a picture, drawn below each other: figures, bars, hourly columns, percentiles and text."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from glue_jobs.pictures.canvas import CHARACTER_WIDTH, LINE, MARGIN, WIDTH, Canvas, lines_of

Formatter = Callable[[float], str]
ROW = 22
MOST_LINES = 3  # of a label or a sentence
LABELS = 230.0  # width of the labels of bars
LONG_LABELS = 380.0  # where labels are texts or routing keys
VALUES = 150  # width of the values: a range of small costs
GAP = 26
COLUMN_HEIGHT = 110
TICK = 12
SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
THOUSAND = 1_000
NO_DATA = "no data for this day"


def format_number(value: float) -> str:
    """Return a number with thousands separators."""
    return f"{round(value):,}"


def format_bytes(value: float) -> str:
    """Return a number of bytes with three significant digits and a unit."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < THOUSAND:
            return f"{value:.3g} {unit}"
        value /= THOUSAND
    return f"{value:,.1f} TB"


def format_duration(milliseconds: float) -> str:
    """Return a duration in ms, s, min or h."""
    if milliseconds < SECOND:
        return f"{milliseconds:.0f} ms"
    if milliseconds < MINUTE:
        return f"{milliseconds / SECOND:.3g} s"
    if milliseconds < HOUR:
        return f"{milliseconds / MINUTE:.3g} min"
    return f"{milliseconds / HOUR:,.1f} h"


@dataclass(frozen=True, slots=True)
class Series:
    """A named series of values and its colour."""

    name: str
    colour: str


@dataclass(frozen=True, slots=True)
class Bar:
    """A labelled bar with a value of each series; `text` replaces the values next to it."""

    label: str
    values: tuple[float, ...]
    text: str = ""


def new_picture(title: str, subtitle: str, description: str) -> Canvas:
    """Return a canvas with title and subtitle."""
    canvas = Canvas(title, description)
    canvas.text(MARGIN, 38, title, "head", max_width=WIDTH - 2 * MARGIN - 60)
    canvas.text(MARGIN, 58, subtitle, "soft", max_width=WIDTH - 2 * MARGIN)
    canvas.y = 58
    return canvas


def draw_figures(canvas: Canvas, entries: Sequence[tuple[str, str]]) -> None:
    """Draw a row of figures; `entries` are pairs of number and name."""
    width = (WIDTH - 2 * MARGIN) / len(entries)
    for place, (value, name) in enumerate(entries):
        x = MARGIN + place * width
        canvas.text(x, canvas.y + 42, value, "big", max_width=width * 0.55)
        canvas.text(x, canvas.y + 60, name, "soft", max_width=width)
    canvas.y += 62


def draw_text(canvas: Canvas, heading: str, lines: Sequence[str]) -> None:
    """Write lines under a heading."""
    _draw_heading(canvas, heading)
    for line in lines:
        canvas.y += 18
        canvas.y += LINE * (canvas.lines(MARGIN, canvas.y, line, max_width=WIDTH - 2 * MARGIN, most=MOST_LINES) - 1)


def draw_bars(
    canvas: Canvas,
    heading: str,
    series: Sequence[Series],
    *,
    rows: Sequence[Bar],
    format_value: Formatter = format_number,
    labels: float = LABELS,
) -> None:
    """Draw a stacked bar for each row; `labels` is the width of the labels."""
    _draw_heading(canvas, heading, series if rows else ())
    longest = max((sum(row.values) for row in rows), default=0) or 1
    if not rows:
        _draw_no_data(canvas)
    for row in rows:
        lines = canvas.lines(MARGIN, canvas.y + 19, row.label, max_width=labels - 10, most=MOST_LINES)
        _bar(canvas, row, series, longest=longest, format_value=format_value, labels=labels)
        canvas.y += ROW + (lines - 1) * LINE


def _bar(
    canvas: Canvas, row: Bar, series: Sequence[Series], *, longest: float, format_value: Formatter, labels: float
) -> None:
    x, y = MARGIN + labels, canvas.y + 5
    for one, value in zip(series, row.values, strict=True):
        width = value / longest * (WIDTH - 2 * MARGIN - labels - VALUES)
        if value > 0:
            tooltip = f"{row.label}: {one.name} {format_value(value)}"
            canvas.box(x, y + 3, one.colour, width=max(width, 1), height=14, tooltip=tooltip)
        x += width
    text = row.text or " + ".join(format_value(value) for value in row.values if value) or "0"
    canvas.text(x + 8, y + 14, text, "soft", max_width=WIDTH - MARGIN / 2 - x - 8)


def draw_hours(
    canvas: Canvas,
    heading: str,
    series: Sequence[Series],
    *,
    values: Mapping[int, tuple[float, ...]],
    format_value: Formatter = format_number,
) -> None:
    """Draw a group of columns for each of the 24 hours of a day; `values` may omit hours without data."""
    _draw_heading(canvas, heading, series)
    highest = max((max(row) for row in values.values()), default=0) or 1
    left, width = MARGIN + 60, (WIDTH - 2 * MARGIN - 60) / 24
    base = canvas.y + 12 + COLUMN_HEIGHT
    canvas.text(left - 8, base - COLUMN_HEIGHT + 4, format_value(highest), "soft end")
    canvas.text(left - 8, base + 4, "0", "soft end")
    for y in (base, base - COLUMN_HEIGHT):
        canvas.line(left, y, "line", to=(WIDTH - MARGIN, y))
    part = (width - 4) / len(series)
    for hour in range(24):
        x = left + hour * width + 2
        if hour % 3 == 0:
            canvas.text(x + (width - 4) / 2, base + 16, f"{hour:02}", "soft middle")
        for place, value in enumerate(values.get(hour, ())):
            height = value / highest * COLUMN_HEIGHT
            tooltip = f"{hour:02}:00: {series[place].name} {format_value(value)}"
            if value > 0:
                top = base - max(height, 1)
                canvas.box(x + place * part, top, series[place].colour, width=part, height=base - top, tooltip=tooltip)
    canvas.y = base + 18


def draw_percentiles(canvas: Canvas, heading: str, *, rows: Sequence[tuple[str, tuple[float, ...]]]) -> None:
    """Draw the 50th, 95th and 99th percentiles of each row, in milliseconds, on a logarithmic scale."""
    series = [Series("p50", "blue"), Series("p95", "orange"), Series("p99", "purple")]
    _draw_heading(canvas, f"{heading} (logarithmic scale)", series if rows else ())
    if not rows:
        _draw_no_data(canvas)
        return
    values = [_power(value) for _, row in rows for value in row]
    first, last = math.floor(min(values)), max(math.ceil(max(values)), math.floor(min(values)) + 1)
    left, width = MARGIN + LABELS, WIDTH - 2 * MARGIN - LABELS - VALUES
    heights = [ROW + LINE * (lines_of(label, LABELS - 20, most=MOST_LINES) - 1) for label, _ in rows]
    bottom = canvas.y + 8 + sum(heights)
    for power in range(first, last + 1):
        x = left + (power - first) / (last - first) * width
        canvas.line(x, canvas.y + 4, "line", to=(x, bottom))
        canvas.text(x, bottom + 14, _tick(10**power), "soft middle")
    for (label, row), height in zip(rows, heights, strict=True):
        y = canvas.y + 17
        canvas.lines(MARGIN, y + 4, label, max_width=LABELS - 20, most=MOST_LINES)
        places = [left + (_power(value) - first) / (last - first) * width for value in row]
        canvas.line(places[0], y, "stroke-grey", to=(places[-1], y))
        for place, value, one in reversed(list(zip(places, row, series, strict=True))):
            radius = 4 + series.index(one)  # concentric where values are equal
            canvas.dot(place, y, one.colour, radius=radius, tooltip=f"{label}: {one.name} {format_duration(value)}")
        canvas.text(WIDTH - MARGIN, y + 4, f"{format_duration(row[0])} to {format_duration(row[-1])}", "soft end")
        canvas.y += height
    canvas.y = bottom + 16


def _power(milliseconds: float) -> float:
    return math.log10(max(milliseconds, 1))


def _tick(milliseconds: int) -> str:
    return f"{milliseconds} ms" if milliseconds < SECOND else f"{milliseconds // SECOND:,} s"


def _draw_heading(canvas: Canvas, heading: str, series: Sequence[Series] = ()) -> None:
    canvas.y += GAP + TICK
    canvas.text(MARGIN, canvas.y, heading, "name")
    x = WIDTH - MARGIN - sum(len(one.name) * CHARACTER_WIDTH + 26 for one in series)
    for one in series if len(series) > 1 else ():
        canvas.box(x, canvas.y - 10, one.colour, width=10, height=10)
        canvas.text(x + 15, canvas.y, one.name, "soft")
        x += len(one.name) * CHARACTER_WIDTH + 26
    canvas.y += 2


def _draw_no_data(canvas: Canvas) -> None:
    canvas.y += 18
    canvas.text(MARGIN, canvas.y, NO_DATA, "soft")
