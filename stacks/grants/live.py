"""The permissions of live's functions: its table and queues, the queues of realms, and connections."""

from stacks.exchange.construct import ExchangeResources
from stacks.grants.exchange import READ_QUEUE
from stacks.grants.permissions import READ_ITEMS, WRITE_ITEMS, allow, allow_events, allow_items, allow_key
from stacks.history.lake import HistoryLake
from stacks.live.construct import LiveResources
from stacks.live.environment import connections_arn, ordered_exchanges_arn
from stacks.settings.config import Config
from stacks.shared.function import Function
from stacks.shared.tables import BY_KIND
from stacks.state_stack import REPORTS, State

# Reads and writes of several items.
BATCHES = ("dynamodb:BatchGetItem", "dynamodb:BatchWriteItem", "dynamodb:ConditionCheckItem")


def grant_live(live: LiveResources, *, state: State, lake: HistoryLake | None, config: Config) -> None:
    """Grant the functions and the WebSocket API what they need."""
    inbox = live.inbox.queue_arn
    if live.websocket.sender:
        allow(live.websocket.sender, ["sqs:SendMessage"], [inbox])
        allow_key(live.websocket.sender, state.key, service="sqs")
    for name, function in live.functions.items():
        if name != "receive":
            allow_key(function, state.key, service="dynamodb")
        if name != "page":
            allow_key(function, state.key, service="sqs")
        if name not in ("overview", "page"):
            allow(function, ["sqs:SendMessage"], [inbox])
    allow_events((live.functions[name] for name in ("connect", "session", "overview", "deliver")), lake)
    _grant_connect(live.functions["connect"], live=live, state=state)
    _grant_session(live.functions["session"], live=live, state=state, config=config)
    _grant_overview(live.functions["overview"], live=live, state=state)
    _grant_overview_of_others(live.functions["overview"], state=state, lake=lake, config=config)
    _grant_deliver(live.functions["deliver"], live=live, state=state)
    _grant_page(live.functions["page"], live=live, state=state)


def grant_live_routing(exchange: ExchangeResources, *, live: LiveResources, state: State) -> None:
    """Grant the router the log, subscribers, denies and outboxes, and the control plane grants, secrets and inboxes."""
    route, control = exchange.functions["route"], exchange.functions["control"]
    # A transaction needs the rights to its single writes.
    allow_items(route, state.live_table, actions=(*READ_ITEMS, *WRITE_ITEMS, *BATCHES[:2]))
    allow(route, ["sqs:SendMessage"], [live.outbox.queue_arn])
    allow_items(control, state.live_table, actions=(*READ_ITEMS, *WRITE_ITEMS, *BATCHES[:2]))
    allow(control, ["sqs:SendMessage"], [live.inbox.queue_arn])


def _grant_connect(connect: Function, *, live: LiveResources, state: State) -> None:
    # For the tokens of Arvados' clients; other connections only put and update items.
    actions = (*READ_ITEMS, "dynamodb:PutItem", "dynamodb:UpdateItem", BATCHES[0])
    allow_items(connect, state.live_table, actions=actions)
    allow_items(connect, state.exchange_table, actions=("dynamodb:GetItem", BATCHES[0]))
    allow(connect, ["sqs:SendMessage"], [live.timers.queue_arn])


def _grant_session(session: Function, *, live: LiveResources, state: State, config: Config) -> None:
    allow(session, READ_QUEUE, [live.inbox.queue_arn, live.timers.queue_arn])
    allow(session, ["sqs:ChangeMessageVisibility"], [live.inbox.queue_arn])
    # To publish for clients, reply to them, start timers and pass calls on.
    sent = [live.outbox.queue_arn, live.timers.queue_arn, live.overview_calls.queue_arn, ordered_exchanges_arn(config)]
    sent += [live.dead_letters.queue_arn]
    allow(session, ["sqs:SendMessage"], sent)
    allow_items(session, state.live_table, actions=(*READ_ITEMS, *WRITE_ITEMS, *BATCHES[:2]))
    allow_items(session, state.exchange_table, actions=(BATCHES[0],))


def _grant_overview(overview: Function, *, live: LiveResources, state: State) -> None:
    """Grant reads of exchanges, logs and metrics, and replies into outboxes."""
    allow(overview, [*READ_QUEUE, "sqs:ChangeMessageVisibility"], [live.overview_calls.queue_arn])
    allow(overview, ["sqs:SendMessage"], [live.outbox.queue_arn, live.dead_letters.queue_arn])
    allow_items(overview, state.live_table, actions=("dynamodb:Query", BATCHES[0]))
    allow_items(overview, state.exchange_table, actions=("dynamodb:Query", BATCHES[0]), index=BY_KIND)
    allow(overview, ["cloudwatch:GetMetricData"], ["*"])  # supports neither resources nor namespaces


def _grant_overview_of_others(overview: Function, *, state: State, lake: HistoryLake | None, config: Config) -> None:
    """Grant reads of the counters, splits and pictures of reports that the stage has."""
    if config.has("rendezvous"):
        allow_items(overview, state.rendezvous_table, actions=("dynamodb:Query",))
    if config.has("splitting"):
        allow_items(overview, state.split_table, actions=("dynamodb:Query", BATCHES[0]), index=BY_KIND)
    if lake is not None:
        allow(overview, ["s3:ListBucket"], [lake.bucket.bucket_arn])
        allow(overview, ["s3:GetObject"], [lake.bucket.arn_for_objects(f"{REPORTS}*.svg")])
        allow_key(overview, state.key, service="s3")


def _grant_deliver(deliver: Function, *, live: LiveResources, state: State) -> None:
    allow(deliver, [*READ_QUEUE, "sqs:ChangeMessageVisibility"], [live.outbox.queue_arn])
    allow(deliver, ["sqs:SendMessage"], [live.dead_letters.queue_arn])
    allow_items(deliver, state.live_table, actions=("dynamodb:Query", "dynamodb:PutItem", BATCHES[0]))
    allow_items(deliver, state.exchange_table, actions=(BATCHES[0],))
    allow(deliver, ["execute-api:ManageConnections"], [connections_arn(live.websocket.api.api_id)])


def _grant_page(page: Function, *, live: LiveResources, state: State) -> None:
    allow_items(page, state.live_table, actions=("dynamodb:GetItem",))
    allow_items(page, state.exchange_table, actions=(*READ_ITEMS, BATCHES[0]), index=BY_KIND)
    allow(page, ["sqs:GetQueueAttributes"], [live.inbox.queue_arn, live.outbox.queue_arn])
