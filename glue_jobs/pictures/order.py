"""The picture of the audit of order."""

from collections.abc import Sequence
from datetime import date

from glue_jobs.pictures.panels import LONG_LABELS, Bar, Series, bars, figures, sheet, whole, words
from glue_jobs.texts.order_text import EMPTY, by_topic, looked_at
from glue_jobs.texts.report_text import Record
from glue_jobs.transforms.order import CAUSES, FINDINGS

TOP = 10
KINDS = (Series("gaps", "red"), Series("duplicates", "purple"), Series("out of order", "orange"))
MISSING = (
    Series("dead", "purple"),
    Series("waiting", "orange"),
    Series("elsewhere", "grey"),
    Series("nowhere", "red"),
)


def order_picture(day: date, audit: Sequence[Record], *, counts: Sequence[Record]) -> str:
    """Return the picture of one UTC day: `audit` has its first findings, `counts` its rows counted by `finding`."""
    by_finding = {row["finding"]: row for row in counts}
    number = {finding: by_finding[finding]["rows"] if finding in by_finding else 0 for finding in FINDINGS}
    found = ", ".join(f"{finding}: {number[finding]}" for finding in FINDINGS)
    canvas = sheet(f"Order on {day}", "UTC, from midnight to midnight; ordered exchanges", f"{found}.")
    copies = by_finding["audited"]["number"] if "audited" in by_finding else 0
    entries = [(whole(copies), "numbered copies looked at")]
    names = [one.name for one in KINDS]
    entries += [(whole(number[finding]), name) for finding, name in zip(FINDINGS, names, strict=True)]
    figures(canvas, entries)
    if not any(number.values()):
        words(canvas, "Nothing was found", [f"{looked_at(by_finding)}:", f"{EMPTY}."])
        return canvas.svg()
    counted = by_topic(audit)
    topics = sorted(
        {topic for topic, _ in counted}, key=lambda topic: (-sum(counted[topic, one] for one in FINDINGS), topic)
    )
    rows = [Bar(topic, tuple(counted[topic, finding] for finding in FINDINGS)) for topic in topics[:TOP]]
    bars(canvas, "Where, by topic", KINDS, rows=rows, labels=LONG_LABELS)
    gaps = [row for row in audit if row["finding"] == "gap"][:TOP]
    missing = [
        Bar(f"{row['topic']} → {row['queue']} {_numbers(row)}", tuple(row[cause] or 0 for cause in CAUSES))
        for row in gaps
    ]
    bars(canvas, "What is known of missing numbers", MISSING, rows=missing, labels=LONG_LABELS)
    return canvas.svg()


def _numbers(row: Record) -> str:
    if row["first_sequence"] == row["last_sequence"]:
        return f"{row['first_sequence']}"
    return f"{row['first_sequence']} to {row['last_sequence']}"
