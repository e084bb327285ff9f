"""Glue job: how messages reached their queues, how fast, and why some did not; into the table `delivery_hourly`.

The arguments and files are those of all reports: glue_jobs/shared/report_run.py tells of them.
"""

import sys
from collections.abc import Sequence

from glue_jobs.pictures.deliveries import delivery_picture
from glue_jobs.shared.report_run import Run, of_day, records
from glue_jobs.texts.delivery_text import delivery_text
from glue_jobs.transforms.deliveries import delivery_facts, delivery_hourly, delivery_summary
from glue_jobs.transforms.tables import DELIVERY_HOURLY


def main(argv: Sequence[str]) -> None:
    """Report the days that the arguments name."""
    run = Run.begin("delivery_report", argv)
    facts = run.events().transform(delivery_facts, run.first, last=run.last).persist()
    run.lake.replace(DELIVERY_HOURLY.name, delivery_hourly(facts), run.window)
    rows = records(delivery_summary(facts), "day", "section", "rank")
    for day in run.window.days:
        own = of_day(rows, day)
        run.publish(day, text=delivery_text(day, own), picture=delivery_picture(day, own), rows=own)
    facts.unpersist()


if __name__ == "__main__":
    main(sys.argv)
