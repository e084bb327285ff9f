"""The Glue jobs of a stage: tables, folders, schedules and maximum size of each."""

from collections.abc import Iterable

from aws_cdk import Aws, Duration, RemovalPolicy, TimeZone
from aws_cdk import aws_glue as glue
from aws_cdk import aws_kms as kms
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from stacks.history.job import HistoryJob, JobDefinition, JobSchedule, log_prefix
from stacks.history.lake import HistoryLake
from stacks.settings.config import Config
from stacks.shared.logs import LogGroup
from stacks.shared.schedules import SCHEDULED_TIME, Schedules
from stacks.state_stack import (
    INDEX_PREFIX,
    LOG_PREFIX,
    RAW_PREFIX,
    REPLAY_PREFIX,
    REPORT_PREFIX,
    SPLIT_REPORT_PREFIX,
    State,
)

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
"""The daily reports by table, each with the name, script and folder of its job."""
REPORTED = {"rendezvous_daily": "rendezvous", "split_daily": "splitting", "cost_daily": "history"}
"""The capabilities of reports by table; the other reports are of the exchange."""
DESCRIPTIONS = {
    "rendezvous_report": "The day's rendezvous statistics, as upstream's broker logs them",
    "split_report": "The day's messages of split queues by session, with returns and dead letters",
    "topic_report": "Publications, copies and unrouted messages by topic",
    "delivery_report": "Delivery times, retries and dead letters",
    "order_audit": "Gaps, duplicates and reordered messages by topic and queue",
    "cost_report": "The cost of the day's calls and bytes by capability",
}
ALL_TABLES = (EVENTS, LOGS, LOG_TOPICS, *DAILY)
REPORTS_FOLDER = "reports/"  # the folders of all reports are below it
RAW_READERS = ("compact_history", "day")
"""The scripts that read the raw events."""
# A day of a billion events needs about forty workers; most stages never need more than two.
MAX_WORKERS = 10
HOURS_OF_A_DAY = 24
# Glue 5: the names of log groups after the prefix.
# https://docs.aws.amazon.com/glue/latest/dg/monitor-continuous-logging.html
LOG_KINDS = ("error", "output")


class HistoryJobs(Construct):
    """The jobs by name, with one security configuration."""

    def __init__(self, scope: Construct, name: str, *, state: State, lake: HistoryLake, config: Config) -> None:
        super().__init__(scope, name)
        key = state.key
        security = None if config.local else _security(self, key)
        self.jobs = {
            job_name: HistoryJob(
                scope, job_name, job=job, arguments=_arguments(job, lake), security=security, config=config
            )
            for job_name, job in job_definitions(state, config).items()
        }
        # Groups that Glue makes have no retention, and remain when the stack is deleted.
        for kind in LOG_KINDS:
            logs = LogGroup(
                self, f"{kind.capitalize()}Logs", key=key, config=config, log_group_name=f"{log_prefix(config)}/{kind}"
            )
            for job in self.jobs.values():
                job.role.node.add_dependency(logs)  # so that no run makes the group again after its deletion


def schedule(jobs: Iterable[HistoryJob], schedules: Schedules, config: Config) -> None:
    """Create the schedules of each job."""
    for job in jobs:
        for name, started_at in job.definition.schedules.items():
            hour = str(config.report_hour_utc) if started_at.hour is None else started_at.hour
            expression = scheduler.ScheduleExpression.cron(
                minute=str(started_at.minute), hour=hour, time_zone=TimeZone.ETC_UTC
            )
            schedules.start_job(name, job.job.job_name, arguments=started_at.arguments, expression=expression)


def job_definitions(state: State, config: Config) -> dict[str, JobDefinition]:
    """Return the definitions of the jobs of the stage's capabilities by construct id."""
    reports = {table: job for table, job in DAILY.items() if config.has(REPORTED.get(table, "exchange"))}
    return {
        **{name: _report(table, script) for table, (name, script, _) in reports.items()},
        "CompactHistory": _compaction(state, config),
        "Day": _day(state, config),
        **(_export(state, config) if config.has("live") else {}),
        **(_replay(state, config) if config.has("exchange") else {}),
    }


def _export(state: State, config: Config) -> dict[str, JobDefinition]:
    return {
        "ExportLogs": JobDefinition(
            "export_logs",
            "The events of live exchanges by topic, as ordered text and in the table logs",
            reads=(LOGS, LOG_TOPICS),
            writes=(LOGS, LOG_TOPICS),
            folders=(LOG_PREFIX,),
            arguments={
                "--log_path": f"s3://{state.history_bucket.bucket_name}/{LOG_PREFIX.rstrip('/')}",
                "--live_table": state.live_table.table_name,
                "--exchange_table": state.exchange_table.table_name,
            },
            schedules={"ExportLogs": JobSchedule(minute=20, hour=_hours(config), arguments={})},
            # No user waits for a daily export, either.
            is_flex=config.history_interval_hours == HOURS_OF_A_DAY,
            uses_core=True,
            max_workers=MAX_WORKERS,
        )
    }


