"""The Glue jobs of the history: their default arguments, and the daily reports."""

from collections.abc import Mapping
from dataclasses import dataclass

REPLAY_PREFIX = "replays/"  # of the objects in the bucket
LOG_PREFIX = "logs"
NO_PREFIX = "-"
FILE_EXTENSIONS = {"text": "txt", "picture": "svg", "json": "json"}
"""The file extensions of a report's files by kind, which is also the folder."""


@dataclass(frozen=True, slots=True)
class ReportJob:
    """A report: its job's script and its folder in the bucket."""

    script: str
    folder: str

    def key(self, kind: str, day: str) -> str:
        """Return the object key of a day's file; `kind` is `text`, `picture` or `json`."""
        return f"{self.folder}/{kind}/day={day}.{FILE_EXTENSIONS[kind]}"


REPORT_PREFIX = "reports"  # of the folders of all reports
ALL_REPORTS = "all"  # instead of a report's name
DAY_SCRIPT = "day"
"""The script of compaction and all reports."""
REPORTS = {
    "rendezvous": ReportJob("rendezvous_report", "reports/rendezvous"),
    "splitting": ReportJob("split_report", "reports/splitting"),
    "topics": ReportJob("topic_report", "reports/topics"),
    "delivery": ReportJob("delivery_report", "reports/delivery"),
    "order": ReportJob("order_audit", "reports/order"),
    "cost": ReportJob("cost_report", "reports/cost"),
}


def job_arguments(script: str, outputs: Mapping[str, str], *, region: str, stage: str) -> dict[str, str]:
    """Return the default arguments of a script's Glue job, for a run on the local stage, whose Glue runs no jobs.

    `outputs` are the stage's CloudFormation outputs. Raises `KeyError` when one of them is missing.
    """
    bucket = outputs["HistoryBucket"]
    common = {"database": outputs["HistoryDatabase"], "region": region}
    folders = {report.script: report.folder for report in REPORTS.values()}
    if script in folders:
        return {**common, "report_path": f"s3://{bucket}/{folders[script]}"}
    raw = {"history_path": f"s3://{bucket}/raw"}
    index = {"index_path": f"s3://{bucket}/index"}
    readers_of_raw = {
        "compact_history": {**raw, **index, "maintain": "no"},
        DAY_SCRIPT: {**raw, **index, "report_path": f"s3://{bucket}/{REPORT_PREFIX}", "maintain": "no"},
        "query": raw,
    }
    if script in readers_of_raw:
        return {**common, **readers_of_raw[script]}
    if script == "export_logs":
        tables = {"live_table": outputs["LiveTable"], "exchange_table": outputs["ExchangeTable"]}
        return {**common, "log_path": f"s3://{bucket}/{LOG_PREFIX}", **tables}
    if script == "replay":
        exchanges = {
            "exchange_prefix": outputs["ExchangePrefix"] or NO_PREFIX,
            "exchange_table": outputs["ExchangeTable"],
        }
        own = {"bucket": bucket, "prefix": REPLAY_PREFIX, "stage": stage, "stream": outputs["HistoryStream"]}
        return {**common, **own, **exchanges}
    return common
