"""The permissions of the rendezvous roles and schedules, and the grant helpers of all capabilities."""

from collections.abc import Iterable, Mapping, Sequence

from aws_cdk import Aws
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_

from stacks.history.job import HistoryJob
from stacks.history.lake import HistoryLake
from stacks.rendezvous.construct import Rendezvous
from stacks.rendezvous.environment import client_queues_arn
from stacks.settings.config import Config
from stacks.shared.arns import arn
from stacks.shared.keys import through
from stacks.shared.schedules import Schedules
from stacks.shared.tables import BY_EXPIRY, OPEN_OFFERS
from stacks.state_stack import StateStack

READ_ITEMS = ("dynamodb:GetItem", "dynamodb:Query")
WRITE_ITEMS = ("dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem")
EVENT_SOURCE_MAPPINGS = arn("lambda", "event-source-mapping:*")
USE_KEY = ("kms:Decrypt", "kms:GenerateDataKey")


def grant_rendezvous(rendezvous: Rendezvous, *, state: StateStack, lake: HistoryLake, config: Config) -> None:
    """Grant the six functions and the client their permissions."""
    broker, clients = rendezvous.broker, f"{client_queues_arn(config)}*"
    offer, poll, answer, client, page, sweep = (rendezvous.functions[name] for name in _FUNCTIONS)

    # The event source mapping receives with the role of the function `offer`.
    allow(offer, ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"], [broker.queue.queue_arn])
    allow(offer, ["sqs:ChangeMessageVisibility"], [broker.queue.queue_arn])
    allow(offer, ["sqs:SendMessage"], [broker.dead_letters.queue_arn])
    allow(offer, ["sqs:CreateQueue", "sqs:TagQueue", "sqs:GetQueueUrl", "sqs:GetQueueAttributes"], [clients])
    allow(offer, ["sqs:SendMessage"], [clients])
    allow(answer, ["sqs:SendMessage"], [clients])
    allow(answer, ["sqs:DeleteMessage"], [broker.queue.queue_arn])
    allow(sweep, ["sqs:DeleteQueue", "sqs:GetQueueAttributes", "sqs:ListQueueTags"], [clients])
    allow(sweep, ["sqs:ListQueues"], ["*"])  # supports no resource ARNs
    allow(sweep, ["sqs:GetQueueUrl"], [broker.queue.queue_arn])
    if broker.owned:
        allow(sweep, ["sqs:CreateQueue", "sqs:GetQueueAttributes", "sqs:SetQueueAttributes"], [broker.queue.queue_arn])

    for function in (offer, poll, answer, client):
        allow_items(function, state.rendezvous_table, actions=(*READ_ITEMS, *WRITE_ITEMS), index=OPEN_OFFERS)
    allow_items(page, state.rendezvous_table, actions=READ_ITEMS, index=OPEN_OFFERS)
    allow_items(offer, state.lease_table, actions=("dynamodb:GetItem", "dynamodb:PutItem"))
    allow_items(sweep, state.lease_table, actions=(*READ_ITEMS, "dynamodb:DeleteItem"), index=BY_EXPIRY)
    for function in (offer, poll, answer, client, sweep):
        allow(function, ["firehose:PutRecordBatch"], [lake.stream.delivery_stream_arn])
    for function in (offer, poll, answer, client, page, sweep):
        allow_key(function, state.state_key, service="dynamodb")

    # Public by design: the holder of the client's key can send offers and receive from queues whose name it knows.
    allow(rendezvous.client_user, ["sqs:SendMessage"], [broker.queue.queue_arn])
    allow(rendezvous.client_user, ["sqs:GetQueueUrl", "sqs:ReceiveMessage"], [clients])
    if broker.key:
        allow_key(rendezvous.client_user, broker.key, service="sqs")
        allow_key(offer, broker.key, service="sqs")
    allow_key(offer, state.queue_key, service="sqs")


def grant_schedules(
    schedules: Schedules, *, calls: Mapping[str, lambda_.IFunction], jobs: Iterable[HistoryJob], state: StateStack
) -> None:
    """Let each schedule invoke its one target, and send failed invocations to the dead-letter queue."""
    for name, function in calls.items():
        allow(schedules.roles[name], ["lambda:InvokeFunction"], [function.function_arn])
    for job in jobs:
        for name in job.definition.schedules:
            allow(schedules.roles[name], ["glue:StartJobRun"], [job.job.job_arn])
    for role in schedules.roles.values():
        allow(role, ["sqs:SendMessage"], [schedules.dead_letters.queue_arn])
        allow_key(role, state.queue_key, service="sqs")


_FUNCTIONS = ("offer", "poll", "answer", "client", "page", "sweep")
Conditions = Mapping[str, Mapping[str, str | Sequence[str]]]


def allow(
    grantee: iam.IGrantable, actions: Sequence[str], resources: Sequence[str], conditions: Conditions | None = None
) -> None:
    """Allow a grantee exactly these actions on these resources."""
    grantee.grant_principal.add_to_principal_policy(
        iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions)
    )


def allow_items(
    grantee: iam.IGrantable, table: dynamodb.ITable, *, actions: Sequence[str], index: str | None = None
) -> None:
    """Allow a grantee these item actions on a table and its index."""
    indexes = [f"{table.table_arn}/index/{index}"] if index else []
    allow(grantee, actions, [table.table_arn, *indexes])


def allow_key(grantee: iam.IGrantable, key: kms.IKey, *, service: str) -> None:
    """Allow a grantee to use a key, through one service only."""
    allow(grantee, USE_KEY, [key.key_arn], through(service))


def allow_mappings(control: iam.IGrantable, functions: Sequence[str], config: Config) -> None:
    """Allow a grantee to create, update and delete event source mappings of these functions."""
    # The emulator does not know this condition key and would deny every call.
    operator = "ArnLikeIfExists" if config.local else "ArnLike"
    of_functions: Conditions = {operator: {"lambda:FunctionArn": functions}}
    allow(control, ["lambda:ListEventSourceMappings"], ["*"])  # supports no resource ARNs
    allow(control, ["lambda:CreateEventSourceMapping"], ["*"], of_functions)  # a new mapping has no ARN yet
    change = ["lambda:GetEventSourceMapping", "lambda:UpdateEventSourceMapping", "lambda:DeleteEventSourceMapping"]
    allow(control, change, [EVENT_SOURCE_MAPPINGS], of_functions)
    allow(control, ["lambda:ListTags", "lambda:TagResource"], [EVENT_SOURCE_MAPPINGS])


def table_arns(lake: HistoryLake) -> list[str]:
    """Return the ARNs that Glue checks for read access to the history table."""
    catalog = f"arn:{Aws.PARTITION}:glue:{Aws.REGION}:{Aws.ACCOUNT_ID}"
    database = lake.database.database_name
    return [f"{catalog}:catalog", f"{catalog}:database/{database}", f"{catalog}:table/{database}/{lake.table.ref}"]
