"""The text of the order audit."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date

from glue_jobs.texts.report_text import ReportRow, named_numbers, report_block, titled_list
from glue_jobs.transforms.order import CAUSES, FINDINGS, LEFT_OUT

NO_FINDINGS = "nothing is missing, duplicated or out of order"
NOT_AUDITED = "the day is left out, since its audit failed twice"


def order_text(day: date, audit: Sequence[ReportRow], *, counts: Sequence[ReportRow]) -> str:
    """Return the audit of a UTC day: its scope and its findings.

    `audit` has the first findings of the day, `counts` the number of its rows by `finding`.
    """
    return report_block("order-audit", day, _lines(audit, {row["finding"]: row for row in counts}))


def _lines(audit: Sequence[ReportRow], counts: dict[str, ReportRow]) -> Iterator[str]:
    yield audit_scope(counts)
    found = {finding: counts[finding]["rows"] for finding in FINDINGS if finding in counts}
    if not found:
        yield conclusion(counts)
        return
    yield " ".join(f"{finding}={found.get(finding, 0)}" for finding in FINDINGS)
    for finding in FINDINGS:
        lines = [_line(row) for row in audit if row["finding"] == finding]
        yield from titled_list(finding, lines, of=found.get(finding, 0))


def conclusion(counts: dict[str, ReportRow]) -> str:
    """Return the conclusion of a day without findings."""
    return NOT_AUDITED if LEFT_OUT in counts else NO_FINDINGS


def audit_scope(counts: dict[str, ReportRow]) -> str:
    """Return the scope of an audit: the numbers of copies and of queues by topic."""
    copies = counts["audited"]["number"] if "audited" in counts else 0
    subscribers = counts["seen"]["rows"] if "seen" in counts else 0
    return f"looked at {copies} copies of numbered messages, in {subscribers} pairs of queue and topic"


def _line(row: ReportRow) -> str:
    numbers = f"{row['first_sequence']}"
    if row["last_sequence"] != row["first_sequence"]:
        numbers += f" to {row['last_sequence']}"
    causes = f" ({named_numbers(row, CAUSES)})" if row["finding"] == "gap" else ""
    proof = f"{row['before_event_id']} at {row['before_at']}, {row['after_event_id']} at {row['after_at']}"
    return f"{row['exchange']} {row['topic']} → {row['queue']}: {numbers}{causes}; {proof}"


def findings_by_topic(audit: Sequence[ReportRow]) -> Counter[tuple[str, str]]:
    """Return the number of findings by topic and kind."""
    return Counter((f"{row['exchange']} {row['topic']}", row["finding"]) for row in audit if row["finding"] in FINDINGS)
