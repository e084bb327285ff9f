"""Acknowledged findings of cdk-nag, each with its reason."""

from collections.abc import Iterable

from aws_cdk import Acknowledgment, Aws, Stack, Validations
from aws_cdk import aws_sqs as sqs
from constructs import IConstruct

from stacks.exchange.construct import ExchangeResources
from stacks.exchange.environment import (
    bound_queues_arn,
    dead_copies_arns,
    dead_publications_arns,
    exchange_queues_arn,
    user_control_queues_arn,
    user_reply_queues_arn,
)
from stacks.grants.history import dead_letters_arns, folders_of
from stacks.grants.permissions import EVENT_SOURCE_MAPPINGS
from stacks.grants.splitting import settings_arns
from stacks.history.job import HistoryJob, log_prefix
from stacks.history.lake import HistoryLake
from stacks.live.construct import LiveResources
from stacks.live.environment import connections_arn, ordered_exchanges_arn
from stacks.rendezvous.construct import RendezvousResources
from stacks.rendezvous.doors import DESCRIPTIONS as DOORS
from stacks.rendezvous.front import Front
from stacks.settings.config import Config
from stacks.shared.arns import arn, queue_arn
from stacks.shared.function import Function
from stacks.signalbox_stack import SignalboxStack
from stacks.splitting.construct import SplittingResources
from stacks.state_stack import (
    AUDIT_PREFIX,
    KEPT_PREFIX,
    QUERY_PREFIX,
    RAW_PREFIX,
    REPORTS,
    TABLE_PREFIX,
    StateStack,
)

TRACING = "X-Ray's two write actions support no resource-level permissions; all other actions name their resources."
CLIENT_QUEUES = (
    "Client queues are created and deleted with their clients, so policies name them by prefix; "
    "no other queue of the stage starts with it."
)
SESSION_QUEUES = (
    "Temporary queues are created and deleted with sessions, so policies name them by prefix; no other queue of the "
    "stage starts with it."
)
NAMED_BY_SETTINGS = "The deployment settings name these queues, consumers and roles by a pattern or a tag."
DECLARED_QUEUES = (
    "Exchanges and queues are declared at run time, so policies name them by the prefixes of the naming convention, "
    "`x` and `q_`, after the prefix of the stage; settings under which another queue of the stage could have such "
    "a name are rejected."
)
ASKING_QUEUES = (
    "Users are added and removed by commands, so policies name their control and reply queues by prefix; no other "
    "queue of the stage starts with one of them."
)
UNNAMEABLE = (
    "X-Ray's two write actions, lists of queues and mappings, and task definitions support no resource-level "
    "permissions; a new event source mapping has no name yet, and the policy names the functions it may belong to."
)
UNNAMEABLE_METRICS = (
    "X-Ray's two write actions, lists of queues and mappings, and metrics support no resource-level permissions; a new "
    "event source mapping has no name yet, and the policy names the function it may belong to."
)
MAPPINGS = "AWS generates the names of event source mappings; the policy names the functions whose mappings it covers."
STACK = "The ARN of a stack ends with an id that CloudFormation generates."
OPEN_CONNECTIONS = (
    "Browsers cannot set headers when they connect, so a client authenticates in its first message; a connection that "
    "has not joined a realm within 10 s is closed, and the API is throttled."
)
OPEN_PAGE = (
    "It serves the page, which contains no secrets and needs a session for every request, and the health of live."
)
ACCESS_LOGS = (
    "Access logs of WebSocket APIs need a role for the whole account, which this stack must not set; the history "
    "records the start and end of every session."
)
CONNECTIONS = "Connections are created at run time, so the policy names their API and stage."
OPEN_API = (
    "Anyone may volunteer as a Snowflake proxy, without an account; the API is throttled, and a proxy receives "
    "only an offer that any other proxy could have received."
)
REPLIES = "It holds replies for a minute; a client that has not fetched its reply by then has gone."
NO_REDRIVE = (
    "It is a dead-letter queue, or the function that reads it dead-letters what can never be handled: SQS would also "
    "move valid messages of functions that were killed or could not reach a service."
)
RUNTIME = (
    "Functions run on the Python version that built and tested their packages; every allowed version is still "
    "maintained, and a build with a newer interpreter updates them."
)


