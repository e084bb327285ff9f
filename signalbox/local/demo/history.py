"""The demo of history: the jobs count and draw the events of the other demos, all in one Spark session."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from signalbox.aws.history.report_files import download_report
from signalbox.clients.deployment import require_local
from signalbox.flows.splitting import MESSAGES
from signalbox.flows.trial import Trial, expect
from signalbox.history.jobs import DAY_SCRIPT, REPORTS
from signalbox.local.emulator.patches.firehose_buffer import DELIVERY_SECONDS
from signalbox.local.spark.history_jobs import Job, run_locally

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


CAPABILITY = "history"
BY_CAPABILITY = "SELECT capability, count(*) AS events FROM events GROUP BY capability ORDER BY capability"
BY_TOPIC = "SELECT count(*) AS topics, sum(events) AS events, sum(missing) AS missing FROM log_topics"
# The lines of each report's text that the demo shows, by their beginnings.
SHOWN = {
    "rendezvous": ("snowflake-ips-total", "client-snowflake-match-count", "client-sqs-count"),
    "splitting": ("routed", "returned"),
    "topics": ("publications",),
    "delivery": ("exchange p50",),
    "order": ("looked at", "nothing is missing"),
    "cost": ("total",),
}
MAXIMUM_DURATION = timedelta(minutes=15)  # of the demo, which may have begun before midnight


def show_history(trial: Trial, wait_for_events: Callable[[Trial], None]) -> None:
    """Run all jobs when the events of the other demos are recorded."""
    deployment, journal, days = trial.deployment, trial.journal, _days(datetime.now(UTC))
    bucket, s3 = deployment.outputs["HistoryBucket"], deployment.session().client("s3")
    parts = {*deployment.capabilities} - {CAPABILITY}
    files = [0]

    def wait() -> None:
        wait_for_events(trial)
        files[0] = wait_for_files(s3, bucket)

    with tempfile.TemporaryDirectory(prefix="signalbox-history-") as name_of_folder:
        folder = Path(name_of_folder)
        with journal.step(CAPABILITY, "Spark: compaction, six reports and the logs of topics") as timing:
            run_locally(deployment, _jobs(days, folder, has_logs="live" in parts), _ignore, when=wait)
            timing.detail = f"{files[0]} Parquet files in s3://{bucket}/raw/"
        tables = {path.name: json.loads(path.read_text())["rows"] for path in folder.iterdir()}
    with journal.step(CAPABILITY, "table events") as timing:
        events = tables["events"]
        missing = parts - {capability for capability, _ in events}
        expect(not missing, f"the table of events has no event of {', '.join(sorted(missing))}")
        timing.detail = ", ".join(f"{capability}: {count}" for capability, count in events) + "; each once"
    for logs in tables["logs"] if "live" in parts else ():
        with journal.step(CAPABILITY, "table logs") as timing:
            timing.detail = f"{logs[1]} events of {logs[0]} topics, {logs[2]} missing; text in s3://{bucket}/logs/"
    home = require_local(deployment).folder / "reports"
    for name, report in REPORTS.items():
        with journal.step(CAPABILITY, f"report {name}") as timing:
            list(download_report(s3, bucket, report, days, home / name))
            timing.detail = "; ".join(_shown(name, home / name / f"{days[-1]}.txt"))
    with journal.step(CAPABILITY, "pictures") as timing:
        if "splitting" in parts:
            _check(home / "splitting", days)
        timing.detail = f"{home}/*/{days[-1]}.svg, and on the page; `signalbox report topics --open`"


def _ignore(_line: str) -> None:
    """Discard Spark's output; an error has its end."""


def _days(now: datetime) -> list[date]:
    first, last = (now - MAXIMUM_DURATION).date(), now.date()
    return [first] if first == last else [first, last]


def _jobs(days: list[date], folder: Path, *, has_logs: bool) -> list[Job]:
    window = {"from": f"{days[0]}", "to": f"{days[-1] + timedelta(days=1)}"}
    logs: list[Job] = [("export_logs", {}), ("query", {"query": BY_TOPIC, "output": str(folder / "logs")})]
    events: Job = ("query", {"query": BY_CAPABILITY, "output": str(folder / "events")})
    return [(DAY_SCRIPT, window), events, *(logs if has_logs else [])]


def _shown(name: str, text: Path) -> Iterator[str]:
    return (line for line in text.read_text().splitlines() if line.startswith(SHOWN[name]))


def _check(home: Path, days: list[date]) -> None:
    """Raise `WrongResult` unless the report of splitting counts all messages of its demo."""
    rows: list[Mapping[str, object]] = [
        row for day in days for row in json.loads((home / f"{day}.json").read_text())["rows"]
    ]
    routed = sum(int(str(row["value"])) for row in rows if row["metric"] == "routed-total")
    expect(routed >= MESSAGES, f"{MESSAGES} messages were routed, but the report counts {routed}")


def wait_for_files(s3: "S3Client", bucket: str) -> int:
    """Return the number of files, when no new one has appeared for two of Firehose's buffering intervals."""
    count, since = 0, time.monotonic()
    while time.monotonic() - since < 2 * DELIVERY_SECONDS:
        time.sleep(DELIVERY_SECONDS / 4)
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="raw/")
        now = sum(page["KeyCount"] for page in pages)
        if now != count:
            count, since = now, time.monotonic()
    return count
