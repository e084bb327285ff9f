"""Glue job: what each capability used of what AWS bills, priced from a table; into the table `cost_daily`.

The arguments and files are those of all reports: see glue_jobs/shared/report_run.py. The prices and how much of what
each event uses are in glue_jobs/transforms/prices.py.
"""

import sys
from collections.abc import Sequence

from glue_jobs.pictures.costs import cost_picture
from glue_jobs.shared.report_run import Run, of_day, records
from glue_jobs.texts.cost_text import cost_text
from glue_jobs.transforms.costs import cost_counts, cost_daily
from glue_jobs.transforms.tables import COST_DAILY


def main(argv: Sequence[str]) -> None:
    """Report the days that the arguments name."""
    run = Run.begin("cost_report", argv)
    counts = run.events().transform(cost_counts, run.first, last=run.last)
    costs = counts.transform(cost_daily).persist()
    run.lake.replace(COST_DAILY.name, costs, run.window)
    rows = records(costs, "day", "capability", "what", "item")
    for day in run.window.days:
        own = of_day(rows, day)
        run.publish(day, text=cost_text(day, own), picture=cost_picture(day, own), rows=own)
    costs.unpersist()


if __name__ == "__main__":
    main(sys.argv)
