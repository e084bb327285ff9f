"""IAM grants of splitting, limited to the queues and consumers that the settings name."""

from collections.abc import Sequence

from aws_cdk import Aws, CfnResource, Stack
from aws_cdk import aws_iam as iam

from stacks.grants.exchange import READ_QUEUE
from stacks.grants.permissions import (
    READ_ITEMS,
    WRITE_ITEMS,
    Conditions,
    allow,
    allow_events,
    allow_items,
    allow_key,
    allow_mappings,
    allow_own_mappings,
    allow_queries,
    table_arns,
)
from stacks.history.lake import HistoryLake
from stacks.settings.config import Config
from stacks.shared.arns import arn, queue_arn
from stacks.shared.function import Function
from stacks.shared.keys import through
from stacks.shared.tables import BY_KIND
from stacks.splitting.construct import SplittingResources
from stacks.state_stack import AUDIT_PREFIX, KEPT_PREFIX, RAW_PREFIX, State

# mirrord's documentation gives its operator these; SQS requires two of them.
USE_QUEUE_KEY = ("kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey")
ECS_SERVICE, LAMBDA, PARAMETER = "ecs/", "lambda/", "ssm/"
TASK_DEFINITIONS = arn("ecs", "task-definition/*")
POLICIES = tuple(f"arn:{Aws.PARTITION}:iam::{owner}:policy/*" for owner in (Aws.ACCOUNT_ID, "aws"))


