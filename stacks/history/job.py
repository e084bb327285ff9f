"""A Glue job of the history: script, modules, size, schedules, role and alarm."""

from dataclasses import dataclass, field

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from stacks.settings.config import Config
from stacks.shared import packaging
from stacks.shared.alarms import alarm

SCRIPTS = packaging.ROOT / "glue_jobs"
# Glue's minimum is a driver and one worker; auto scaling adds workers while tasks wait.
MIN_WORKERS = 2
FORMATS = "iceberg"  # of --datalake-formats, which installs the library
CATALOG = "spark.sql.catalog.glue_catalog"
# Equal to the settings in signalbox/local/spark/jobs.py; a test compares the two. The database sets the tables' path.
SETTINGS = {
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    CATALOG: "org.apache.iceberg.spark.SparkCatalog",
    f"{CATALOG}.catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
    f"{CATALOG}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
}
# Without this setting Glue 5.1 searches buckets in us-east-2.
REGION = {"spark.hadoop.fs.s3a.endpoint.region": Aws.REGION}


@dataclass(frozen=True, slots=True)
class JobSchedule:
    """A cron schedule of a job in UTC, with the arguments of its runs; `hour` None means the hour of reports."""

    minute: int
    arguments: dict[str, str]
    hour: str | None = None


@dataclass(frozen=True, slots=True)
class JobDefinition:
    """The definition of a job: its script, the Iceberg tables and bucket folders that it may access, and its size.

    A job with `is_flex` runs on spare capacity, costs a third less and may start late. `uses_core` adds the core's
    modules to its package.
    """

    script: str
    description: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    arguments: dict[str, str] = field(default_factory=dict)
    schedules: dict[str, JobSchedule] = field(default_factory=dict)
    is_flex: bool = False
    uses_core: bool = False
    max_workers: int = MIN_WORKERS
    timeout: Duration = Duration.minutes(30)  # noqa: RUF009 - durations are immutable


class HistoryJob(Construct):
    """A Glue 5.1 job with at most one concurrent run; its permissions are in `stacks/grants/history.py`."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        job: JobDefinition,
        arguments: dict[str, str],
        security: glue.SecurityConfiguration | None,
        config: Config,
    ) -> None:
        super().__init__(scope, name)
        self.definition = job
        modules = packaging.glue_modules(with_core=job.uses_core)
        self.script = assets.Asset(self, "Script", path=str(SCRIPTS / f"{job.script}.py"))
        self.modules = assets.Asset(self, "Modules", path=str(modules.path))
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("glue.amazonaws.com"))
        self.job = self._job(job, arguments, security, config=config)
        self.job.node.add_dependency(self.role)
        self.unsuccessful_runs = self._unsuccessful_runs()
        self._alarm(job, config)

    def _job(
        self,
        job: JobDefinition,
        arguments: dict[str, str],
        security: glue.SecurityConfiguration | None,
        *,
        config: Config,
    ) -> glue.PySparkEtlJob | glue.PySparkFlexEtlJob:
        kind = glue.PySparkFlexEtlJob if job.is_flex else glue.PySparkEtlJob
        return kind(
            self,
            "Job",
            job_name=f"{config.stage}-{job.script.replace('_', '-')}",
            description=job.description,
            role=self.role.without_policy_updates(),
            script=glue.Code.from_bucket(self.script.bucket, self.script.s3_object_key),
            extra_python_files=[glue.Code.from_bucket(self.modules.bucket, self.modules.s3_object_key)],
            glue_version=glue.GlueVersion.V5_1,
            worker_configuration=glue.WorkerConfiguration(
                worker_type=glue.WorkerType.G_1X, number_of_workers=job.max_workers
            ),
            default_arguments={
                **arguments,
                **job.arguments,
                "--datalake-formats": FORMATS,
                "--conf": _spark_conf(),
                "--enable-auto-scaling": "true",
                "--custom-logGroup-prefix": log_prefix(config),
            },
            # The alarm and the dashboard count the ends of runs; CDK would enable about 30 metrics of each run.
            enable_metrics=False,
            enable_observability_metrics=False,
            security_configuration=security,
            max_concurrent_runs=1,
            max_retries=1,
            timeout=job.timeout,
        )

    def _alarm(self, job: JobDefinition, config: Config) -> None:
        alarm(
            self,
            "Failed",
            metric=self.unsuccessful_runs,
            description=f"A run of the job {job.script} failed, timed out or was stopped. Glue retries a failed run "
            "once; runs can be repeated.",
            config=config,
        )

    def _unsuccessful_runs(self) -> cloudwatch.Metric:
        # A run that ends sends one event «Glue Job State Change» with its final state.
        rule = events.Rule(
            self,
            "Unsuccessful",
            description=f"Runs of {self.definition.script} that ended without success",
            event_pattern=events.EventPattern(
                source=["aws.glue"],
                detail_type=["Glue Job State Change"],
                detail={"jobName": [self.job.job_name], "state": [{"anything-but": ["SUCCEEDED"]}]},
            ),
        )
        return cloudwatch.Metric(
            namespace="AWS/Events",
            metric_name="TriggeredRules",
            dimensions_map={"RuleName": rule.rule_name},
            period=Duration.minutes(5),
            statistic="Sum",
        )


def log_prefix(config: Config) -> str:
    """Return the common prefix of the log groups of a stage's jobs; a test compares it with that of `destroy`."""
    return f"/signalbox/{config.stage}/jobs"


def _spark_conf() -> str:
    """Return the value of a Glue job's single `--conf`; it contains the flag `--conf` before each further setting."""
    return " --conf ".join(f"{key}={value}" for key, value in (SETTINGS | REGION).items())
