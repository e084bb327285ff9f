"""The expected permissions of the history jobs."""

GLUE = "arn:<Partition>:glue:<Region>:<AccountId>"
EXCHANGES = "arn:<Partition>:sqs:<Region>:<AccountId>:x*"
QUEUES = "arn:<Partition>:sqs:<Region>:<AccountId>:q_*"
KEY_IN_USE = "Decrypt GenerateDataKey"
READ, WRITE = "GetObject", "AbortMultipartUpload DeleteObject PutObject"
LOOK = "GetDatabase GetTable"
LETTERS = "sqs: ChangeMessageVisibility DeleteMessage GetQueueAttributes GetQueueUrl ReceiveMessage"


def job(*folders: str, reads: tuple[str, ...] = (), writes: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the permissions of a job with its folders and tables."""
    tables = {*reads, *writes}
    catalog = f"glue: {LOOK} CreateTable {'UpdateTable' if writes else ''}"
    return {
        "History": "s3: GetBucketLocation ListBucket ListBucketMultipartUploads",
        **{f"History/{folder}": f"s3: {READ} {WRITE}" for folder in folders},
        **{f"History/tables/{table}/*": f"s3: {READ} {WRITE if table in writes else ''}" for table in tables},
        f"{GLUE}:catalog": catalog,
        f"{GLUE}:database/signalbox_lake": catalog,
        **{
            f"{GLUE}:table/signalbox_lake/{table}": (
                f"glue: {LOOK} CreateTable {'UpdateTable' if table in writes else ''}"
            )
            for table in tables
        },
        "<asset>": "s3: GetBucketLocation GetObject ListBucket",
        "*": "glue: GetSecurityConfiguration",
        "arn:<Partition>:logs:<Region>:<AccountId>:log-group:/signalbox/signalbox/jobs/*": (
            "logs: CreateLogGroup CreateLogStream PutLogEvents"
        ),
        "StateKey": f"kms: {KEY_IN_USE} Encrypt",
    }


def report(folder: str, table: str) -> dict[str, str]:
    """Return the permissions of a report: read the events, and read and write its table."""
    return job("reports", f"reports/{folder}", f"reports/{folder}/*", reads=("events",), writes=(table,))


REPORTS = {
    "Report": ("rendezvous", "rendezvous_daily"),
    "SplitReport": ("splitting", "split_daily"),
    "TopicReport": ("topics", "topic_hourly"),
    "DeliveryReport": ("delivery", "delivery_hourly"),
    "OrderAudit": ("order", "order_audit"),
    "CostReport": ("cost", "cost_daily"),
}
TABLES = ("events", "logs", "log_topics", *(table for _, table in REPORTS.values()))
STARTED = {"CompactHours": "CompactHistory", "Day": "Day", "ExportLogs": "ExportLogs"}
HISTORY: dict[str, dict[str, str]] = {
    "HistoryLake/ReaderRole": {
        "arn:<Partition>:athena:<Region>:<AccountId>:workgroup/signalbox_lake": (
            "athena: GetQueryExecution GetQueryResults StartQueryExecution"
        ),
        **dict.fromkeys(
            (f"{GLUE}:catalog", f"{GLUE}:database/signalbox_lake", f"{GLUE}:table/signalbox_lake/*"),
            f"glue: {LOOK} GetTables",
        ),
        f"{GLUE}:database/default": "glue: GetDatabase",
        "History": "s3: GetBucketLocation ListBucket",
        "History/raw/*": "s3: GetObject",
        "History/tables/*": "s3: GetObject",
        "History/queries/*": "s3: AbortMultipartUpload GetObject PutObject",
        "StateKey": f"kms: {KEY_IN_USE}",
    },
    **{f"{name}/Role": report(folder, table) for name, (folder, table) in REPORTS.items()},
    "CompactHistory/Role": {**job("index", "index/*", reads=TABLES, writes=TABLES), "History/raw/*": "s3: GetObject"},
    "Day/Role": {
        **job("reports", "reports/*", "index", "index/*", reads=TABLES, writes=TABLES),
        "History/raw/*": "s3: GetObject",
    },
    "ExportLogs/Role": {
        **job("logs", "logs/*", writes=("logs", "log_topics")),
        "Exchanges": "dynamodb: BatchGetItem GetItem Query",
        "Exchanges/index/by_kind": "dynamodb: BatchGetItem GetItem Query",
        "Live": "dynamodb: GetItem Query",
    },
    "Replay/Role": {
        **job("replays", "replays/*", reads=("logs",)),
        "History/kept/*": "s3: GetObject",
        "Exchanges": "dynamodb: GetItem",
        EXCHANGES: "sqs: GetQueueUrl SendMessage",
        QUEUES: "sqs: GetQueueUrl SendMessage",
        **{f"{queues}-dlq{ending}": LETTERS for queues in (EXCHANGES, QUEUES) for ending in ("", ".fifo")},
        "HistoryLake/Events": "firehose: PutRecordBatch",
    },
}
