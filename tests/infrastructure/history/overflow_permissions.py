"""The expected permissions for the overflow queue: of the writers and of the function `drain`."""

WRITERS = (
    *("Rendezvous/OfferRole", "Rendezvous/SweepRole"),
    *("Splitting/SplitRole", "Splitting/ControlRole", "Exchange/RouteRole", "Exchange/ControlRole"),
    *(f"Live/{name}Role" for name in ("Connect", "Session", "Overview", "Deliver")),
)
KEY_IN_USE = "kms: Decrypt GenerateDataKey"
OVERFLOW = {"HistoryOverflow/Queue": "sqs: SendMessage", "StateKey": KEY_IN_USE}
DRAIN = {
    "HistoryOverflow/DrainRole": {
        "HistoryOverflow/DrainLogs": "logs: CreateLogStream PutLogEvents",
        "*": "xray: PutTelemetryRecords PutTraceSegments",
        "HistoryOverflow/Queue": "sqs: DeleteMessage GetQueueAttributes ReceiveMessage",
        "HistoryLake/Events": "firehose: PutRecordBatch",
        "StateKey": KEY_IN_USE,
    }
}
