"""Glue job `split_report`: the messages, times and sessions of split queues, in the table `split_daily`.

glue_jobs/shared/report_run.py describes the arguments and files, which all reports share.
"""

import sys
from collections.abc import Sequence

from glue_jobs.pictures.splitting import split_picture
from glue_jobs.shared.lake import ONE_TASK
from glue_jobs.shared.report_run import ReportRun, report_rows, rows_of_day
from glue_jobs.texts.split_text import Line, split_text
from glue_jobs.transforms.splitting import splitting_facts, splitting_report
from glue_jobs.transforms.tables import SPLIT_DAILY


def main(argv: Sequence[str]) -> None:
    """Write the report of each day of the arguments' window."""
    write_report(ReportRun.start("split_report", argv))


def write_report(run: ReportRun) -> None:
    """Write the report of each day of the run's window."""
    facts = run.events().transform(splitting_facts, run.first, last=run.last).persist()
    report = splitting_report(facts, run.days()).persist()
    run.lake.replace(SPLIT_DAILY.name, report.coalesce(1), run.window, options=ONE_TASK)
    rows = report_rows(report, "day", "metric", "queue", "session", "label")
    for day in run.window.days:
        own = rows_of_day(rows, day)
        lines = [Line(*(row[name] for name in Line._fields)) for row in own]
        run.publish(day, text=split_text(day, lines), picture=split_picture(day, own), rows=own)
    report.unpersist()
    facts.unpersist()


if __name__ == "__main__":
    main(sys.argv)
