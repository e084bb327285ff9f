"""Permissions of the rendezvous functions' roles and of the Snowflake client."""

from aws_cdk import aws_iam as iam

from stacks.grants.permissions import (
    READ_ITEMS,
    Conditions,
    allow,
    allow_events,
    allow_items,
    allow_key,
    allow_key_of_queue,
)
from stacks.history.lake import HistoryLake
from stacks.rendezvous.broker import Broker
from stacks.rendezvous.construct import RendezvousResources
from stacks.rendezvous.doors import Doors
from stacks.rendezvous.environment import broker_queue_arn, client_queues_arn
from stacks.rendezvous.front import Front
from stacks.settings.config import Config
from stacks.shared.arns import arn, queue_arn
from stacks.shared.tables import BY_EXPIRY
from stacks.state_stack import State

CHANGE_ITEMS = ("dynamodb:PutItem", "dynamodb:UpdateItem")
KEYS_ONLY: Conditions = {
    "ForAllValues:StringEquals": {"dynamodb:Attributes": ["pk", "sk"]},
    "StringEquals": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
}


def grant_rendezvous(
    rendezvous: RendezvousResources, *, state: State, lake: HistoryLake | None, config: Config
) -> None:
    """Grant the client, and the functions `offer` and `sweep`, their permissions."""
    broker, clients = rendezvous.broker, f"{client_queues_arn(config)}*"
    offer, sweep = rendezvous.functions["offer"], rendezvous.functions["sweep"]

    _grant_offers(offer, broker, clients, state=state)
    allow(offer, ["sqs:ChangeMessageVisibility"], [broker.queue.queue_arn])
    allow(sweep, ["sqs:DeleteQueue", "sqs:GetQueueAttributes", "sqs:ListQueueTags"], [clients])
    allow(sweep, ["sqs:ListQueues"], ["*"])  # supports no resource ARNs
    allow(sweep, ["sqs:GetQueueUrl"], [broker.queue.queue_arn])
    # The daily sweep restricts the sources of the broker queue, also of an imported one.
    restricting = ("sqs:GetQueueAttributes", "sqs:SetQueueAttributes", "sqs:ListDeadLetterSourceQueues")
    allow(sweep, restricting, [broker.queue.queue_arn])
    if broker.owned:
        allow(sweep, ["sqs:CreateQueue"], [broker.queue.queue_arn])

    allow_items(offer, state.rendezvous_table, actions=(*READ_ITEMS, *CHANGE_ITEMS))
    # The sweep reads the keys of offers, and not their addresses.
    allow(sweep, ["dynamodb:Query"], [state.rendezvous_table.table_arn], conditions=KEYS_ONLY)
    leases = ("dynamodb:Query", "dynamodb:DeleteItem")
    cursors = ("dynamodb:GetItem", "dynamodb:PutItem")  # the items of the searches, and leases of refused queues
    allow_items(sweep, state.lease_table, actions=(*leases, *cursors), index=BY_EXPIRY)
    allow_events((offer, sweep), lake)
    for function in (offer, sweep):
        allow_key(function, state.key, service="dynamodb")

    _grant_client(rendezvous.client_user, broker, clients)


def grant_front(front: Front, *, state: State, lake: HistoryLake | None, config: Config) -> None:
    """Grant a front's function and the client their permissions."""
    clients, forward = f"{client_queues_arn(config)}*", front.functions["forward"]
    _grant_offers(forward, front.broker, clients, state=state)
    allow(forward, ["sqs:DeleteQueue"], [clients])
    allow(forward, ["sqs:ListQueues"], ["*"])  # supports no resource ARNs
    allow_events((forward,), lake)
    _grant_client(front.client_user, front.broker, clients)


def _grant_client(user: iam.IGrantable, broker: Broker, clients: str) -> None:
    # Public by design: the holder of the client's key can send offers and receive from queues whose name it knows.
    allow(user, ["sqs:SendMessage"], [broker.queue.queue_arn])
    allow(user, ["sqs:GetQueueUrl", "sqs:ReceiveMessage"], [clients])
    if broker.key:
        allow_key_of_queue(user, broker.key, broker.queue)


def _grant_offers(reader: iam.IGrantable, broker: Broker, clients: str, *, state: State) -> None:
    # The event source mapping receives with the role of its function.
    allow(reader, ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"], [broker.queue.queue_arn])
    allow(reader, ["sqs:SendMessage"], [broker.dead_letters.queue_arn, clients])
    allow(reader, ["sqs:CreateQueue", "sqs:TagQueue", "sqs:GetQueueAttributes"], [clients])
    if broker.key:
        allow_key(reader, broker.key, service="sqs")
    allow_key(reader, state.key, service="sqs")


def grant_doors(doors: Doors, *, state: State, config: Config) -> None:
    """Grant the functions of proxies and of clients over HTTP their permissions."""
    proxies = doors.functions["proxies"]
    allow(proxies, ["sqs:SendMessage"], [f"{client_queues_arn(config)}*"])
    allow(proxies, ["sqs:DeleteMessage"], [broker_queue_arn(config)])
    for function in doors.functions.values():
        allow_items(function, state.rendezvous_table, actions=(*READ_ITEMS, *CHANGE_ITEMS))
        allow_key(function, state.key, service="dynamodb")
        if config.has("history"):
            allow(function, ["firehose:PutRecordBatch"], [arn("firehose", f"deliverystream/{config.history_stream}")])
            allow(function, ["sqs:SendMessage"], [queue_arn(config.history_overflow_queue)])
            allow_key(function, state.key, service="sqs")
