"""The report of deliveries as text, for people."""

from collections.abc import Iterator, Sequence
from datetime import date

from glue_jobs.texts.report_text import NOBODY, Record, block, listed, of_section, told
from glue_jobs.transforms.deliveries import COUNTS, TIMES


def delivery_text(day: date, summary: Sequence[Record]) -> str:
    """Return the report of one UTC day from its `delivery_summary`."""
    return block("delivery-report", day, _lines(summary))


def _lines(summary: Sequence[Record]) -> Iterator[str]:
    capabilities = of_section(summary, "capability")
    if not capabilities:
        yield "nothing was delivered, and nothing died"
        return
    for row in capabilities:
        yield f"{row['capability']} {told(row, COUNTS)}"
        if row["p50_ms"] is not None:
            yield f"{row['capability']} {told(row, TIMES)}"
    ways = of_section(summary, "way")
    lines = [f"{row['capability']} {way(row)} {told(row, ('delivered', 'retried', 'dead', *TIMES))}" for row in ways]
    yield from listed("busiest ways", lines, of=ways[0]["of"] if ways else 0)
    reasons = of_section(summary, "reason")
    died = [f"{row['dead']} {row['capability']}: {row['reason'] or 'no reason'}" for row in reasons]
    yield from listed("dead letters by reason", died, of=reasons[0]["of"] if reasons else 0)


def way(row: Record) -> str:
    """Return from where to where; an answer of rendezvous goes back where the offer came from."""
    source = row["source"] or NOBODY
    return f"{source} → {row['destination']}" if row["destination"] else f"{source}, {row['capability']}"
