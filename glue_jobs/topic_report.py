"""Glue job `topic_report`: publications, copies and publishers by topic, in the table `topic_hourly`.

glue_jobs/shared/report_run.py describes the arguments and files, which all reports share.
"""

import sys
from collections.abc import Sequence

from glue_jobs.pictures.topics import topic_picture
from glue_jobs.shared.report_run import ReportRun, report_rows, rows_of_day
from glue_jobs.texts.topic_text import topic_text
from glue_jobs.transforms.tables import TOPIC_HOURLY
from glue_jobs.transforms.topics import topic_facts, topic_hourly, topic_summary


def main(argv: Sequence[str]) -> None:
    """Write the report of each day of the arguments' window."""
    write_report(ReportRun.start("topic_report", argv))


def write_report(run: ReportRun) -> None:
    """Write the report of each day of the run's window."""
    hourly = run.events().transform(topic_facts, run.first, last=run.last).transform(topic_hourly).persist()
    run.lake.replace(TOPIC_HOURLY.name, hourly, run.window)
    rows = report_rows(topic_summary(hourly), "day", "section", "rank")
    for day in run.window.days:
        own = rows_of_day(rows, day)
        run.publish(day, text=topic_text(day, own), picture=topic_picture(day, own), rows=own)
    hourly.unpersist()


if __name__ == "__main__":
    main(sys.argv)
