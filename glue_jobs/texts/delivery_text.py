"""The text of the delivery report."""

from collections.abc import Iterator, Sequence
from datetime import date

from glue_jobs.texts.report_text import ABSENT, ReportRow, named_numbers, report_block, section_rows, titled_list
from glue_jobs.transforms.deliveries import COUNTS, TIMES


def delivery_text(day: date, summary: Sequence[ReportRow]) -> str:
    """Return the report of a UTC day from its `delivery_summary`."""
    return report_block("delivery-report", day, _lines(summary))


def _lines(summary: Sequence[ReportRow]) -> Iterator[str]:
    capabilities = section_rows(summary, "capability")
    if not capabilities:
        yield "no deliveries and no dead letters"
        return
    for row in capabilities:
        yield f"{row['capability']} {named_numbers(row, COUNTS)}"
        if row["p50_ms"] is not None:
            yield f"{row['capability']} {named_numbers(row, TIMES)}"
    paths = section_rows(summary, "way")
    lines = [
        f"{row['capability']} {path_label(row)} {named_numbers(row, ('delivered', 'retried', 'dead', *TIMES))}"
        for row in paths
    ]
    yield from titled_list("busiest paths", lines, of=paths[0]["of"] if paths else 0)
    reasons = section_rows(summary, "reason")
    died = [f"{row['dead']} {row['capability']}: {row['reason'] or 'no reason'}" for row in reasons]
    yield from titled_list("dead letters by reason", died, of=reasons[0]["of"] if reasons else 0)


def path_label(row: ReportRow) -> str:
    """Return source and destination, or the capability for rendezvous, whose answers return to the offer's source."""
    source = row["source"] or ABSENT
    return f"{source} → {row['destination']}" if row["destination"] else f"{source}, {row['capability']}"
