"""Who may make which call of AWS on a stage: all others must be refused.

A call is an action and a resource: a construct path, the name of a queue, an object below `History/`, or an ARN. `via`
is the service that uses a key for the caller, `on` the queue whose messages it encrypts, `for` the function of an event
source mapping, and `over http` a request without TLS. Roles are named by their construct path, users of the exchange by
role: each of these is called `alice`.
"""

Who = frozenset[str]
# Resources with a name of their own in the table; `websocket` is the id of live's API.
RESOURCES = {
    "EARLIER_SPLIT": "arn:aws:lambda:us-east-1:123456789012:function:signalbox-SplittingSplit0A1B2C3D-aBcDeFgH1234",
    "STRANGE": "arn:aws:lambda:us-east-1:123456789012:function:shop-SplittingSplit0A1B2C3D-aBcDeFgH1234",
    "MAPPING": "arn:aws:lambda:us-east-1:123456789012:event-source-mapping:0a1b",
    "WORKGROUP": "arn:aws:athena:us-east-1:123456789012:workgroup/signalbox_lake",
    "EVENTS": "arn:aws:glue:us-east-1:123456789012:table/signalbox_lake/events",
    "RAW_EVENTS": "arn:aws:glue:us-east-1:123456789012:table/signalbox_lake/events_raw",
    "COMPACTION": "arn:aws:glue:us-east-1:123456789012:job/signalbox-compact-history",
    "DAY": "arn:aws:glue:us-east-1:123456789012:job/signalbox-day",
    "REPLAYS": "arn:aws:glue:us-east-1:123456789012:job/signalbox-replay",
    "CLUSTER": "arn:aws:eks:us-east-1:123456789012:cluster/prod",
    "TOKEN": "arn:aws:secretsmanager:us-east-1:123456789012:secret:token-AbCdEf",
    "CONNECTION": "arn:aws:execute-api:us-east-1:123456789012:{websocket}/live/POST/@connections/L0SM9cOFvHcCIhw=",
}


def who(names: str, capability: str = "") -> Who:
    """Return the identities in a text; roles of one capability are named by their last word."""
    return frozenset(f"{capability}/{name}Role" if capability else name for name in names.split())


NOBODY: Who = frozenset()
PUBLIC_CLIENT, DEVELOPER = who("Rendezvous/ClientUser"), who("Splitting/UserPolicy")
OFFER, SWEEP = who("Offer", "Rendezvous"), who("Sweep", "Rendezvous")
PROXIES, CLIENTS = who("Proxies", "Doors"), who("Clients", "Doors")
SPLIT, SPLIT_CONTROL = who("Split", "Splitting"), who("Control", "Splitting")
ROUTE, CONTROL = who("Route", "Exchange"), who("Control", "Exchange")
CONNECT, SESSION, DELIVER = who("Connect", "Live"), who("Session", "Live"), who("Deliver", "Live")
OVERVIEW, LIVE_PAGE, API_GATEWAY = who("Overview", "Live"), who("Page", "Live"), who("Sender", "Live/Connections")
DRAIN, FIREHOSE = who("Drain", "HistoryOverflow"), who("Delivery", "HistoryLake")
READER = who("HistoryLake/ReaderRole")  # of `signalbox history query`
COMPACTION, EXPORT, REPLAY = who("CompactHistory/Role"), who("ExportLogs/Role"), who("Replay/Role")
DAY = who("Day/Role")
REPORT = who("Report/Role")
REPORTS = REPORT | who("SplitReport/Role TopicReport/Role DeliveryReport/Role OrderAudit/Role CostReport/Role")
JOBS = COMPACTION | DAY | EXPORT | REPLAY | REPORTS
SCHEDULES = who("Schedules/Role")
ADMIN, FEEDER, SOURCE, SUBSCRIBER = who("admin"), who("feeder"), who("source"), who("subscriber")
LOOSE = who("loose-source")  # a source with Sarracenia's own rule of ownership
USERS = ADMIN | FEEDER | SOURCE | SUBSCRIBER | LOOSE
MATCHING = OFFER | PROXIES | CLIENTS
# Functions that write events, and to the overflow queue those that Firehose refuses.
WRITERS = MATCHING | SWEEP | SPLIT | SPLIT_CONTROL | ROUTE | CONTROL | CONNECT | SESSION | OVERVIEW | DELIVER
FUNCTIONS = WRITERS | LIVE_PAGE | DRAIN
OF_QUEUES = DEVELOPER | USERS | WRITERS | DRAIN | API_GATEWAY | REPLAY | SCHEDULES

