"""Glue job `cost_report`: the billed usage and list-price cost of each capability, in the table `cost_daily`.

glue_jobs/shared/report_run.py describes the arguments and files, which all reports share. The prices and the usage of
each event are in signalbox/history/prices.py.
"""

import sys
from collections.abc import Sequence

from glue_jobs.pictures.costs import cost_picture
from glue_jobs.shared.lake import ONE_TASK
from glue_jobs.shared.report_run import ReportRun, report_rows, rows_of_day
from glue_jobs.texts.cost_text import cost_text
from glue_jobs.transforms.costs import cost_counts, cost_daily
from glue_jobs.transforms.tables import COST_DAILY


def main(argv: Sequence[str]) -> None:
    """Write the report of each day of the arguments' window."""
    write_report(ReportRun.start("cost_report", argv))


def write_report(run: ReportRun) -> None:
    """Write the report of each day of the run's window."""
    counts = run.events().transform(cost_counts, run.first, last=run.last)
    costs = counts.transform(cost_daily).persist()
    run.lake.replace(COST_DAILY.name, costs.coalesce(1), run.window, options=ONE_TASK)
    rows = report_rows(costs, "day", "capability", "what", "item")
    for day in run.window.days:
        own = rows_of_day(rows, day)
        run.publish(day, text=cost_text(day, own), picture=cost_picture(day, own), rows=own)
    costs.unpersist()


if __name__ == "__main__":
    main(sys.argv)
