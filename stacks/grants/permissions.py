"""Statements that the grants of several capabilities share."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from aws_cdk import Aws
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

from stacks.history.lake import HistoryLake
from stacks.settings.config import Config
from stacks.shared.arns import arn
from stacks.shared.keys import through

READ_ITEMS = ("dynamodb:GetItem", "dynamodb:Query")
WRITE_ITEMS = ("dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem")
EVENT_SOURCE_MAPPINGS = arn("lambda", "event-source-mapping:*")
# The tags of resources that functions create; a test compares them with the functions' own.
STAGE_TAG, CAPABILITY_TAG = "signalbox:stage", "signalbox:capability"
KEPT_OF_NAMES = 20  # characters of a stack's name that stay in the names of its functions
USE_KEY = ("kms:Decrypt", "kms:GenerateDataKey")
QUEUE_CONTEXT = "kms:EncryptionContext:aws:sqs:arn"
QUERY = ("athena:StartQueryExecution", "athena:GetQueryExecution", "athena:GetQueryResults")
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


def allow_key_of_queue(grantee: iam.IGrantable, key: kms.IKey, queue: sqs.IQueue) -> None:
    """Allow a grantee to use a key for the messages of one queue only: SQS names it in the encryption context."""
    conditions = {"StringEquals": {**through("sqs")["StringEquals"], QUEUE_CONTEXT: queue.queue_arn}}
    allow(grantee, USE_KEY, [key.key_arn], conditions)


def allow_mappings(control: iam.IGrantable, functions: Sequence[str], *, capability: str, config: Config) -> None:
    """Allow a grantee to create, update and delete event source mappings of these functions.

    It may also delete those of earlier functions of its capability, whose ARNs no template knows: CloudFormation makes
    their names of the stage, which it may cut short, and the construct. Their tags prove nothing alone, because
    TagResource, which tagging at creation needs, knows neither the function of a mapping nor that it is new.
    """
    operator, equals = _operators(config)
    of_functions: Conditions = {operator: {"lambda:FunctionArn": functions}}
    allow(control, ["lambda:ListEventSourceMappings"], ["*"])  # supports no resource ARNs
    allow(control, ["lambda:CreateEventSourceMapping"], ["*"], of_functions)  # a new mapping has no ARN yet
    change = ["lambda:GetEventSourceMapping", "lambda:UpdateEventSourceMapping", "lambda:DeleteEventSourceMapping"]
    allow(control, change, [EVENT_SOURCE_MAPPINGS], of_functions)
    tags = {STAGE_TAG: config.stage, CAPABILITY_TAG: capability}
    earlier = arn("lambda", f"function:{config.stage[:KEPT_OF_NAMES]}*-{capability.capitalize()}*")
    tagged: Conditions = {
        equals: {f"aws:ResourceTag/{key}": value for key, value in tags.items()},
        operator: {"lambda:FunctionArn": earlier},
    }
    allow(control, ["lambda:DeleteEventSourceMapping"], [EVENT_SOURCE_MAPPINGS], tagged)
    allow(control, ["lambda:ListTags"], [EVENT_SOURCE_MAPPINGS])
    own_tags: Conditions = {equals: {f"aws:RequestTag/{key}": value for key, value in tags.items()}}
    allow(control, ["lambda:TagResource"], [EVENT_SOURCE_MAPPINGS], own_tags)


def allow_own_mappings(function: lambda_.Function, config: Config) -> None:
    """Allow a function to disable its own event source mappings."""
    allow(function, ["lambda:ListEventSourceMappings"], ["*"])  # supports no resource ARNs
    of_itself: Conditions = {_operators(config)[0]: {"lambda:FunctionArn": function.function_arn}}
    update = iam.PolicyStatement(
        actions=["lambda:UpdateEventSourceMapping"], resources=[EVENT_SOURCE_MAPPINGS], conditions=of_itself
    )
    # The policy has the ARN of the function, so the function must not wait for it, as it does for that of its role.
    iam.Policy(function, "OwnMappings", statements=[update]).attach_to_role(cast("iam.IRole", function.role))


def _operators(config: Config) -> tuple[str, str]:
    # The emulator does not know the keys of these conditions and would deny every call.
    return ("ArnLikeIfExists", "StringEqualsIfExists") if config.local else ("ArnLike", "StringEquals")


def allow_events(functions: Iterable[iam.IGrantable], lake: HistoryLake | None) -> None:
    """Allow functions to write events, if the stage has history."""
    if lake is None:
        return
    for function in functions:
        allow(function, ["firehose:PutRecordBatch"], [lake.stream.delivery_stream_arn])


def table_arns(lake: HistoryLake) -> list[str]:
    """Return the ARNs that Glue checks for read access to the history table."""
    catalog = f"arn:{Aws.PARTITION}:glue:{Aws.REGION}:{Aws.ACCOUNT_ID}"
    database = lake.database_name
    return [f"{catalog}:catalog", f"{catalog}:database/{database}", f"{catalog}:table/{database}/{lake.table.ref}"]


def allow_queries(grantee: iam.IGrantable, objects: Sequence[str], *, results: str, lake: HistoryLake) -> None:
    """Allow Athena's queries to read the objects that match patterns, and to write below the prefix `results`."""
    bucket = lake.bucket
    allow(grantee, QUERY, [arn("athena", f"workgroup/{lake.database_name}")])
    # As in AWS's example, Athena also reads the database `default`.
    # https://docs.aws.amazon.com/athena/latest/ug/fine-grained-access-to-glue-resources.html
    allow(grantee, ["glue:GetDatabase"], [arn("glue", "catalog"), arn("glue", "database/default")])
    allow(grantee, ["s3:GetBucketLocation", "s3:ListBucket"], [bucket.bucket_arn])
    allow(grantee, ["s3:GetObject"], [bucket.arn_for_objects(name) for name in (*objects, f"{results}*")])
    allow(grantee, ["s3:PutObject", "s3:AbortMultipartUpload"], [bucket.arn_for_objects(f"{results}*")])
    allow_key(grantee, lake.key, service="s3")
