"""The permissions of the exchange's functions, for the table in `test_permissions.py`."""

ITEMS = "dynamodb: DeleteItem GetItem PutItem Query UpdateItem"
KEY_IN_USE = "kms: Decrypt GenerateDataKey"
SQS = "arn:<Partition>:sqs:<Region>:<AccountId>"
MAPPINGS = "arn:<Partition>:lambda:<Region>:<AccountId>:event-source-mapping:*"
READ_QUEUE = "sqs: DeleteMessage GetQueueAttributes ReceiveMessage"
READ_AND_HIDE = "sqs: ChangeMessageVisibility DeleteMessage GetQueueAttributes ReceiveMessage"
PEEK = "sqs: ChangeMessageVisibility ReceiveMessage"
MAKE_QUEUE = (
    "sqs: CreateQueue DeleteQueue GetQueueAttributes ListDeadLetterSourceQueues ListQueueTags SendMessage "
    "SetQueueAttributes TagQueue"
)
EXCHANGE = {
    "Exchange/RouteRole": {
        "Exchange/RouteLogs": "logs: CreateLogStream PutLogEvents",
        "*": "xray: PutTelemetryRecords PutTraceSegments",
        f"{SQS}:x*": READ_AND_HIDE,
        f"{SQS}:x*-dlq": "sqs: SendMessage",
        f"{SQS}:x*-dlq.fifo": "sqs: SendMessage",
        f"{SQS}:q_*": "sqs: SendMessage",
        "Exchange/Retries": f"{READ_AND_HIDE} SendMessage",
        "Exchange/OrderedRetries": f"{READ_AND_HIDE} SendMessage",
        "Exchange/DeadLetters": "sqs: SendMessage",
        "Exchanges": "dynamodb: BatchGetItem GetItem Query UpdateItem",
        "History/kept/*": "s3: PutObject",
        "Live": "dynamodb: BatchGetItem BatchWriteItem DeleteItem GetItem PutItem Query",
        "Live/Outbox": "sqs: SendMessage",
        "HistoryLake/Events": "firehose: PutRecordBatch",
        "StateKey": KEY_IN_USE,
    },
    "Exchange/ControlRole": {
        "Exchange/ControlLogs": "logs: CreateLogStream PutLogEvents",
        "*": (
            "cloudwatch: GetMetricData lambda: CreateEventSourceMapping ListEventSourceMappings sqs: ListQueues "
            "xray: PutTelemetryRecords PutTraceSegments"
        ),
        "Exchange/Commands": READ_QUEUE,
        f"{SQS}:signalbox-exchange-control-*": f"{READ_QUEUE} ListDeadLetterSourceQueues SetQueueAttributes",
        f"{SQS}:signalbox-exchange-reply-*": (
            "sqs: CreateQueue GetQueueAttributes ListDeadLetterSourceQueues ListQueueTags SendMessage "
            "SetQueueAttributes TagQueue"
        ),
        "Exchange/Replies": "sqs: SendMessage",
        f"{SQS}:x*": MAKE_QUEUE,
        f"{SQS}:q_*": MAKE_QUEUE,
        f"{SQS}:q_*-dlq": PEEK,
        f"{SQS}:q_*-dlq.fifo": PEEK,
        "Exchange/DeadLetters": "sqs: SendMessage",
        "Exchange/Retries": "sqs: GetQueueAttributes",
        "Exchange/OrderedRetries": "sqs: GetQueueAttributes",
        MAPPINGS: (
            "lambda: DeleteEventSourceMapping GetEventSourceMapping ListTags TagResource UpdateEventSourceMapping"
        ),
        "Exchanges": f"{ITEMS} BatchGetItem BatchWriteItem ConditionCheckItem",
        "Exchanges/index/by_kind": f"{ITEMS} BatchGetItem BatchWriteItem ConditionCheckItem",
        "Live": f"{ITEMS} BatchGetItem BatchWriteItem",
        "Live/Inbox": "sqs: SendMessage",
        "HistoryLake/Events": "firehose: PutRecordBatch",
        "StateKey": KEY_IN_USE,
    },
}
