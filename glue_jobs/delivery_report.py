"""Glue job `delivery_report`: delivery times, retries and dead letters, in the table `delivery_hourly`.

glue_jobs/shared/report_run.py describes the arguments and files, which all reports share.
"""

import sys
from collections.abc import Sequence

from glue_jobs.pictures.deliveries import delivery_picture
from glue_jobs.shared.report_run import ReportRun, report_rows, rows_of_day
from glue_jobs.texts.delivery_text import delivery_text
from glue_jobs.transforms.deliveries import delivery_facts, delivery_hourly, delivery_summary
from glue_jobs.transforms.tables import DELIVERY_HOURLY


def main(argv: Sequence[str]) -> None:
    """Write the report of each day of the arguments' window."""
    write_report(ReportRun.start("delivery_report", argv))


def write_report(run: ReportRun) -> None:
    """Write the report of each day of the run's window."""
    facts = run.events().transform(delivery_facts, run.first, last=run.last).persist()
    run.lake.replace(DELIVERY_HOURLY.name, delivery_hourly(facts), run.window)
    rows = report_rows(delivery_summary(facts), "day", "section", "rank")
    for day in run.window.days:
        own = rows_of_day(rows, day)
        run.publish(day, text=delivery_text(day, own), picture=delivery_picture(day, own), rows=own)
    facts.unpersist()


if __name__ == "__main__":
    main(sys.argv)
