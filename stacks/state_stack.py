"""The state stack: keys, tables, the history bucket with its database, and secrets, which survive a redeploy."""

from collections.abc import Sequence

from aws_cdk import Duration, RemovalPolicy, SecretValue, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_glue as glue
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from stacks.settings.config import Config
from stacks.shared.keys import Key
from stacks.shared.tables import exchange_table, lease_table, live_table, rendezvous_table, split_table

STATE_SERVICES = ("dynamodb", "firehose", "s3", "secretsmanager")
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
    """The keys and the data of capabilities: of `parts`, or of those that the configuration names.

    Without `keys`, one for queues and one for all else are made.
    """

    rendezvous_table: dynamodb.Table
    lease_table: dynamodb.Table
    client_secret: secretsmanager.Secret
    split_table: dynamodb.Table
    exchange_table: dynamodb.Table
    live_table: dynamodb.Table
    live_pepper: secretsmanager.Secret
    history_bucket: s3.Bucket
    history_database: glue.Database

    def __init__(
        self,
        scope: Construct,
        *,
        config: Config,
        keys: tuple[kms.IKey, kms.IKey] | None = None,
        parts: Sequence[str] | None = None,
    ) -> None:
        # What a failed first deployment created is deleted, so that the next attempt finds no name taken and no key
        # remains that costs money. Tables stay even then: deletion protection would make the rollback fail.
        removal = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if config.keeps_state else RemovalPolicy.DESTROY
        table_removal = RemovalPolicy.RETAIN if config.keeps_state else RemovalPolicy.DESTROY
        # The client's credentials are public and may use the queue key: state has a key of its own.
        made = keys or (_queue_key(scope, removal), _state_key(scope, removal))
        self.queue_key: kms.IKey = made[0]
        self.state_key: kms.IKey = made[1]
        stored, key = config.stored_parts if parts is None else parts, self.state_key
        if "rendezvous" in stored:
            self.rendezvous_table = rendezvous_table(scope, key=key, removal=table_removal)
            self.lease_table = lease_table(scope, key=key, removal=table_removal)
            self.client_secret = _client_secret(scope, key=key, removal=removal)
        if "splitting" in stored:
            self.split_table = split_table(scope, key=key, removal=table_removal)
        if "exchange" in stored:
            self.exchange_table = exchange_table(scope, key=key, removal=table_removal)
        if "live" in stored:
            self.live_table = live_table(scope, key=key, removal=table_removal)
            self.live_pepper = _live_pepper(scope, key=key, removal=removal)
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
            elif isinstance(child, secretsmanager.Secret):
                self.export_value(child.secret_arn)
        self.export_value(self.state.queue_key.key_arn)
        self.export_value(self.state.state_key.key_arn)


def _queue_key(scope: Construct, removal: RemovalPolicy) -> Key:
    return Key(scope, "QueueKey", description="Queues", services=("sqs",), removal=removal)


def _state_key(scope: Construct, removal: RemovalPolicy) -> Key:
    key = Key(scope, "StateKey", description="Tables, history, logs", services=STATE_SERVICES, removal=removal)
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
        s3.LifecycleRule(
            id="kept",
            prefix=KEPT_PREFIX,
            expiration=Duration.days(KEPT_DAYS + 1),
            noncurrent_version_expiration=Duration.days(1),
        ),
        s3.LifecycleRule(id="queries", prefix=QUERY_PREFIX, expiration=Duration.days(1)),
        s3.LifecycleRule(id="audits", prefix=AUDIT_PREFIX, expiration=Duration.days(1)),
        s3.LifecycleRule(
            id="leftovers",
            noncurrent_version_expiration=Duration.days(30),
            # Delete markers without versions would stay for ever and slow down every listing.
            expired_object_delete_marker=True,
            abort_incomplete_multipart_upload_after=Duration.days(1),
        ),
    ]


def _client_secret(scope: Construct, *, key: kms.IKey, removal: RemovalPolicy) -> secretsmanager.Secret:
    return secretsmanager.Secret(
        scope,
        "ClientKey",
        description="Access key of the limited Snowflake client, put here by `signalbox rendezvous credentials`",
        # By its ARN: with the key construct, CDK would add wildcards to the secret's policy.
        encryption_key=kms.Key.from_key_arn(scope, "SecretKey", key.key_arn),
        # Empty on purpose: an access key that the template creates would be readable in its outputs.
        secret_string_value=SecretValue.unsafe_plain_text("{}"),
        removal_policy=removal,
    )


def _live_pepper(scope: Construct, *, key: kms.IKey, removal: RemovalPolicy) -> secretsmanager.Secret:
    return secretsmanager.Secret(
        scope,
        "LivePepper",
        description="The key of challenges for unknown users, so that responses do not reveal which users exist",
        encryption_key=kms.Key.from_key_arn(scope, "PepperKey", key.key_arn),
        generate_secret_string=secretsmanager.SecretStringGenerator(password_length=43, exclude_punctuation=True),
        removal_policy=removal,
    )
