"""Glue job `rendezvous_report`: upstream's 24-hour broker statistics, in the table `rendezvous_daily`.

glue_jobs/shared/report_run.py describes the arguments and files, which all reports share. The text is the block of
upstream's metrics log.
"""

import sys
from collections.abc import Sequence

from glue_jobs.pictures.rendezvous import rendezvous_picture
from glue_jobs.shared.lake import ONE_TASK
from glue_jobs.shared.report_run import ReportRun, report_rows, rows_of_day
from glue_jobs.texts.log_block import log_block
from glue_jobs.transforms.rendezvous import rendezvous_facts, rendezvous_report
from glue_jobs.transforms.tables import RENDEZVOUS_DAILY


def main(argv: Sequence[str]) -> None:
    """Write the report of each day of the arguments' window."""
    write_report(ReportRun.start("rendezvous_report", argv))


def write_report(run: ReportRun) -> None:
    """Write the report of each day of the run's window."""
    facts = run.events().transform(rendezvous_facts, run.first, last=run.last).persist()
    report = rendezvous_report(facts, run.days()).persist()
    run.lake.replace(RENDEZVOUS_DAILY.name, report.coalesce(1), run.window, options=ONE_TASK)
    rows = report_rows(report, "day", "metric", "label")
    for day in run.window.days:
        own = rows_of_day(rows, day)
        shown = {(row["metric"], row["label"]): row["shown"] for row in own}
        run.publish(day, text=log_block(day, shown), picture=rendezvous_picture(day, own), rows=own)
    report.unpersist()
    facts.unpersist()


if __name__ == "__main__":
    main(sys.argv)
