"""Glue job: what was published under which topic, by whom, and to how many; into the table `topic_hourly`.

The arguments and files are those of all reports: glue_jobs/shared/report_run.py tells of them.
"""

import sys
from collections.abc import Sequence

from glue_jobs.pictures.topics import topic_picture
from glue_jobs.shared.report_run import Run, of_day, records
from glue_jobs.texts.topic_text import topic_text
from glue_jobs.transforms.tables import TOPIC_HOURLY
from glue_jobs.transforms.topics import topic_facts, topic_hourly, topic_summary


def main(argv: Sequence[str]) -> None:
    """Report the days that the arguments name."""
    run = Run.begin("topic_report", argv)
    hourly = run.events().transform(topic_facts, run.first, last=run.last).transform(topic_hourly).persist()
    run.lake.replace(TOPIC_HOURLY.name, hourly, run.window)
    rows = records(topic_summary(hourly), "day", "section", "rank")
    for day in run.window.days:
        own = of_day(rows, day)
        run.publish(day, text=topic_text(day, own), picture=topic_picture(day, own), rows=own)
    hourly.unpersist()


if __name__ == "__main__":
    main(sys.argv)