def _replay(state: State, config: Config) -> dict[str, JobDefinition]:
    return {
        "Replay": JobDefinition(
            "replay",
            "A replay of published or kept messages into an exchange or a queue, at a limited rate",
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
        )
    }


def _report(table: str, script: str) -> JobDefinition:
    # The job `day` makes every day's reports; these jobs make a single report again.
    return JobDefinition(
        script,
        DESCRIPTIONS[script],
        reads=(EVENTS, table),
        writes=(table,),
        folders=(DAILY[table][2],),
        is_flex=True,
        max_workers=MAX_WORKERS,
        timeout=Duration.hours(2),
    )


def _day(state: State, config: Config) -> JobDefinition:
    # The previous day, and the reports of the day before it again: events may arrive up to a day late.
    days = {"--day": SCHEDULED_TIME, "--days": "2", "--compact_days": "1"}
    cleaning = {"--retention_days": str(config.history_retention_days), "--maintain": "yes"}
    return JobDefinition(
        "day",
        "The day's events, their index by id and all reports, in one application",
        reads=ALL_TABLES,
        writes=ALL_TABLES,
        folders=(REPORTS_FOLDER, INDEX_PREFIX),
        arguments=_of_compaction(state),
        schedules={"Day": JobSchedule(minute=2, arguments={**days, **cleaning})},
        # No user waits for a daily report: spare capacity that starts slowly is enough.
        is_flex=True,
        max_workers=MAX_WORKERS,
        timeout=Duration.hours(4),
    )


def _compaction(state: State, config: Config) -> JobDefinition:
    # One hour more than the interval between runs: events may arrive late.
    hours = {"--to": SCHEDULED_TIME, "--hours": str(config.history_interval_hours + 1)}
    # After Firehose's buffer interval of a minute.
    hourly = {"CompactHours": JobSchedule(minute=35, hour=_hours(config), arguments=hours)}
    return JobDefinition(
        "compact_history",
        "Firehose's raw events, deduplicated, into the table events and the index by id",
        reads=ALL_TABLES,
        writes=ALL_TABLES,
        folders=(INDEX_PREFIX,),
        arguments=_of_compaction(state),
        # Once a day is enough: the job `day` compacts the whole day.
        schedules={} if config.history_interval_hours == HOURS_OF_A_DAY else hourly,
        max_workers=MAX_WORKERS,
    )


def _of_compaction(state: State) -> dict[str, str]:
    return {
        "--maintain": "no",
        "--index_path": f"s3://{state.history_bucket.bucket_name}/{INDEX_PREFIX.rstrip('/')}",
    }


def _hours(config: Config) -> str:
    # Once a day is a single hour: `*/24` is a step beyond the field's 0 to 23.
    return "0" if config.history_interval_hours == HOURS_OF_A_DAY else f"*/{config.history_interval_hours}"


def _arguments(job: JobDefinition, lake: HistoryLake) -> dict[str, str]:
    path = f"s3://{lake.bucket.bucket_name}"
    has_reports = job.script in (*DESCRIPTIONS, "day")
    report = {"--report_path": f"{path}/{job.folders[0].rstrip('/')}"} if has_reports else {}
    return {
        "--history_path": f"{path}/{RAW_PREFIX.rstrip('/')}",
        "--database": lake.database_name,
        "--region": Aws.REGION,
        **report,
        **({"--stream": lake.stream.delivery_stream_name} if job.script == "replay" else {}),
    }


def _security(scope: Construct, key: kms.IKey) -> glue.SecurityConfiguration:
    return glue.SecurityConfiguration(
        scope,
        "Security",
        # Without the encryption of logs: with it, Glue writes to other groups, named after role and configuration,
        # which would have no retention. The groups of the stage have the key themselves.
        # https://docs.aws.amazon.com/glue/latest/webapi/API_JobRun.html#Glue-Type-JobRun-LogGroupName
        s3_encryption=glue.S3Encryption.kms(key),
        job_bookmarks_encryption=glue.JobBookmarksEncryption.client_side_kms(key),
        # CDK gives it a fixed name and retains it, which would block the next deployment of the stack.
        removal_policy=RemovalPolicy.DESTROY,
    )
