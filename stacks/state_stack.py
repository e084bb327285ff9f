"""The state stack: the key, tables, and the history bucket with its database, which survive a redeploy."""

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_glue as glue
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from stacks.settings.config import Config
from stacks.shared.keys import Key
from stacks.shared.tables import exchange_table, lease_table, live_table, rendezvous_table, split_table

SERVICES = ("dynamodb", "firehose", "s3", "sqs")
RAW_PREFIX = "raw/"
TABLE_PREFIX = "tables/"  # of the Iceberg tables, which the jobs create
INDEX_PREFIX = "index/"  # of the events by id, which compaction writes
REPORTS = "reports/"
REPORT_PREFIX = f"{REPORTS}rendezvous/"
SPLIT_REPORT_PREFIX = f"{REPORTS}splitting/"
ERROR_PREFIX = "errors/"
LOG_PREFIX = "logs/"
REPLAY_PREFIX = "replays/"
KEPT_PREFIX = "kept/"
KEPT_DAYS = 14  # the longest time for which messages can be kept
# The prefix of Athena's results for `split audit`, which only the function `control` of splitting reads and writes.
AUDIT_PREFIX = "audits/"
# The prefix of Athena's results for `history query`; they can contain payloads.
QUERY_PREFIX = "queries/"


class State:
    """The key and the data of capabilities: of `parts`, or of those that the configuration names.

    Without `key`, one is made. With `exchange`, the state of an exchange, its key and its table are used.
    """

    rendezvous_table: dynamodb.Table
    lease_table: dynamodb.Table
    split_table: dynamodb.Table
    exchange_table: dynamodb.Table
    live_table: dynamodb.Table
    history_bucket: s3.Bucket
    history_database: glue.Database

    def __init__(
        self,
        scope: Construct,
        *,
        config: Config,
        key: kms.IKey | None = None,
        parts: Sequence[str] | None = None,
        exchange: "State | None" = None,
    ) -> None:
        # What a failed first deployment created is deleted, so that the next attempt finds no name taken and no key
        # remains that costs money. Tables stay even then: deletion protection would make the rollback fail.
        removal = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if config.keeps_state else RemovalPolicy.DESTROY
        table_removal = RemovalPolicy.RETAIN if config.keeps_state else RemovalPolicy.DESTROY
        if exchange is not None:
            key, self.exchange_table = exchange.key, exchange.exchange_table
        key = key or _key(scope, removal)
        self.key: kms.IKey = key
        stored = config.stored_parts if parts is None else parts
        if "rendezvous" in stored:
            self.rendezvous_table = rendezvous_table(scope, key=key, removal=table_removal)
            self.lease_table = lease_table(scope, key=key, removal=table_removal)
        if "splitting" in stored:
            self.split_table = split_table(scope, key=key, removal=table_removal)
        if "exchange" in stored:
            self.exchange_table = exchange_table(scope, key=key, removal=table_removal)
        if "live" in stored:
            self.live_table = live_table(scope, key=key, removal=table_removal)
        if "history" in stored:
            self.history_bucket = _history_bucket(scope, config=config, key=key, removal=removal)
            self.history_database = _history_database(scope, self.history_bucket, config=config, removal=removal)


class StateStack(Stack):
    """All resources with state, retained on deletion: those of the capabilities that the stage has or had."""

    def __init__(self, scope: Construct, name: str, *, config: Config, **options: object) -> None:
        super().__init__(scope, name, **options)  # type: ignore[arg-type]  # passed through to the stack
        self.state = State(self, config=config)
        self._export()

    def _export(self) -> None:
        """Export all names, used or not: CloudFormation removes no export that is still imported.

        A stage that loses a capability updates this stack first.
        """
        for child in self.node.children:
            if isinstance(child, dynamodb.Table):
                self.export_value(child.table_name)
                self.export_value(child.table_arn)
            elif isinstance(child, s3.Bucket):
                self.export_value(child.bucket_name)
                self.export_value(child.bucket_arn)
        self.export_value(self.state.key.key_arn)


def _key(scope: Construct, removal: RemovalPolicy) -> Key:
    key = Key(scope, "StateKey", description="Queues, tables, history, logs", services=SERVICES, removal=removal)
    key.serve_logs()
    return key


def _history_bucket(scope: Construct, *, config: Config, key: kms.IKey, removal: RemovalPolicy) -> s3.Bucket:
    return s3.Bucket(
        scope,
        "History",
        encryption=s3.BucketEncryption.KMS,
        encryption_key=key,
        bucket_key_enabled=True,
        enforce_ssl=True,
        minimum_tls_version=1.2,
        versioned=True,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        lifecycle_rules=_lifecycle(config),
        removal_policy=removal,
    )


def _history_database(scope: Construct, bucket: s3.Bucket, *, config: Config, removal: RemovalPolicy) -> glue.Database:
    """Create the database, whose deletion would remove all Iceberg tables from the catalog."""
    return glue.Database(
        scope,
        "HistoryDatabase",
        database_name=config.history_database,
        location_uri=f"s3://{bucket.bucket_name}/{TABLE_PREFIX.rstrip('/')}",
        removal_policy=removal,
    )


def _lifecycle(config: Config) -> list[s3.LifecycleRule]:
    return [
        s3.LifecycleRule(id="raw", prefix=RAW_PREFIX, expiration=Duration.days(config.history_retention_days)),
        s3.LifecycleRule(id="errors", prefix=ERROR_PREFIX, expiration=Duration.days(30)),
        # A replay cannot continue after the items that it began with have expired, which is earlier.
        s3.LifecycleRule(id="replays", prefix=REPLAY_PREFIX, expiration=Duration.days(30)),
        # The upper bound: `control` deletes kept messages on time, with all their versions.
        _with_versions("kept", KEPT_PREFIX, days=KEPT_DAYS + 1),
        _with_versions("queries", QUERY_PREFIX, days=1),
        _with_versions("audits", AUDIT_PREFIX, days=1),
        s3.LifecycleRule(
            id="leftovers",
            noncurrent_version_expiration=Duration.days(30),
            # Delete markers without versions would stay for ever and slow down every listing.
            expired_object_delete_marker=True,
            abort_incomplete_multipart_upload_after=Duration.days(1),
        ),
    ]


def _with_versions(name: str, prefix: str, *, days: int) -> s3.LifecycleRule:
    """Return the rule for objects with messages, whose versions expire a day later."""
    expiration, versions = Duration.days(days), Duration.days(1)
    return s3.LifecycleRule(id=name, prefix=prefix, expiration=expiration, noncurrent_version_expiration=versions)
