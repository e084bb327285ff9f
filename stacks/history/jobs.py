"""All Glue jobs of a stage: what each touches, when it runs, and how large it may grow."""

from collections.abc import Iterable

from aws_cdk import Aws, Duration, TimeZone
from aws_cdk import aws_glue as glue
from aws_cdk import aws_kms as kms
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from stacks.history.job import HistoryJob, Job, Times
from stacks.history.lake import HistoryLake
from stacks.settings.config import Config
from stacks.shared.schedules import SCHEDULED_TIME, Schedules
from stacks.state_stack import LOG_PREFIX, RAW_PREFIX, REPLAY_PREFIX, REPORT_PREFIX, SPLIT_REPORT_PREFIX, StateStack

EVENTS = "events"
LOGS, LOG_TOPICS = "logs", "log_topics"
DAILY = {
    "rendezvous_daily": ("Report", "rendezvous_report", REPORT_PREFIX),
    "split_daily": ("SplitReport", "split_report", SPLIT_REPORT_PREFIX),
    "topic_hourly": ("TopicReport", "topic_report", "reports/topics/"),
    "delivery_hourly": ("DeliveryReport", "delivery_report", "reports/delivery/"),
    "order_audit": ("OrderAudit", "order_audit", "reports/order/"),
    "cost_daily": ("CostReport", "cost_report", "reports/cost/"),
}
"""The reports of each day: their tables, and the names, scripts and folders of their jobs."""
DESCRIPTIONS = {
    "rendezvous_report": "The day's rendezvous statistics, as upstream's broker logs them",
    "split_report": "What was shared out of split queues in the day, and to whom",
    "topic_report": "How much was published under which topic, where it went, and what nobody got",
    "delivery_report": "How fast messages were delivered, what was tried again, and what died",
    "order_audit": "Gaps, duplicates and wrong order, topic by topic and queue by queue",
    "cost_report": "What the day's calls and bytes cost, by capability",
}
ALL_TABLES = (EVENTS, LOGS, LOG_TOPICS, *DAILY)
# A day of a billion events wants some forty; most stages never need more than two.
MOST_WORKERS = 10


class HistoryJobs(Construct):
    """The jobs by their names, with one security configuration."""

    def __init__(
        self, scope: Construct, name: str, *, state: StateStack, lake: HistoryLake, key: kms.IKey, config: Config
    ) -> None:
        super().__init__(scope, name)
        security = None if config.local else _security(self, key)
        self.jobs = {
            job_name: HistoryJob(
                scope, job_name, job=job, arguments=_arguments(job, lake), security=security, config=config
            )
            for job_name, job in jobs(state, config).items()
        }


def schedule(started: Iterable[HistoryJob], schedules: Schedules, config: Config) -> None:
    """Have each job started at its times."""
    for job in started:
        for name, times in job.what.times.items():
            hour = str(config.report_hour_utc) if times.hour is None else times.hour
            expression = scheduler.ScheduleExpression.cron(
                minute=str(times.minute), hour=hour, time_zone=TimeZone.ETC_UTC
            )
            schedules.start_job(name, job.job.job_name, arguments=times.arguments, expression=expression)


def jobs(state: StateStack, config: Config) -> dict[str, Job]:
    """Return what every job is, by its name in the template; the first ones' names are older than the others."""
    return {
        **{name: _report(table, name, script) for table, (name, script, _) in DAILY.items()},
        "CompactHistory": _compaction(config),
        "ExportLogs": Job(
            "export_logs",
            "What topics of live exchanges had, as ordered text and in the table of logs",
            reads=(LOGS, LOG_TOPICS),
            writes=(LOGS, LOG_TOPICS),
            folders=(LOG_PREFIX,),
            arguments={
                "--log_path": f"s3://{state.history_bucket.bucket_name}/{LOG_PREFIX.rstrip('/')}",
                "--live_table": state.live_table.table_name,
                "--exchange_table": state.exchange_table.table_name,
            },
            times={"ExportLogs": Times(minute=20, hour=_hours(config), arguments={})},
            uses_core=True,
            most_workers=MOST_WORKERS,
        ),
        "Replay": Job(
            "replay",
            "Messages that were published before into an exchange or a queue, at a rate",
            reads=(LOGS,),
            folders=(REPLAY_PREFIX,),
            arguments={
                "--bucket": state.history_bucket.bucket_name,
                "--prefix": REPLAY_PREFIX,
                "--stage": config.stage,
                "--exchange_prefix": config.exchange_prefix or "-",
                "--exchange_table": state.exchange_table.table_name,
            },
            uses_core=True,
            timeout=Duration.hours(24),
        ),
    }


def _report(table: str, name: str, script: str) -> Job:
    # Nobody waits for a report: spare capacity will do, and a slow start of it.
    return Job(
        script,
        DESCRIPTIONS[script],
        reads=(EVENTS, table),
        writes=(table,),
        folders=(DAILY[table][2],),
        # The day before, and once more the day before that: events may come up to a day late.
        times={name: Times(minute=10, arguments={"--day": SCHEDULED_TIME, "--days": "2"})},
        is_flex=True,
        most_workers=MOST_WORKERS,
        timeout=Duration.hours(2),
    )


def _compaction(config: Config) -> Job:
    # An hour more than there was since the last run: events may come late.
    hours = {"--to": SCHEDULED_TIME, "--hours": str(config.history_interval_hours + 1)}
    days = {"--day": SCHEDULED_TIME, "--retention_days": str(config.history_retention_days)}
    return Job(
        "compact_history",
        "What Firehose wrote, each event once, into the table of events",
        reads=ALL_TABLES,
        writes=ALL_TABLES,
        arguments={"--maintain": "no"},
        times={
            # Late enough for a minute of Firehose's buffer, and for the day's own run before it.
            "CompactHours": Times(minute=35, hour=_hours(config), arguments=hours),
            "CompactDay": Times(minute=2, arguments={**days, "--maintain": "yes"}),
        },
        most_workers=MOST_WORKERS,
    )


def _hours(config: Config) -> str:
    return f"*/{config.history_interval_hours}"


def _arguments(job: Job, lake: HistoryLake) -> dict[str, str]:
    path = f"s3://{lake.bucket.bucket_name}"
    report = {"--report_path": f"{path}/{job.folders[0].rstrip('/')}"} if job.script in DESCRIPTIONS else {}
    return {
        "--history_path": f"{path}/{RAW_PREFIX.rstrip('/')}",
        "--database": lake.database.database_name,
        "--region": Aws.REGION,
        **report,
    }


def _security(scope: Construct, key: kms.IKey) -> glue.SecurityConfiguration:
    return glue.SecurityConfiguration(
        scope,
        "Security",
        cloud_watch_encryption=glue.CloudWatchEncryption.kms(key),
        s3_encryption=glue.S3Encryption.kms(key),
        job_bookmarks_encryption=glue.JobBookmarksEncryption.client_side_kms(key),
    )
