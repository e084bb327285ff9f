"""The table of the weather's rules: what each does, its figures, and the page of AWS that documents it."""

from dataclasses import dataclass

from signalbox.local.emulator.weather.conditions import ACCOUNT_CONCURRENCY

DOCS = "https://docs.aws.amazon.com"
SQS_GUIDE = f"{DOCS}/AWSSimpleQueueService/latest/SQSDeveloperGuide"
SQS_API = f"{DOCS}/AWSSimpleQueueService/latest/APIReference"
LAMBDA = f"{DOCS}/lambda/latest/dg"
DYNAMODB = f"{DOCS}/amazondynamodb/latest"

FAULT_ODDS = 100
PARTIAL_ODDS = 20
DUPLICATE_ODDS = 100
GONE_ODDS = 200
NEW_QUEUE_SECONDS = 1.0
DELETED_NAME_SECONDS = 60.0
# Less than the shortest time that a local stage's settings wait for counters (`split_empty_seconds`), as on AWS.
STALE_SECONDS = 2.0
MAPPING_SECONDS = 3.0
PROPAGATION_SECONDS = 5.0
# Of the 60 s that AWS allows, so that a test sees the change.
POLICY_SECONDS = (1.0, 5.0)
CHAIN_LENGTH = 16
READ_UNITS = 3000
WRITE_UNITS = 1000
COLD_START_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the weather."""

    name: str
    """The name that the dice count by, and that the tests use."""
    effect: str
    figures: str
    source: str
    """The page that documents the effect; the figures of odds are ours."""


RULES = (
    Rule(
        "new queues",
        "A new queue does not exist for other calls.",
        f"{NEW_QUEUE_SECONDS:g} s after CreateQueue",
        f"{SQS_API}/API_CreateQueue.html",
    ),
    Rule(
        "deleted names",
        "A queue with the name of a deleted one cannot be created: QueueDeletedRecently.",
        f"{DELETED_NAME_SECONDS:g} s after DeleteQueue",
        f"{SQS_API}/API_DeleteQueue.html",
    ),
    Rule(
        "stale lists",
        "ListQueues lacks new queues and has deleted ones.",
        f"{STALE_SECONDS:g} s",
        f"{SQS_API}/API_ListQueues.html",
    ),
    Rule(
        "stale counters",
        "The approximate counters of a queue are old; AWS says up to a minute.",
        f"{STALE_SECONDS:g} s",
        f"{SQS_API}/API_GetQueueAttributes.html",
    ),
    Rule(
        "duplicates",
        "A standard queue delivers a message twice, also to functions.",
        f"1 in {DUPLICATE_ODDS} messages",
        f"{SQS_GUIDE}/standard-queues-at-least-once-delivery.html",
    ),
    Rule(
        "disorder",
        "A standard queue delivers its messages in any order.",
        "each receive",
        f"{SQS_GUIDE}/standard-queues.html",
    ),
    Rule(
        "throttled calls",
        "A call is refused with the service's error for too many requests.",
        f"half of 1 in {FAULT_ODDS} calls",
        f"{DOCS}/general/latest/gr/api-retries.html",
    ),
    Rule(
        "throttled keys",
        "A call that needs the key of an encrypted queue is refused with KMS.ThrottlingException.",
        "a third of the throttled calls of these queues",
        f"{DOCS}/kms/latest/developerguide/throttling.html",
    ),
    Rule(
        "server errors",
        "A call gets a status of 5xx; SQS, DynamoDB and Firehose may have carried it out.",
        f"half of 1 in {FAULT_ODDS} calls",
        f"{DYNAMODB}/developerguide/Programming.Errors.html",
    ),
    Rule(
        "partial batches",
        "A batch of SQS, DynamoDB or Firehose fails for some of its entries.",
        f"1 in {PARTIAL_ODDS} batches of at least two entries",
        f"{DYNAMODB}/APIReference/API_BatchWriteItem.html",
    ),
    Rule(
        "hot keys",
        "The items of one partition key of DynamoDB take no more units together in a second: ThrottlingException, or "
        "UnprocessedKeys and -Items.",
        f"{READ_UNITS:,} read and {WRITE_UNITS:,} write units in a second",
        f"{DYNAMODB}/developerguide/bp-partition-key-design.html",
    ),
    Rule(
        "event source mappings",
        "A mapping is Creating, Enabling, Disabling, Updating or Deleting; other changes get ResourceInUseException.",
        f"{MAPPING_SECONDS:g} s after each change",
        f"{LAMBDA}/API_UpdateEventSourceMapping.html",
    ),
    Rule(
        "IAM changes",
        "A changed policy counts later, and a new access key is not known: InvalidClientTokenId.",
        f"{PROPAGATION_SECONDS:g} s after the change",
        f"{DOCS}/IAM/latest/UserGuide/troubleshoot.html",
    ),
    Rule(
        "queue policies",
        "A changed policy of a queue counts later; AWS says up to a minute.",
        f"{POLICY_SECONDS[0]:g} to {POLICY_SECONDS[1]:g} s after SetQueueAttributes, AddPermission or RemovePermission",
        f"{SQS_API}/API_SetQueueAttributes.html",
    ),
    Rule(
        "recursive loops",
        "A function that is called again and again in one chain from queues is stopped, unless it allows loops; the "
        "message comes again until its queue dead-letters it.",
        f"after {CHAIN_LENGTH} invocations",
        f"{LAMBDA}/invocation-recursion.html",
    ),
    Rule(
        "concurrency",
        "The functions of the account, and those of a reservation, are limited; further calls get 429, messages wait.",
        f"{ACCOUNT_CONCURRENCY:,} functions at a time, or as given",
        f"{LAMBDA}/lambda-concurrency.html",
    ),
    Rule(
        "cold starts",
        "A new instance of a function takes a while to start.",
        f"at least {COLD_START_SECONDS:g} s",
        f"{LAMBDA}/lambda-runtime-environment.html",
    ),
    Rule(
        "gone connections",
        "A WebSocket connection ends before a post, which gets GoneException; $disconnect follows.",
        f"1 in {GONE_ODDS} posts",
        f"{DOCS}/apigateway/latest/developerguide/apigateway-how-to-call-websocket-api-connections.html",
    ),
)