def grant_splitting(splitting: SplittingResources, *, state: State, lake: HistoryLake | None, config: Config) -> None:
    """Grant the two functions, and users who start sessions, their permissions."""
    split, control = splitting.functions["split"], splitting.functions["control"]
    temporary = [queue_arn(f"{config.temporary_queue_prefix}*")]

    # Event source mappings receive with the function's role.
    _allow_originals(split, ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"], config)
    allow(split, ["sqs:SendMessage"], [*temporary, splitting.dead_letters.queue_arn])
    _allow_objects(split, config)
    own = [*READ_QUEUE, "sqs:ChangeMessageVisibility", "sqs:SendMessage"]
    allow(control, own, [splitting.control_queue.queue_arn])
    allow(control, ["sqs:SendMessage"], [splitting.dead_letters.queue_arn, splitting.replies.queue_arn])
    _allow_originals(control, ["sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:ListQueueTags"], config)
    _allow_originals(control, ["sqs:SendMessage"], config)  # to return unconsumed messages
    if config.dead_letter_queues_to_read:  # to read their `RedriveAllowPolicy`
        allow(control, ["sqs:GetQueueAttributes"], [queue_arn(name) for name in config.dead_letter_queues_to_read])
    allow(control, ["sqs:CreateQueue", "sqs:TagQueue", "sqs:DeleteQueue"], temporary)
    allow(control, ["sqs:GetQueueAttributes", "sqs:ListQueueTags"], temporary)
    # The daily sweep restricts the sources of temporary queues.
    allow(control, ["sqs:ListDeadLetterSourceQueues", "sqs:SetQueueAttributes"], temporary)
    allow(control, ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:SendMessage"], temporary)
    allow(control, ["sqs:ListQueues"], ["*"])  # supports no resource-level permissions
    allow_own_mappings(split, config)
    allow_mappings(control, [split.function_arn, *_function_arns(config)], capability="splitting", config=config)
    _allow_targets(control, config)
    _allow_clusters(control, config)

    allow_items(split, state.split_table, actions=("dynamodb:GetItem", "dynamodb:Query", *WRITE_ITEMS))
    allow_items(control, state.split_table, actions=(*READ_ITEMS, "dynamodb:BatchGetItem", *WRITE_ITEMS), index=BY_KIND)
    allow_events((split, control), lake)
    for function in (split, control):
        allow_key(function, state.key, service="dynamodb")
        allow_key(function, state.key, service="sqs")
        _allow_queue_keys(function, config)

    _grant_people(splitting.user_policy, splitting=splitting, state=state, config=config)
    if lake is not None:
        _grant_keeping(split, control, lake=lake, config=config)
        _grant_audit(control, lake=lake)


def _grant_keeping(split: iam.IGrantable, control: iam.IGrantable, *, lake: HistoryLake, config: Config) -> None:
    """Let one function write what is kept, and the other read and delete it."""
    kept = [lake.bucket.arn_for_objects(f"{KEPT_PREFIX}*")]
    allow(split, ["s3:PutObject"], kept)
    # DeleteObjects always needs s3:DeleteObject, for versions too:
    # https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
    allow(control, ["s3:GetObject", "s3:DeleteObject", "s3:DeleteObjectVersion"], kept)
    # `control` may list the objects of the bucket for `audit`; the emulator does not know the condition's key.
    only_kept: Conditions = {"StringLikeIfExists" if config.local else "StringLike": {"s3:prefix": f"{KEPT_PREFIX}*"}}
    allow(control, ["s3:ListBucketVersions"], [lake.bucket.bucket_arn], only_kept)
    allow_key(split, lake.key, service="s3")


def _grant_people(person: iam.IGrantable, *, splitting: SplittingResources, state: State, config: Config) -> None:
    temporary, replies = [queue_arn(f"{config.temporary_queue_prefix}*")], [splitting.replies.queue_arn]
    # People create no queues: CreateQueue also sets where SQS moves messages, which needs no permission to send there.
    # A user with this policy can end every session: the members of a team share a stage and trust each other.
    allow(person, ["sqs:SendMessage", "sqs:GetQueueUrl"], [splitting.control_queue.queue_arn])
    allow_key(person, state.key, service="sqs")
    reading = ["sqs:GetQueueUrl", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"]
    allow(person, reading, [*replies, *temporary])
    allow(person, ["sqs:GetQueueAttributes"], temporary)
    _allow_queue_keys(person, config)
    allow(
        person, ["cloudformation:DescribeStacks"], [arn("cloudformation", f"stack/{Stack.of(splitting).stack_name}/*")]
    )


def _grant_audit(grantee: iam.IGrantable, *, lake: HistoryLake) -> None:
    """Grant queries of the history for the recipient of a message."""
    allow_queries(grantee, [f"{RAW_PREFIX}*"], results=AUDIT_PREFIX, lake=lake)
    allow(grantee, ["glue:GetDatabase", "glue:GetTable"], table_arns(lake))


def settings_arns(config: Config) -> list[str]:
    """Return the ARNs of all resources in the settings, and of resources whose owners choose the names."""
    tagged = [queue_arn("*")] if config.splittable_queue_tag else []
    queues = [queue_arn(name) for name in (*config.queues_to_split, *config.dead_letter_queues_to_read)]
    services = [*_service_arns(config), TASK_DEFINITIONS] if _named(config, ECS_SERVICE) else []
    roles = [*_role_arns(config), *POLICIES] if config.target_roles else []
    buckets = _bucket_arns(config)
    objects = [f"{bucket}/*" for bucket in buckets]
    return [*tagged, *queues, *buckets, *objects, *_function_arns(config), *services, *_parameter_arns(config), *roles]


def _allow_originals(grantee: iam.IGrantable, actions: Sequence[str], config: Config) -> None:
    if config.queues_to_split:
        allow(grantee, actions, [queue_arn(name) for name in config.queues_to_split])
    if config.splittable_queue_tag:
        key, _, value = config.splittable_queue_tag.partition("=")
        allow(grantee, actions, [queue_arn("*")], {"StringEquals": {f"aws:ResourceTag/{key}": value}})


def _allow_objects(split: iam.IGrantable, config: Config) -> None:
    """Grant HeadObject; with a version, it requires a permission of its own, and 404 the one to list."""
    if buckets := _bucket_arns(config):
        allow(split, ["s3:GetObject", "s3:GetObjectVersion"], [f"{bucket}/*" for bucket in buckets])
        allow(split, ["s3:ListBucket"], buckets)


def _bucket_arns(config: Config) -> list[str]:
    return [f"arn:{Aws.PARTITION}:s3:::{name}" for name in config.buckets_to_read]


def _allow_queue_keys(grantee: iam.IGrantable, config: Config) -> None:
    if config.queue_keys_to_use:
        allow(grantee, USE_QUEUE_KEY, config.queue_keys_to_use, through("sqs"))


def _allow_targets(control: iam.IGrantable, config: Config) -> None:
    if functions := _function_arns(config):
        allow(control, ["lambda:GetFunctionConfiguration", "lambda:GetAlias", "lambda:ListAliases"], functions)
        allow(control, ["lambda:UpdateFunctionConfiguration"], functions)
        allow(control, ["lambda:PublishVersion", "lambda:UpdateAlias"], functions)
    if services := _service_arns(config):
        _allow_services(control, services, config)
    if parameters := _parameter_arns(config):
        allow(control, ["ssm:GetParameter", "ssm:GetParameterHistory", "ssm:PutParameter"], parameters)
    if config.target_roles:
        roles = _role_arns(config)
        allow(control, ["iam:ListRolePolicies", "iam:GetRolePolicy", "iam:ListAttachedRolePolicies"], roles)
        # A role's policies are known only at run time.
        allow(control, ["iam:GetPolicy", "iam:GetPolicyVersion"], POLICIES)


def _allow_services(control: iam.IGrantable, services: Sequence[str], config: Config) -> None:
    allow(control, ["ecs:DescribeServices", "ecs:UpdateService"], services)
    # Owners name the families of task definitions, and two of the three actions support no resources.
    allow(control, ["ecs:DescribeTaskDefinition", "ecs:RegisterTaskDefinition", "ecs:DeregisterTaskDefinition"], ["*"])
    registering: Conditions = {"StringEquals": {"ecs:CreateAction": "RegisterTaskDefinition"}}
    allow(control, ["ecs:TagResource"], [TASK_DEFINITIONS], registering)
    to_tasks: Conditions = {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
    allow(control, ["iam:PassRole"], _role_arns(config), to_tasks)


def _allow_clusters(control: Function, config: Config) -> None:
    """Grant access to Kubernetes clusters; what it may do there is said by roles of Kubernetes, which owners apply."""
    clusters = config.clusters
    if names := clusters.eks:
        allow(control, ["eks:DescribeCluster"], [arn("eks", f"cluster/{name}") for name in names.values()])
    for name, eks_name in names.items():
        _enter(control, name, eks_name, config)
    if clusters.token_secrets:
        allow(control, ["secretsmanager:GetSecretValue"], clusters.token_secrets)
    if clusters.token_secret_keys:
        allow(control, ["kms:Decrypt"], clusters.token_secret_keys, through("secretsmanager"))


def _enter(control: Function, name: str, eks_name: str, config: Config) -> None:
    # Not `aws_eks.CfnAccessEntry`: importing that module takes a second and a half of every synthesis.
    CfnResource(
        control,
        f"AccessEntry-{name}",
        type="AWS::EKS::AccessEntry",
        properties={
            "ClusterName": eks_name,
            "PrincipalArn": control.own_role.role_arn,
            "Type": "STANDARD",
            "KubernetesGroups": [config.kubernetes_group],
        },
    )


def _function_arns(config: Config) -> list[str]:
    """Return the ARNs of the target functions and of their versions and aliases."""
    names = _named(config, LAMBDA)
    return [arn("lambda", f"function:{name}{qualifier}") for name in names for qualifier in ("", ":*")]


def _service_arns(config: Config) -> list[str]:
    return [arn("ecs", f"service/{name}") for name in _named(config, ECS_SERVICE)]


def _parameter_arns(config: Config) -> list[str]:
    return [arn("ssm", f"parameter/{name.removeprefix('/')}") for name in _named(config, PARAMETER)]


def _named(config: Config, kind: str) -> list[str]:
    return [target.removeprefix(kind) for target in config.targets_to_switch if target.startswith(kind)]


def _role_arns(config: Config) -> list[str]:
    return [f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}:role/{name}" for name in config.target_roles]
