"""The permissions of live's functions and its API, for the table in `test_permissions.py`."""

from tests.infrastructure.exchange.permissions import ITEMS, KEY_IN_USE, READ_QUEUE, SQS

COMMON = {
    "*": "xray: PutTelemetryRecords PutTraceSegments",
    "StateKey": KEY_IN_USE,
}
READ_AT_ONCE = "sqs: ChangeMessageVisibility DeleteMessage GetQueueAttributes ReceiveMessage"
SENDING = {**COMMON, "Live/Inbox": "sqs: SendMessage"}
LIVE = {
    "Live/Connections/SenderRole": {"Live/Inbox": "sqs: SendMessage", "StateKey": KEY_IN_USE},
    "Live/ConnectRole": {
        **SENDING,
        "Live/ConnectLogs": "logs: CreateLogStream PutLogEvents",
        "Live": "dynamodb: BatchGetItem GetItem PutItem Query UpdateItem",
        "Live/Timers": "sqs: SendMessage",
        "Exchanges": "dynamodb: BatchGetItem GetItem",
        "HistoryLake/Events": "firehose: PutRecordBatch",
    },
    "Live/SessionRole": {
        **SENDING,
        "Live/SessionLogs": "logs: CreateLogStream PutLogEvents",
        "Live/Inbox": f"{READ_AT_ONCE} SendMessage",
        "Live/Timers": f"{READ_QUEUE} SendMessage",
        "Live/Outbox": "sqs: SendMessage",
        "Live/OrderedDeadLetters": "sqs: SendMessage",
        "Live/OverviewCalls": "sqs: SendMessage",
        f"{SQS}:x*.fifo": "sqs: SendMessage",
        "Live": f"{ITEMS} BatchGetItem BatchWriteItem",
        "Exchanges": "dynamodb: BatchGetItem",
        "HistoryLake/Events": "firehose: PutRecordBatch",
    },
    "Live/OverviewRole": {
        **COMMON,
        "Live/OverviewLogs": "logs: CreateLogStream PutLogEvents",
        "Live/OverviewCalls": READ_AT_ONCE,
        "Live/Outbox": "sqs: SendMessage",
        "Live/OrderedDeadLetters": "sqs: SendMessage",
        "Live": "dynamodb: BatchGetItem Query",
        "Exchanges": "dynamodb: BatchGetItem Query",
        "Exchanges/index/by_kind": "dynamodb: BatchGetItem Query",
        "HistoryLake/Events": "firehose: PutRecordBatch",
        "Rendezvous": "dynamodb: Query",
        "Splits": "dynamodb: Query",
        "Splits/index/by_kind": "dynamodb: Query",
        "*": "cloudwatch: GetMetricData xray: PutTelemetryRecords PutTraceSegments",
        "History": "s3: ListBucket",
        "History/reports/*.svg": "s3: GetObject",
    },
    "Live/DeliverRole": {
        **SENDING,
        "Live/DeliverLogs": "logs: CreateLogStream PutLogEvents",
        "Live/Outbox": READ_AT_ONCE,
        "Live/OrderedDeadLetters": "sqs: SendMessage",
        "Live": "dynamodb: BatchGetItem PutItem Query",
        "Exchanges": "dynamodb: BatchGetItem",
        "HistoryLake/Events": "firehose: PutRecordBatch",
        "arn:<Partition>:execute-api:<Region>:<AccountId>:Live/Connections/WebSocket/live/*/@connections/*": (
            "execute-api: ManageConnections"
        ),
    },
    "Live/PageRole": {
        **COMMON,
        "Live/PageLogs": "logs: CreateLogStream PutLogEvents",
        "Live": "dynamodb: GetItem",
        "Exchanges": "dynamodb: GetItem Query",
        "Exchanges/index/by_kind": "dynamodb: GetItem Query",
        "Live/Inbox": "sqs: GetQueueAttributes",
        "Live/Outbox": "sqs: GetQueueAttributes",
    },
}