def acknowledge(state: StateStack, stack: SignalboxStack, config: Config) -> None:
    """Acknowledge the intended findings of cdk-nag."""
    _acknowledge_state(state, config)
    if stack.doors is not None:
        _acknowledge_functions(stack.doors.functions.values(), config)
    if (rendezvous := stack.rendezvous or stack.front) is not None:
        _acknowledge_rendezvous(rendezvous, config)
    if stack.splitting is not None:
        _acknowledge_splitting(stack.splitting, config)
    if stack.exchange is not None:
        _acknowledge_exchange(stack.exchange, config)
    if stack.live is not None:
        _acknowledge_live(stack.live, config)
    if stack.lake is not None:
        _acknowledge_history(state, stack, lake=stack.lake, config=config)
    for queue in (one for one in stack.node.find_all() if isinstance(one, sqs.Queue)):
        _accept(queue, "SQS3", REPLIES if queue.node.id == "Replies" else NO_REDRIVE)


def _acknowledge_state(state: StateStack, config: Config) -> None:
    if "history" in config.stored_parts:
        _accept(
            state.state.history_bucket,
            "S1",
            "Only the delivery stream and the jobs may touch the bucket. Accounts that want each access on record "
            "switch on data events in CloudTrail, which, unlike access logs, can be encrypted with a customer's key.",
        )


def _acknowledge_rendezvous(rendezvous: RendezvousResources | Front, config: Config) -> None:
    _acknowledge_functions((one for name, one in rendezvous.functions.items() if name not in DOORS), config)
    _accept_resource(rendezvous.client_user, _client_queues(config), CLIENT_QUEUES)
    if isinstance(rendezvous, RendezvousResources) and rendezvous.api is not None:
        _accept(rendezvous.api, "APIG4", OPEN_API)


def _acknowledge_functions(functions: Iterable[Function], config: Config) -> None:
    for function in functions:
        _accept(function, "L1", RUNTIME)
        _accept_resource(function.own_role, "*", TRACING)
        _accept_resource(function.own_role, _client_queues(config), CLIENT_QUEUES)


def _client_queues(config: Config) -> str:
    return _as_found(queue_arn(f"{config.client_queue_prefix}*"))


def _acknowledge_splitting(splitting: SplittingResources, config: Config) -> None:
    functions, person = splitting.functions, splitting.user_policy
    for function in functions.values():
        _accept(function, "L1", RUNTIME)
        _accept_resource(function.own_role, "*", UNNAMEABLE)
        for resource in settings_arns(config):
            if "*" in resource:
                _accept_resource(function.own_role, _as_found(resource), NAMED_BY_SETTINGS)
    for identity in (*(function.own_role for function in functions.values()), person):
        _accept_resource(identity, _as_found(queue_arn(f"{config.temporary_queue_prefix}*")), SESSION_QUEUES)
    _accept_resource(functions["control"].own_role, _as_found(EVENT_SOURCE_MAPPINGS), MAPPINGS)
    _accept_resource(person, _as_found(arn("cloudformation", f"stack/{config.stage}/*")), STACK)


def _acknowledge_exchange(exchange: ExchangeResources, config: Config) -> None:
    dead = [*dead_publications_arns(config), *dead_copies_arns(config)]
    declared = [exchange_queues_arn(config), bound_queues_arn(config), *dead]
    for function in exchange.functions.values():
        _accept(function, "L1", RUNTIME)
        _accept_resource(function.own_role, "*", UNNAMEABLE_METRICS if function.node.id == "Control" else TRACING)
        for resource in declared:
            _accept_resource(function.own_role, _as_found(resource), DECLARED_QUEUES)
    control = exchange.functions["control"].own_role
    _accept_resource(exchange.functions["control"], "*", MAPPINGS)
    for resource in (user_control_queues_arn(config), user_reply_queues_arn(config)):
        _accept_resource(control, _as_found(resource), ASKING_QUEUES)
    _accept_resource(control, _as_found(EVENT_SOURCE_MAPPINGS), MAPPINGS)


