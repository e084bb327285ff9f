"""The picture of the splitting report."""

from collections import Counter
from collections.abc import Sequence
from datetime import date

from glue_jobs.pictures.panels import Bar, Series, draw_bars, draw_figures, draw_percentiles, format_number, new_picture
from glue_jobs.texts.report_text import ReportRow
from glue_jobs.texts.split_text import PERCENTILES, TIMES

TOP = 12
ROUTED = (Series("to a session", "blue"), Series("to the deployed", "green"), Series("copied", "purple"))
OUTCOMES = ("session", "deployed", "copied")
RETURNED = (Series("to a session", "blue"), Series("to the deployed", "green"), Series("to the original", "grey"))
RETURNED_TO = ("session", "deployed", "original")


def split_picture(day: date, report: Sequence[ReportRow]) -> str:
    """Return the SVG of a UTC day from its rows of `split_daily`."""
    totals = {(row["metric"], row["label"]): row["value"] for row in report if row["queue"] is None}
    routed = [totals.get(("routed-total", outcome), 0) for outcome in OUTCOMES]
    returned = sum(totals.get(("returned-total", outcome), 0) for outcome in RETURNED_TO)
    dead = totals.get(("dead_letter-total", "dead"), 0)
    found = f"{format_number(routed[0])} messages went to sessions, {format_number(routed[1])} to deployed consumers."
    canvas = new_picture(f"Splitting on {day}", "UTC, from midnight to midnight; all split queues", found)
    entries = [
        (format_number(routed[0]), "to sessions"),
        (format_number(routed[1]), "to the deployed"),
        (format_number(routed[2]), "copied"),
    ]
    draw_figures(canvas, [*entries, (format_number(returned), "returned"), (format_number(dead), "dead letters")])
    draw_bars(canvas, "Messages by queue", ROUTED, rows=_rows(report, "routed", OUTCOMES, by="queue"))
    draw_bars(canvas, "Messages by session", ROUTED, rows=_rows(report, "routed", OUTCOMES, by="session"))
    draw_bars(canvas, "Returned messages by queue", RETURNED, rows=_rows(report, "returned", RETURNED_TO, by="queue"))
    draw_percentiles(canvas, "Time to forward a message", rows=_times(report, TIMES[0]))
    draw_percentiles(canvas, "Time until a session is ready", rows=_times(report, TIMES[1]))
    reasons = [row for row in report if row["metric"] == "dead_letter"]
    died = [Bar(f"{row['queue']}: {row['label'] or 'no reason'}", (row["value"],)) for row in reasons]
    draw_bars(canvas, "Dead letters", [Series("dead", "red")], rows=died[:TOP])
    return canvas.svg()


def _rows(report: Sequence[ReportRow], metric: str, labels: Sequence[str], *, by: str) -> list[Bar]:
    sums: Counter[tuple[str, str]] = Counter()
    for row in report:
        if row["metric"] == metric:
            sums[row[by] or "deployed", row["label"]] += row["value"]
    values = {name: tuple(sums[name, label] for label in labels) for name, _ in sums}
    most_first = sorted(values.items(), key=lambda entry: (-sum(entry[1]), entry[0]))
    return [Bar(name, numbers) for name, numbers in most_first[:TOP]]


def _times(report: Sequence[ReportRow], metric: str) -> list[tuple[str, tuple[float, ...]]]:
    values = {(row["queue"], row["label"]): row["value"] for row in report if row["metric"] == metric}
    queues = sorted({queue for queue, _ in values}, key=lambda queue: (queue is not None, queue or ""))
    return [(queue or "all", tuple(values[queue, name] for name in PERCENTILES)) for queue in queues[:TOP]]
