"""The audit of order as text, for people."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import date

from glue_jobs.texts.report_text import Record, block, listed, told
from glue_jobs.transforms.order import CAUSES, FINDINGS

SHOWN = 50
EMPTY = "nothing is missing, nothing came twice, and nothing came out of order"


def order_text(day: date, audit: Sequence[Record], *, counts: Sequence[Record]) -> str:
    """Return the audit of one UTC day: its findings, as many as people read, and what was looked at.

    `audit` has the first findings of the day, `counts` its rows counted by `finding`.
    """
    return block("order-audit", day, _lines(audit, {row["finding"]: row for row in counts}))


def _lines(audit: Sequence[Record], counts: dict[str, Record]) -> Iterator[str]:
    yield looked_at(counts)
    found = {finding: counts[finding]["rows"] for finding in FINDINGS if finding in counts}
    if not found:
        yield EMPTY
        return
    yield " ".join(f"{finding}={found.get(finding, 0)}" for finding in FINDINGS)
    for finding in FINDINGS:
        lines = [_line(row) for row in audit if row["finding"] == finding]
        yield from listed(finding, lines, of=found.get(finding, 0))


def looked_at(counts: dict[str, Record]) -> str:
    """Return what was looked at, also when nothing was found."""
    copies = counts["audited"]["number"] if "audited" in counts else 0
    subscribers = counts["seen"]["rows"] if "seen" in counts else 0
    return f"looked at {copies} copies of numbered messages, in {subscribers} queues' views of their topics"


def _line(row: Record) -> str:
    numbers = f"{row['first_sequence']}"
    if row["last_sequence"] != row["first_sequence"]:
        numbers += f" to {row['last_sequence']}"
    causes = f" ({told(row, CAUSES)})" if row["finding"] == "gap" else ""
    proof = f"{row['before_event_id']} at {row['before_at']}, {row['after_event_id']} at {row['after_at']}"
    return f"{row['exchange']} {row['topic']} → {row['queue']}: {numbers}{causes}; {proof}"


def by_topic(audit: Sequence[Record]) -> Counter[tuple[str, str]]:
    """Return how often something was found, by topic and finding."""
    return Counter((f"{row['exchange']} {row['topic']}", row["finding"]) for row in audit if row["finding"] in FINDINGS)
