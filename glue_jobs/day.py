"""Glue job `day`: the compaction of a window, the maintenance, and all reports of its days, in one Spark application.

One application starts once, and later reports run code that the Java machine has already compiled. The result equals
that of the single jobs. Arguments are those of glue_jobs/shared/compaction.py, and:

--report_path   the prefix of all reports: s3://<bucket>/reports; each report writes below <report_path>/<its folder>
--compact_days  compact only this number of the window's last days; default: the whole window
--compact       `no` makes only the reports

A step that fails does not prevent the others; the job then fails at its end, with the errors of all steps. The order
audit is the last step, so that the timeout that ends one of a very large day takes the time of no other.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from glue_jobs import cost_report, delivery_report, order_audit, rendezvous_report, split_report, topic_report
from glue_jobs.shared import compaction
from glue_jobs.shared.arguments import TimeWindow, parse_arguments
from glue_jobs.shared.compaction import RawFiles, clean_up, compact
from glue_jobs.shared.lake import Lake, spark_session
from glue_jobs.shared.report_run import ReportRun

REQUIRED = (*compaction.REQUIRED, "report_path")
OPTIONAL = (*compaction.OPTIONAL, "compact_days", "compact")
# The reports by script, each with its folder, in order.
REPORTS: dict[str, tuple[str, Callable[[ReportRun], None]]] = {
    "rendezvous_report": ("rendezvous", rendezvous_report.write_report),
    "split_report": ("splitting", split_report.write_report),
    "topic_report": ("topics", topic_report.write_report),
    "delivery_report": ("delivery", delivery_report.write_report),
    "cost_report": ("cost", cost_report.write_report),
    "order_audit": ("order", order_audit.write_report),
}


class DayStep(NamedTuple):
    """A step of the day: its name and what runs it."""

    name: str
    run: Callable[[], None]


def main(argv: Sequence[str]) -> None:
    """Run all steps. Raises an `ExceptionGroup` with the errors of those that failed."""
    errors = [error for step in steps(argv) if (error := _error_of(step))]
    if errors:
        raise ExceptionGroup("the day is not complete", errors)


def steps(argv: Sequence[str]) -> Iterator[DayStep]:
    """Parse the arguments, start Spark and yield the steps in order. Raises `ValueError` for an invalid window."""
    arguments = parse_arguments(argv, REQUIRED, optional=OPTIONAL)
    window = TimeWindow.parse(arguments)
    lake = Lake(spark_session("day"), arguments["database"])
    if arguments.get("compact", "yes") != "no":
        newest = window.last_days(int(arguments["compact_days"])) if "compact_days" in arguments else window
        yield DayStep("compact_history", partial(_compact, RawFiles.of(lake, arguments), newest))
    yield DayStep("clean_up", partial(clean_up, lake, arguments, window))
    for name, (folder, write_report) in REPORTS.items():
        run = ReportRun(name, lake, window.whole_days(), f"{arguments['report_path'].rstrip('/')}/{folder}")
        yield DayStep(name, partial(write_report, run))


def _compact(raw: RawFiles, window: TimeWindow) -> None:
    raw.lake.register_tables()
    print(f"compact_history: {compact(raw, window)}")


def _error_of(step: DayStep) -> Exception | None:
    started = time.monotonic()
    try:
        step.run()
    except Exception as error:  # noqa: BLE001 - the other reports of the day are useful without this one
        print(f"day: {step.name} failed: {error}")
        return error
    print(f"day: {step.name} took {time.monotonic() - started:.1f} s")
    return None


if __name__ == "__main__":
    main(sys.argv)