def _acknowledge_live(live: LiveResources, config: Config) -> None:
    for function in live.functions.values():
        _accept(function, "L1", RUNTIME)
        _accept_resource(function.own_role, "*", TRACING)
    _accept_resource(live.functions["session"].own_role, _as_found(ordered_exchanges_arn(config)), DECLARED_QUEUES)
    api = Stack.of(live).resolve(live.websocket.api.api_id)["Ref"]
    connections = connections_arn(live.websocket.api.api_id).replace(live.websocket.api.api_id, f"<{api}>")
    _accept_resource(live.functions["deliver"].own_role, _as_found(connections), CONNECTIONS)
    _accept(live.websocket, "APIG4", OPEN_CONNECTIONS)
    _accept(live.websocket, "APIG1", ACCESS_LOGS)
    _accept(live.page, "APIG4", OPEN_PAGE)


def _as_found(resource: str) -> str:
    """Return an ARN as cdk-nag writes it."""
    for token, name in ((Aws.PARTITION, "Partition"), (Aws.REGION, "Region"), (Aws.ACCOUNT_ID, "AccountId")):
        resource = resource.replace(token, f"<AWS::{name}>")
    return resource


def _acknowledge_history(state: StateStack, stack: SignalboxStack, *, lake: HistoryLake, config: Config) -> None:
    Validations.of(stack).acknowledge(
        Acknowledgment(
            id="CloudFormation-Validate::W7001",
            reason="The delivery stream's construct contains a table of networks that only streams to Redshift use.",
        )
    )
    if stack.overflow is not None:
        _accept(stack.overflow.drain, "L1", RUNTIME)
        _accept_resource(stack.overflow.drain.own_role, "*", TRACING)
    bucket = _imported(state, stack)
    objects = "The objects of one prefix of one bucket: services name them, after the hour, the day or the question."
    for prefix in ("raw", "errors"):
        _accept_resource(lake.delivery_role, f"{bucket}/{prefix}/*", objects)
    for prefix in (RAW_PREFIX, TABLE_PREFIX, QUERY_PREFIX):
        _accept_resource(lake.reader_role, f"{bucket}/{prefix}*", objects)
    tables = "Queries may read all tables of the database, which the jobs create."
    _accept_resource(lake.reader_role, _as_found(arn("glue", f"table/{lake.database_name}/*")), tables)
    for name in (f"{RAW_PREFIX}*", f"{AUDIT_PREFIX}*", f"{KEPT_PREFIX}*", f"{REPORTS}*.svg"):
        for function in (function for part in stack.parts.values() for function in part.functions.values()):
            _accept_resource(function.own_role, f"{bucket}/{name}", objects)
    for job in stack.jobs.values():
        _acknowledge_job(job, bucket, config)


def _acknowledge_job(job: HistoryJob, bucket: str, config: Config) -> None:
    objects = "The objects of one prefix of one bucket: Spark and Iceberg name them, and topics, days and replays do."
    folders = (
        *(f"{TABLE_PREFIX}{table}/*" for table in job.definition.reads),
        *folders_of(job),
        f"{RAW_PREFIX}*",
        f"{KEPT_PREFIX}*",
    )
    for name in folders:
        if name.endswith("*"):
            _accept_resource(job.role, f"{bucket}/{name}", objects)
    for resource in (exchange_queues_arn(config), bound_queues_arn(config), *dead_letters_arns(config)):
        _accept_resource(job.role, _as_found(resource), DECLARED_QUEUES)
    logs = "arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:" + f"{log_prefix(config)}/*"
    if config.local:
        for rule in ("GL1", "GL3"):
            _accept(job.job, rule, "The emulator has no security configurations; a deployment to AWS has this one.")
    else:
        _accept(job.job, "GL1", "The log groups of the jobs have the key of the stage themselves.")
    _accept_resource(job.role, logs, "The two log groups of all jobs; Glue makes the streams.")
    _accept_resource(job.role, "*", "Security configurations have no ARN; the job's role may only read them.")


def _imported(state: StateStack, stack: Stack) -> str:
    """Return the bucket's ARN as cdk-nag writes it in the stack that imports it."""
    reference: dict[str, str] = stack.resolve(state.export_value(state.state.history_bucket.bucket_arn))
    return reference["Fn::ImportValue"]


def _accept_resource(construct: IConstruct, resource: str, reason: str) -> None:
    _accept(construct, f"IAM5[Resource::{resource}]", reason)


def _accept(construct: IConstruct, rule: str, reason: str) -> None:
    Validations.of(construct).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))
