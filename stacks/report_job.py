"""The Glue jobs that make the daily reports from history."""

from dataclasses import dataclass

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from stacks import packaging
from stacks.alarms import alarm
from stacks.config import Config
from stacks.state_stack import RAW_PREFIX, REPORT_PREFIX, SPLIT_REPORT_PREFIX

SCRIPTS = packaging.ROOT / "glue_jobs"


@dataclass(frozen=True, slots=True)
class Report:
    """What a job reports: the name of its script, where its reports go, and what they are."""

    script: str
    prefix: str
    description: str


RENDEZVOUS = Report(
    "rendezvous_report", REPORT_PREFIX, "The day's rendezvous statistics, as upstream's broker logs them"
)
SPLITTING = Report("split_report", SPLIT_REPORT_PREFIX, "What was shared out of split queues in the day, and to whom")


class ReportJob(Construct):
    """A report on the smallest cluster that Glue has; permissions are in `grants.py`."""

    def __init__(
        self, scope: Construct, name: str, *, report: Report, bucket: s3.IBucket, key: kms.IKey, config: Config
    ) -> None:
        super().__init__(scope, name)
        self.script = assets.Asset(self, "Script", path=str(SCRIPTS / f"{report.script}.py"))
        self.modules = assets.Asset(self, "Modules", path=str(packaging.glue_modules().path))
        self.role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("glue.amazonaws.com"))
        self.job = self._job(report, bucket=bucket, key=key, config=config)
        self.job.node.add_dependency(self.role)
        self.alarm = self._alarm(config)

    def _job(self, report: Report, *, bucket: s3.IBucket, key: kms.IKey, config: Config) -> glue.PySparkEtlJob:
        return glue.PySparkEtlJob(
            self,
            "Job",
            job_name=f"{config.stage}-{report.script.replace('_', '-')}",
            description=report.description,
            role=self.role.without_policy_updates(),
            script=glue.Code.from_bucket(self.script.bucket, self.script.s3_object_key),
            extra_python_files=[glue.Code.from_bucket(self.modules.bucket, self.modules.s3_object_key)],
            glue_version=glue.GlueVersion.V5_1,
            worker_configuration=glue.WorkerConfiguration(worker_type=glue.WorkerType.G_1X, number_of_workers=2),
            default_arguments=_arguments(bucket, report),
            security_configuration=None if config.local else _security(self, key),
            max_concurrent_runs=1,
            max_retries=1,
            timeout=Duration.minutes(30),
        )

    def _alarm(self, config: Config) -> cloudwatch.Alarm:
        return alarm(
            self,
            "Failed",
            metric=self.job.metric_failure(period=Duration.minutes(5), statistic="Sum"),
            description="The daily report failed; it can be run again for any day.",
            config=config,
        )


def _arguments(bucket: s3.IBucket, report: Report) -> dict[str, str]:
    return {
        "--history_path": f"s3://{bucket.bucket_name}/{RAW_PREFIX.rstrip('/')}",
        "--report_path": f"s3://{bucket.bucket_name}/{report.prefix.rstrip('/')}",
        # Glue 5.1 looks for buckets in us-east-2 unless it is told.
        "--conf": f"spark.hadoop.fs.s3a.endpoint.region={Aws.REGION}",
    }


def _security(scope: Construct, key: kms.IKey) -> glue.SecurityConfiguration:
    return glue.SecurityConfiguration(
        scope,
        "Security",
        cloud_watch_encryption=glue.CloudWatchEncryption.kms(key),
        s3_encryption=glue.S3Encryption.kms(key),
        job_bookmarks_encryption=glue.JobBookmarksEncryption.client_side_kms(key),
    )
