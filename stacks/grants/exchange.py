"""The permissions of the exchange's functions, restricted to queues by the naming convention.

Users are not part of the stack: commands create and delete their identities and policies.
"""

from aws_cdk import aws_iam as iam

from stacks.exchange.construct import ExchangeResources
from stacks.exchange.environment import (
    bound_queues_arn,
    dead_copies_arns,
    dead_publications_arns,
    exchange_queues_arn,
    user_control_queues_arn,
    user_reply_queues_arn,
)
from stacks.grants.permissions import (
    READ_ITEMS,
    WRITE_ITEMS,
    allow,
    allow_events,
    allow_items,
    allow_key,
    allow_mappings,
)
from stacks.history.lake import HistoryLake
from stacks.settings.config import Config
from stacks.shared.function import Function
from stacks.shared.tables import BY_KIND
from stacks.state_stack import KEPT_PREFIX, State

# Lambda reads the queues of event source mappings with the function's role.
READ_QUEUE = ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes")


def grant_exchange(exchange: ExchangeResources, *, state: State, lake: HistoryLake | None, config: Config) -> None:
    """Grant the two functions their permissions."""
    route = exchange.functions["route"]
    _grant_route(route, exchange=exchange, state=state, config=config)
    if lake is not None:
        allow(route, ["s3:PutObject"], [lake.bucket.arn_for_objects(f"{KEPT_PREFIX}*")])
        allow_key(route, lake.key, service="s3")
    _grant_control(exchange.functions["control"], exchange=exchange, state=state, config=config)
    allow_events(exchange.functions.values(), lake)
    for function in exchange.functions.values():
        allow_key(function, state.key, service="dynamodb")
        allow_key(function, state.key, service="sqs")


def _grant_route(route: Function, *, exchange: ExchangeResources, state: State, config: Config) -> None:
    retries = [exchange.retries.queue_arn, exchange.ordered_retries.queue_arn]
    allow(route, [*READ_QUEUE, "sqs:ChangeMessageVisibility"], [exchange_queues_arn(config), *retries])
    # Copies, dead letters of queues, and dead letters of exchanges.
    allow(route, ["sqs:SendMessage"], [bound_queues_arn(config), *dead_publications_arns(config)])
    allow(route, ["sqs:SendMessage"], [*retries, exchange.dead_letters.queue_arn])
    # The records of several exchanges in one call, then the bindings of changed ones; heads and counters.
    actions = ("dynamodb:BatchGetItem", *READ_ITEMS, "dynamodb:UpdateItem")
    allow_items(route, state.exchange_table, actions=actions)


def _grant_control(control: Function, *, exchange: ExchangeResources, state: State, config: Config) -> None:
    queues, replies = [exchange_queues_arn(config), bound_queues_arn(config)], user_reply_queues_arn(config)
    allow(control, READ_QUEUE, [exchange.control_queue.queue_arn, user_control_queues_arn(config)])
    allow(control, ["sqs:CreateQueue", "sqs:TagQueue", "sqs:SetQueueAttributes", "sqs:DeleteQueue"], queues)
    allow(control, ["sqs:GetQueueAttributes", "sqs:ListQueueTags"], queues)
    allow(control, ["sqs:GetQueueAttributes"], [exchange.retries.queue_arn, exchange.ordered_retries.queue_arn])
    # Dead letters of declared queues are read for the history, and stay.
    allow(control, ["sqs:ReceiveMessage", "sqs:ChangeMessageVisibility"], dead_copies_arns(config))
    # The daily sweep restricts the sources of queues, and gives users the reply queues that they lack.
    users = [user_control_queues_arn(config), replies]
    allow(control, ["sqs:GetQueueAttributes", "sqs:SetQueueAttributes"], users)
    allow(control, ["sqs:ListDeadLetterSourceQueues"], [*queues, *users])
    allow(control, ["sqs:CreateQueue", "sqs:TagQueue", "sqs:ListQueueTags"], [replies])
    # Publications by command, replayed messages, replies and dead letters.
    allow(control, ["sqs:SendMessage"], [*queues, exchange.replies.queue_arn, replies, exchange.dead_letters.queue_arn])
    allow(control, ["sqs:ListQueues"], ["*"])  # does not support resources
    allow_mappings(control, [exchange.functions["route"].function_arn], capability="exchange", config=config)
    _allow_own_mappings(control, config)
    allow(control, ["cloudwatch:GetMetricData"], ["*"])  # supports neither resources nor namespaces
    # A binding is stored on condition that both of its ends exist; heads are deleted with their exchange. The users of
    # a command are read together.
    more = ("dynamodb:ConditionCheckItem", "dynamodb:BatchWriteItem", "dynamodb:BatchGetItem")
    allow_items(control, state.exchange_table, actions=(*READ_ITEMS, *WRITE_ITEMS, *more), index=BY_KIND)


def _allow_own_mappings(control: Function, config: Config) -> None:
    """Allow `control` to connect users' control queues to itself."""
    operator = "ArnLikeIfExists" if config.local else "ArnLike"  # as in `allow_mappings`
    # Not a part of the role's own policy, which the function depends on.
    policy = iam.Policy(control, "OwnMappings", roles=[control.own_role])
    policy.add_statements(
        iam.PolicyStatement(
            actions=["lambda:CreateEventSourceMapping"],
            resources=["*"],  # a new mapping has no ARN yet
            conditions={operator: {"lambda:FunctionArn": control.function_arn}},
        )
    )
