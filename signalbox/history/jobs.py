"""The jobs over history: what each is told by its definition in Glue, and which of them report days."""

from collections.abc import Mapping
from dataclasses import dataclass

REPLAYS = "replays/"  # in the bucket, as the other folders are
NO_PREFIX = "-"
FILES = {"text": "txt", "picture": "svg", "json": "json"}
"""The folders of a report, and the endings of their files."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report: the script of its job, and its folder in the bucket."""

    script: str
    folder: str

    def key(self, kind: str, day: str) -> str:
        """Return the name of a day's file: its `text`, `picture` or `json`."""
        return f"{self.folder}/{kind}/day={day}.{FILES[kind]}"


REPORTS = {
    "rendezvous": Report("rendezvous_report", "reports/rendezvous"),
    "splitting": Report("split_report", "reports/splitting"),
    "topics": Report("topic_report", "reports/topics"),
    "delivery": Report("delivery_report", "reports/delivery"),
    "order": Report("order_audit", "reports/order"),
    "cost": Report("cost_report", "reports/cost"),
}


def job_arguments(script: str, outputs: Mapping[str, str], *, region: str, stage: str) -> dict[str, str]:
    """Return what a script is told by the definition of its job; the local stage's Glue would not run it.

    Raises `KeyError` when the stage has no such output.
    """
    bucket = outputs["HistoryBucket"]
    told = {"database": outputs["HistoryDatabase"], "region": region}
    folders = {report.script: report.folder for report in REPORTS.values()}
    if script in folders:
        return {**told, "report_path": f"s3://{bucket}/{folders[script]}"}
    raw = {"history_path": f"s3://{bucket}/raw"}
    if script == "compact_history":
        return {**told, **raw, "maintain": "no"}
    if script == "query":
        return {**told, **raw}
    if script == "export_logs":
        tables = {"live_table": outputs["LiveTable"], "exchange_table": outputs["ExchangeTable"]}
        return {**told, "log_path": f"s3://{bucket}/logs", **tables}
    if script == "replay":
        exchanges = {
            "exchange_prefix": outputs["ExchangePrefix"] or NO_PREFIX,
            "exchange_table": outputs["ExchangeTable"],
        }
        return {**told, "bucket": bucket, "prefix": REPLAYS, "stage": stage, **exchanges}
    return told
