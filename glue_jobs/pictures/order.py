"""The picture of the order audit."""

from collections.abc import Mapping, Sequence
from datetime import date

from glue_jobs.pictures import panels
from glue_jobs.texts.order_text import audit_scope, conclusion, findings_by_topic
from glue_jobs.texts.report_text import ReportRow
from glue_jobs.transforms.order import CAUSES, FINDINGS

TOP = 10
KINDS = (panels.Series("gaps", "red"), panels.Series("duplicates", "purple"), panels.Series("out of order", "orange"))
MISSING = (
    panels.Series("dead", "purple"),
    panels.Series("waiting", "orange"),
    panels.Series("elsewhere", "grey"),
    panels.Series("nowhere", "red"),
)


def order_picture(day: date, audit: Sequence[ReportRow], *, counts: Sequence[ReportRow]) -> str:
    """Return the SVG of a UTC day: `audit` has its first findings, `counts` the number of its rows by `finding`."""
    by_finding = {row["finding"]: row for row in counts}
    found = {finding: by_finding[finding]["rows"] if finding in by_finding else 0 for finding in FINDINGS}
    summary = ", ".join(f"{finding}: {number}" for finding, number in found.items())
    canvas = panels.new_picture(f"Order on {day}", "UTC, from midnight to midnight; ordered exchanges", f"{summary}.")
    panels.draw_figures(canvas, _figures(found, audited=by_finding.get("audited")))
    if not any(found.values()):
        panels.draw_text(canvas, "No findings", [f"{audit_scope(by_finding)}:", f"{conclusion(by_finding)}."])
        return canvas.svg()
    panels.draw_bars(canvas, "Findings by topic", KINDS, rows=_topics(audit), labels=panels.LONG_LABELS)
    panels.draw_bars(canvas, "Causes of missing numbers", MISSING, rows=_gaps(audit), labels=panels.LONG_LABELS)
    return canvas.svg()


def _figures(found: Mapping[str, int], *, audited: ReportRow | None) -> list[tuple[str, str]]:
    copies = audited["number"] if audited else 0
    numbers = [(panels.format_number(found[finding]), kind.name) for finding, kind in zip(FINDINGS, KINDS, strict=True)]
    return [(panels.format_number(copies), "numbered copies"), *numbers]


def _topics(audit: Sequence[ReportRow]) -> list[panels.Bar]:
    """Return the topics with the most findings, each with the number of each kind."""
    counted = findings_by_topic(audit)
    values = {topic: tuple(counted[topic, finding] for finding in FINDINGS) for topic, _ in counted}
    most_first = sorted(values.items(), key=lambda entry: (-sum(entry[1]), entry[0]))
    return [panels.Bar(topic, numbers) for topic, numbers in most_first[:TOP]]


def _gaps(audit: Sequence[ReportRow]) -> list[panels.Bar]:
    """Return the first gaps, each with the number of its missing messages by cause."""
    gaps = [row for row in audit if row["finding"] == "gap"][:TOP]
    return [panels.Bar(_gap_label(row), tuple(row[cause] or 0 for cause in CAUSES)) for row in gaps]


def _gap_label(row: ReportRow) -> str:
    return f"{row['topic']} → {row['queue']} {_numbers(row)}"


def _numbers(row: ReportRow) -> str:
    if row["first_sequence"] == row["last_sequence"]:
        return f"{row['first_sequence']}"
    return f"{row['first_sequence']} to {row['last_sequence']}"