RENDEZVOUS: dict[str, Who] = {
    "sqs:SendMessage Rendezvous/Broker": PUBLIC_CLIENT,
    "sqs:ReceiveMessage Rendezvous/Broker": OFFER,
    "sqs:ChangeMessageVisibility Rendezvous/Broker": OFFER,
    "sqs:DeleteMessage Rendezvous/Broker": OFFER | PROXIES,
    "sqs:CreateQueue Rendezvous/Broker": SWEEP,
    "sqs:PurgeQueue Rendezvous/Broker": NOBODY,
    "sqs:SendMessage Rendezvous/Broker over http": NOBODY,
    "sqs:ReceiveMessage Rendezvous/Broker over http": NOBODY,
    "sqs:SendMessage Rendezvous/DeadOffers": OFFER,
    "sqs:ReceiveMessage Rendezvous/DeadOffers": NOBODY,
    "sqs:CreateQueue snowflake-client-a": OFFER,
    "sqs:TagQueue snowflake-client-a": OFFER,
    "sqs:SendMessage snowflake-client-a": OFFER | PROXIES,
    "sqs:ReceiveMessage snowflake-client-a": PUBLIC_CLIENT,
    "sqs:DeleteMessage snowflake-client-a": NOBODY,
    "sqs:DeleteQueue snowflake-client-a": SWEEP,
    "dynamodb:PutItem Rendezvous": MATCHING,
    "dynamodb:UpdateItem Rendezvous": MATCHING,
    "dynamodb:DeleteItem Rendezvous": NOBODY,
    "dynamodb:Query Rendezvous": MATCHING | OVERVIEW,  # the sweep may read the keys only
    "dynamodb:PutItem Leases": SWEEP,
    "dynamodb:Query Leases/index/by_expiry": SWEEP,
}
SPLITTING: dict[str, Who] = {
    "sqs:SendMessage Splitting/Commands": SPLIT_CONTROL | DEVELOPER,
    "sqs:ReceiveMessage Splitting/Commands": SPLIT_CONTROL,
    "sqs:ChangeMessageVisibility Splitting/Commands": SPLIT_CONTROL,
    "sqs:CreateQueue mirrord-a": SPLIT_CONTROL,
    "sqs:DeleteQueue mirrord-a": SPLIT_CONTROL,
    "sqs:SendMessage mirrord-a": SPLIT | SPLIT_CONTROL,
    "sqs:ReceiveMessage mirrord-a": SPLIT_CONTROL | DEVELOPER,
    "sqs:CreateQueue Splitting/Replies": NOBODY,
    "sqs:SetQueueAttributes Splitting/Replies": NOBODY,
    "sqs:ReceiveMessage Splitting/Replies": DEVELOPER,
    "sqs:SendMessage Splitting/Replies": SPLIT_CONTROL,
    # A queue that is split belongs to its application; a managed policy of its own grants access.
    "sqs:ReceiveMessage orders": NOBODY,
    "sqs:SendMessage orders": NOBODY,
    "sqs:DeleteQueue orders": NOBODY,
    "dynamodb:PutItem Splits": SPLIT | SPLIT_CONTROL,
    "dynamodb:Query Splits": SPLIT | SPLIT_CONTROL | OVERVIEW,
    "dynamodb:Query Splits/index/by_kind": SPLIT_CONTROL | OVERVIEW,
    "lambda:CreateEventSourceMapping * for Splitting/Split": SPLIT_CONTROL,
    "lambda:DeleteEventSourceMapping MAPPING for Splitting/Split": SPLIT_CONTROL,
    "lambda:CreateEventSourceMapping * for Rendezvous/Offer": NOBODY,
    "lambda:DeleteEventSourceMapping MAPPING for Rendezvous/Offer": NOBODY,
    "lambda:DeleteEventSourceMapping MAPPING of splitting for EARLIER_SPLIT": SPLIT_CONTROL,
    "lambda:DeleteEventSourceMapping MAPPING of splitting for STRANGE": NOBODY,
    "lambda:DeleteEventSourceMapping MAPPING of splitting for Rendezvous/Offer": NOBODY,
    "lambda:DeleteEventSourceMapping MAPPING of splitting for Exchange/Route": CONTROL,
    "lambda:DeleteEventSourceMapping MAPPING of exchange for Splitting/Split": SPLIT_CONTROL,
    "lambda:DeleteEventSourceMapping MAPPING for EARLIER_SPLIT": NOBODY,
    "lambda:TagResource MAPPING as splitting": SPLIT_CONTROL,
    "lambda:TagResource MAPPING as exchange": CONTROL,
    "lambda:TagResource MAPPING": NOBODY,
    "athena:StartQueryExecution WORKGROUP": SPLIT_CONTROL | READER,
    # Without the setting `kubernetes_clusters`; tests/infrastructure/splitting/test_clusters.py has it.
    "eks:DescribeCluster CLUSTER": NOBODY,
    "secretsmanager:GetSecretValue TOKEN": NOBODY,
    "glue:GetTable RAW_EVENTS": SPLIT_CONTROL | FIREHOSE | READER,
}
EXCHANGE: dict[str, Who] = {
    "sqs:SendMessage Exchange/Commands": NOBODY,
    "sqs:ReceiveMessage Exchange/Commands": CONTROL,
    "sqs:SendMessage signalbox-exchange-control-alice": USERS,
    "sqs:SendMessage signalbox-exchange-control-bob": NOBODY,
    "sqs:SendMessage signalbox-exchange-control-alice2": NOBODY,
    "sqs:ReceiveMessage signalbox-exchange-control-alice": CONTROL,
    "sqs:CreateQueue signalbox-exchange-reply-alice": CONTROL,
    "sqs:SetQueueAttributes signalbox-exchange-reply-alice": CONTROL,
    "sqs:ReceiveMessage signalbox-exchange-reply-alice": USERS,
    "sqs:SendMessage signalbox-exchange-reply-alice": CONTROL,
    "sqs:ReceiveMessage signalbox-exchange-reply-bob": NOBODY,
    "sqs:ReceiveMessage signalbox-exchange-reply-alice2": NOBODY,
    "sqs:SendMessage Exchange/Replies": CONTROL,
    "sqs:ReceiveMessage Exchange/Replies": NOBODY,
    "sqs:SendMessage xpublic": CONTROL | REPLAY | ADMIN | FEEDER,
    "sqs:SendMessage xs_alice": CONTROL | REPLAY | USERS,
    "sqs:SendMessage xs_alice.fifo": CONTROL | REPLAY | SESSION | USERS,
    "sqs:SendMessage xs_alice_images": CONTROL | REPLAY | USERS - SUBSCRIBER,
    "sqs:SendMessage xs_alice2": CONTROL | REPLAY | ADMIN | FEEDER | LOOSE,
    "sqs:SendMessage xs_bob.fifo": CONTROL | REPLAY | SESSION | ADMIN | FEEDER,
    "sqs:ReceiveMessage xs_alice": ROUTE,
    "sqs:CreateQueue xs_alice": CONTROL,
    "sqs:SetQueueAttributes xs_alice": CONTROL,
    "sqs:DeleteQueue xs_alice": CONTROL,
    "sqs:ReceiveMessage xs_alice-dlq": ROUTE | REPLAY | ADMIN | FEEDER | SOURCE | LOOSE,
    "sqs:ReceiveMessage q_alice": USERS,
    "sqs:ChangeMessageVisibility q_alice": USERS,
    "sqs:ReceiveMessage q_alice_images": USERS,
    "sqs:ReceiveMessage q_alice2": ADMIN | FEEDER | LOOSE,
    "sqs:ReceiveMessage q_bob": ADMIN | FEEDER,
    "sqs:SendMessage q_alice": ROUTE | CONTROL | REPLAY,
    "sqs:DeleteQueue q_alice": CONTROL,
    "sqs:SendMessage Exchange/Retries": ROUTE,
    "sqs:ReceiveMessage Exchange/Retries": ROUTE,
    "sqs:ChangeMessageVisibility Exchange/Retries": ROUTE,
    "sqs:ChangeMessageVisibility xs_alice": ROUTE,
    "dynamodb:PutItem Exchanges": CONTROL,
    "dynamodb:UpdateItem Exchanges": ROUTE | CONTROL,
    "dynamodb:BatchGetItem Exchanges": ROUTE | CONNECT | SESSION | OVERVIEW | DELIVER | CONTROL | EXPORT,
    "dynamodb:Query Exchanges/index/by_kind": CONTROL | OVERVIEW | LIVE_PAGE | EXPORT,
    "dynamodb:Scan Exchanges": NOBODY,
    "lambda:CreateEventSourceMapping * for Exchange/Route": CONTROL,
    "lambda:UpdateEventSourceMapping MAPPING for Exchange/Route": CONTROL,
    "cloudwatch:GetMetricData *": CONTROL | OVERVIEW,
    "sqs:ListQueues *": SWEEP | SPLIT_CONTROL | CONTROL,
}
LIVE: dict[str, Who] = {
    "sqs:SendMessage Live/Inbox": API_GATEWAY | CONNECT | SESSION | DELIVER | CONTROL,
    "sqs:ReceiveMessage Live/Inbox": SESSION,
    "sqs:SendMessage Live/Outbox": SESSION | OVERVIEW | ROUTE,
    "sqs:ReceiveMessage Live/Outbox": DELIVER,
    "sqs:SendMessage Live/Timers": CONNECT | SESSION,
    "sqs:ReceiveMessage Live/Timers": SESSION,
    "sqs:SendMessage Live/OverviewCalls": SESSION,
    "sqs:ReceiveMessage Live/OverviewCalls": OVERVIEW,
    "sqs:GetQueueAttributes Live/Inbox": SESSION | LIVE_PAGE,
    "dynamodb:PutItem Live": CONNECT | SESSION | DELIVER | CONTROL | ROUTE,
    "dynamodb:DeleteItem Live": SESSION | CONTROL | ROUTE,
    "dynamodb:BatchWriteItem Live": SESSION | ROUTE | CONTROL,
    "dynamodb:BatchGetItem Live": CONNECT | SESSION | OVERVIEW | DELIVER | ROUTE | CONTROL,
    "execute-api:ManageConnections CONNECTION": DELIVER,
}
HISTORY: dict[str, Who] = {
    "firehose:PutRecordBatch HistoryLake/Events": WRITERS | DRAIN | REPLAY,
    "sqs:SendMessage HistoryOverflow/Queue": WRITERS,
    "sqs:ReceiveMessage HistoryOverflow/Queue": DRAIN,
    "s3:PutObject History/raw/events/a": FIREHOSE,
    "s3:GetObject History/raw/events/a": FIREHOSE | COMPACTION | DAY | SPLIT_CONTROL | READER,
    "s3:GetObject History/raw/events/a over http": NOBODY,
    "s3:DeleteObject History/raw/events/a": NOBODY,
    "s3:GetObject History/queries/a": READER,
    "s3:PutObject History/queries/a": READER,
    "s3:GetObject History/audits/a": SPLIT_CONTROL,
    "s3:PutObject History/audits/a": SPLIT_CONTROL,
    "s3:PutObject History/tables/events/data/a": COMPACTION | DAY,
    "s3:GetObject History/tables/events/data/a": JOBS - EXPORT - REPLAY | READER,
    "s3:PutObject History/tables/logs/data/a": COMPACTION | DAY | EXPORT,
    "s3:PutObject History/reports/rendezvous/a": REPORT | DAY,
    "s3:GetObject History/reports/rendezvous/a.svg": REPORT | DAY | OVERVIEW,
    "s3:PutObject History/logs/a": EXPORT,
    "s3:PutObject History/replays/a": REPLAY,
    "s3:PutObject History/kept/memes/a": SPLIT | ROUTE,
    "s3:GetObject History/kept/memes/a": SPLIT_CONTROL | REPLAY,
    "s3:DeleteObject History/kept/memes/a": SPLIT_CONTROL,
    "s3:DeleteObjectVersion History/kept/memes/a": SPLIT_CONTROL,
    "s3:DeleteObjectVersion History/raw/events/a": NOBODY,
    "glue:CreateTable EVENTS": COMPACTION | DAY | REPORTS,
    "glue:UpdateTable EVENTS": COMPACTION | DAY,
    "glue:GetSecurityConfiguration *": JOBS,
    "glue:DeleteTable EVENTS": NOBODY,
    "logs:PutLogEvents Rendezvous/OfferLogs": OFFER,
    "xray:PutTraceSegments *": FUNCTIONS - MATCHING,  # strangers' runs are not traced
}
SCHEDULED: dict[str, Who] = {
    "lambda:InvokeFunction Rendezvous/Sweep": SCHEDULES,
    "lambda:InvokeFunction Splitting/Control": SCHEDULES,
    "lambda:InvokeFunction Exchange/Control": SCHEDULES,
    "lambda:InvokeFunction Live/Session": SCHEDULES,
    "lambda:InvokeFunction Rendezvous/Offer": NOBODY,
    "glue:StartJobRun COMPACTION": SCHEDULES,
    "glue:StartJobRun REPLAYS": NOBODY,
    "glue:StartJobRun DAY": SCHEDULES,
    "sqs:SendMessage Schedules/DeadCalls": SCHEDULES,
}
KEYS: dict[str, Who] = {
    "kms:GenerateDataKey StateKey via sqs on Rendezvous/Broker": PUBLIC_CLIENT | OF_QUEUES,
    "kms:GenerateDataKey StateKey via sqs on Live/Inbox": OF_QUEUES,
    "kms:Decrypt StateKey": NOBODY,
    "kms:Decrypt StateKey via ssm": NOBODY,
    "kms:Decrypt StateKey via dynamodb": FUNCTIONS - DRAIN | EXPORT | REPLAY,
    "kms:Decrypt StateKey via s3": JOBS | FIREHOSE | READER | SPLIT | SPLIT_CONTROL | ROUTE | OVERVIEW,
    "kms:Encrypt StateKey via s3": JOBS,
    "kms:ScheduleKeyDeletion StateKey": NOBODY,
}
ACCOUNT_WIDE: dict[str, Who] = {
    "iam:CreateAccessKey arn:aws:iam::123456789012:user/signalbox-alice": NOBODY,
    "iam:PassRole Rendezvous/OfferRole": NOBODY,
    "sts:AssumeRole Rendezvous/OfferRole": NOBODY,
    "sts:AssumeRole HistoryLake/ReaderRole": NOBODY,
    "lambda:UpdateFunctionCode Rendezvous/Offer": NOBODY,
    "dynamodb:DeleteTable Exchanges": NOBODY,
    "s3:DeleteBucket History": NOBODY,
    "sqs:SetQueueAttributes Rendezvous/Broker": SWEEP,
}
CALLS = RENDEZVOUS | SPLITTING | EXCHANGE | LIVE | HISTORY | SCHEDULED | KEYS | ACCOUNT_WIDE
# What an administrator of the account, with a policy that allows everything, still may not do.
REFUSED_TO_ADMINISTRATORS = (
    "sqs:SendMessage Rendezvous/Broker over http",
    "sqs:ReceiveMessage Live/Inbox over http",
    "s3:GetObject History/raw/events/a over http",
    "kms:Decrypt StateKey",
    "kms:Decrypt StateKey via ssm",
)
