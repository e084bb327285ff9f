"""IAM permissions of the history: the Firehose stream, and each Glue job for its own tables and folders."""

from collections.abc import Iterable, Iterator

from aws_cdk import Aws
from aws_cdk import aws_iam as iam

from stacks.exchange.environment import bound_queues_arn, dead_copies_arns, dead_publications_arns, exchange_queues_arn
from stacks.grants.permissions import READ_ITEMS, USE_KEY, allow, allow_items, allow_key, allow_queries, table_arns
from stacks.history.job import HistoryJob, log_prefix
from stacks.history.jobs import RAW_READERS
from stacks.history.lake import HistoryLake
from stacks.history.overflow import HistoryOverflow
from stacks.settings.config import Config
from stacks.shared.arns import arn
from stacks.shared.function import Function
from stacks.shared.keys import through
from stacks.shared.tables import BY_KIND
from stacks.state_stack import ERROR_PREFIX, KEPT_PREFIX, QUERY_PREFIX, RAW_PREFIX, TABLE_PREFIX, State

READ_TABLES = ("glue:GetDatabase", "glue:GetTable")
WRITE_OBJECTS = ("s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")
BUCKET = ("s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads")
READ_DEAD_LETTERS = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
)


def grant_delivery(lake: HistoryLake, *, state: State) -> None:
    """Allow Firehose to write history and errors, and to read the table whose schema it converts to."""
    role, bucket = lake.delivery_role, lake.bucket
    written = [bucket.arn_for_objects(f"{prefix}*") for prefix in (RAW_PREFIX, ERROR_PREFIX)]
    allow(role, ["s3:PutObject", "s3:AbortMultipartUpload", "s3:GetObject"], written)
    allow(role, BUCKET, [bucket.bucket_arn])
    allow(role, ["glue:GetTable", "glue:GetTableVersion", "glue:GetTableVersions"], table_arns(lake))
    allow(role, ["logs:PutLogEvents"], [lake.delivery_logs.log_group_arn])
    allow_key(role, state.key, service="s3")


def grant_reader(lake: HistoryLake) -> None:
    """Allow the role of queries to read tables and raw events; it writes nothing but the results of queries."""
    allow_queries(lake.reader_role, [f"{RAW_PREFIX}*", f"{TABLE_PREFIX}*"], results=QUERY_PREFIX, lake=lake)
    allow(lake.reader_role, [*READ_TABLES, "glue:GetTables"], _catalog(lake, ("*",)))


def grant_overflow(overflow: HistoryOverflow, *, writers: Iterable[Function], state: State) -> None:
    """Allow `writers` to send to the overflow queue, and `drain` to move its events to Firehose."""
    # An event source mapping reads the queue with the function's role.
    read = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
    allow(overflow.drain, read, [overflow.queue.queue_arn])
    allow(overflow.drain, ["firehose:PutRecordBatch"], [overflow.lake.stream.delivery_stream_arn])
    allow_key(overflow.drain, state.key, service="sqs")
    for function in writers:
        allow(function, ["sqs:SendMessage"], [overflow.queue.queue_arn])
        allow_key(function, state.key, service="sqs")


def grant_job(job: HistoryJob, *, lake: HistoryLake, state: State, config: Config) -> None:
    """Allow a job to read and write the tables and folders of its definition, and to log."""
    role, bucket, definition = job.role, state.history_bucket, job.definition
    folders = list(folders_of(job))
    read = [bucket.arn_for_objects(name) for name in folders]
    read += [bucket.arn_for_objects(f"{TABLE_PREFIX}{table}/*") for table in definition.reads]
    written = [bucket.arn_for_objects(name) for name in folders]
    written += [bucket.arn_for_objects(f"{TABLE_PREFIX}{table}/*") for table in definition.writes]
    if definition.script in RAW_READERS:
        read.append(bucket.arn_for_objects(f"{RAW_PREFIX}*"))
    allow(role, ["s3:GetObject"], read)
    allow(role, WRITE_OBJECTS, written)
    allow(role, BUCKET, [bucket.bucket_arn])
    # A read registers a table that the catalog has forgotten, from its files.
    allow(role, [*READ_TABLES, "glue:CreateTable"], _catalog(lake, definition.reads))
    if definition.writes:
        allow(role, ["glue:UpdateTable"], _catalog(lake, definition.writes))
    _allow_start(job, config)
    # https://docs.aws.amazon.com/glue/latest/dg/set-up-encryption.html names Encrypt, too.
    allow(role, [*USE_KEY, "kms:Encrypt"], [state.key.key_arn], through("s3"))
    if definition.script == "export_logs":
        _grant_export(role, state=state)
    if definition.script == "replay":
        _grant_replay(role, state=state, config=config)
        allow(role, ["firehose:PutRecordBatch"], [lake.stream.delivery_stream_arn])


def folders_of(job: HistoryJob) -> Iterator[str]:
    """Yield the object names of a job's folders, and the folders' own, which the S3 connector reads as files."""
    for folder in job.definition.folders:
        parts = folder.rstrip("/").split("/")
        yield from ("/".join(parts[: count + 1]) for count in range(len(parts)))
        yield f"{folder}*"


def dead_letters_arns(config: Config) -> list[str]:
    """Return the ARNs of the dead-letter queues of exchanges and of declared queues."""
    return [*dead_publications_arns(config), *dead_copies_arns(config)]


def _grant_export(role: iam.Role, *, state: State) -> None:
    allow_items(role, state.exchange_table, actions=[*READ_ITEMS, "dynamodb:BatchGetItem"], index=BY_KIND)
    allow_items(role, state.live_table, actions=READ_ITEMS)
    allow_key(role, state.key, service="dynamodb")


def _grant_replay(role: iam.Role, *, state: State, config: Config) -> None:
    allow(role, ["sqs:SendMessage", "sqs:GetQueueUrl"], [exchange_queues_arn(config), bound_queues_arn(config)])
    allow(role, READ_DEAD_LETTERS, dead_letters_arns(config))
    allow(role, ["s3:GetObject"], [state.history_bucket.arn_for_objects(f"{KEPT_PREFIX}*")])
    allow_items(role, state.exchange_table, actions=("dynamodb:GetItem",))
    allow_key(role, state.key, service="sqs")
    allow_key(role, state.key, service="dynamodb")


def _catalog(lake: HistoryLake, tables: tuple[str, ...]) -> list[str]:
    database = lake.database_name
    return [
        arn("glue", "catalog"),
        arn("glue", f"database/{database}"),
        *(arn("glue", f"table/{database}/{table}") for table in tables),
    ]


def _allow_start(job: HistoryJob, config: Config) -> None:
    """Allow the use of the files of the script, its logs and the security configuration before the script runs."""
    role = job.role
    assets = [asset.bucket.arn_for_objects(asset.s3_object_key) for asset in (job.script, job.modules)]
    allow(role, ["s3:GetObject"], assets)
    # Without ListBucket, S3 answers 403 instead of 404 to a look at a name that does not exist.
    allow(role, ["s3:GetBucketLocation", "s3:ListBucket"], [job.script.bucket.bucket_arn])
    if config.asset_key_arn:
        allow(role, ["kms:Decrypt"], [config.asset_key_arn], through("s3"))
    # AWS documents no caller, but grants it to the roles of such jobs; the action supports no resource ARNs.
    # https://github.com/awslabs/aws-solutions-constructs, aws-kinesisstreams-gluejob
    allow(role, ["glue:GetSecurityConfiguration"], ["*"])
    logs = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:{log_prefix(config)}/*"
    allow(role, ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"], [logs])
