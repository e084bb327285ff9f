"""Acknowledged findings of cdk-nag, each with its reason."""

from collections.abc import Iterator

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IConstruct

from stacks.exchange.environment import (
    bound_queues_arn,
    dead_copies_arns,
    dead_publications_arns,
    exchange_queues_arn,
    user_control_queues_arn,
    user_reply_queues_arn,
)
from stacks.grants.history import folders_of
from stacks.grants.permissions import EVENT_SOURCE_MAPPINGS
from stacks.grants.splitting import settings_arns
from stacks.history.job import HistoryJob, log_prefix
from stacks.history.lake import HistoryLake
from stacks.live.environment import connections_arn, ordered_exchanges_arn
from stacks.settings.config import Config
from stacks.shared.arns import arn, queue_arn
from stacks.signalbox_stack import SignalboxStack
from stacks.state_stack import (
    AUDIT_PREFIX,
    KEPT_PREFIX,
    QUERY_PREFIX,
    RAW_PREFIX,
    REPORTS,
    TABLE_PREFIX,
    StateStack,
)

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
    "X-Ray's two write actions, lists of queues and mappings, metrics and task definitions support no resource-level "
    "permissions; a new event source mapping has no name yet, and the policy names the functions it may belong to."
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
BUCKET_LOGS = (
    "Only the delivery stream and the jobs may touch the bucket. Accounts that want each access on record switch on "
    "data events in CloudTrail, which, unlike access logs, can be encrypted with a customer's key."
)
RUNTIME = (
    "Functions run on the Python version that built and tested their packages; every allowed version is still "
    "maintained, and a build with a newer interpreter updates them."
)
OBJECTS = (
    "The objects of one prefix of one bucket: services, Spark and Iceberg name them, and hours, topics and questions."
)
JOB_LOGS = "The two log groups of all jobs; Glue makes the streams."
LOCAL_JOBS = "The emulator has no security configurations; a deployment to AWS has this one."


def acknowledge(state: StateStack, stack: SignalboxStack, config: Config) -> None:
    """Acknowledge the intended findings of cdk-nag."""
    if "history" in config.stored_parts:
        _accept(state.state.history_bucket, "S1", BUCKET_LOGS)
    if stack.lake is not None:
        _acknowledge_history(state, stack, lake=stack.lake, config=config)
    if stack.live is not None:
        _accept(stack.live.websocket, "APIG4", OPEN_CONNECTIONS)
        _accept(stack.live.websocket, "APIG1", ACCESS_LOGS)
        _accept(stack.live.page, "APIG4", OPEN_PAGE)
    if stack.rendezvous is not None and stack.rendezvous.api is not None:
        _accept(stack.rendezvous.api, "APIG4", OPEN_API)
    for construct, wildcards in _wildcards(stack, config):
        _accept(construct, "L1", RUNTIME)
        for resource, reason in {"*": UNNAMEABLE, **wildcards}.items():
            _accept_resource(construct, resource, reason)
    for queue in (one for one in stack.node.find_all() if isinstance(one, sqs.Queue)):
        _accept(queue, "SQS3", REPLIES if queue.node.id == "Replies" else NO_REDRIVE)


def _wildcards(stack: SignalboxStack, config: Config) -> Iterator[tuple[Construct, dict[str, str]]]:
    """Yield the constructs with functions, each with the patterns of resources in its policies and their reasons."""
    clients = {queue_arn(f"{config.client_queue_prefix}*"): CLIENT_QUEUES}
    if stack.doors is not None:
        yield stack.doors, clients
    if (rendezvous := stack.rendezvous or stack.front) is not None:
        yield rendezvous, clients
    if stack.splitting is not None:
        yield stack.splitting, _of_splitting(config)
    if stack.exchange is not None:
        yield stack.exchange, _of_exchange(config)
    if stack.live is not None:
        connections = connections_arn(stack.live.websocket.api.api_id)
        yield stack.live, {ordered_exchanges_arn(config): DECLARED_QUEUES, connections: CONNECTIONS}
    if stack.overflow is not None:
        yield stack.overflow, {}


def _of_splitting(config: Config) -> dict[str, str]:
    return {
        **{resource: NAMED_BY_SETTINGS for resource in settings_arns(config) if "*" in resource},
        queue_arn(f"{config.temporary_queue_prefix}*"): SESSION_QUEUES,
        EVENT_SOURCE_MAPPINGS: MAPPINGS,
        arn("cloudformation", f"stack/{config.stage}/*"): STACK,
    }


def _of_exchange(config: Config) -> dict[str, str]:
    return {
        **dict.fromkeys(_declared(config), DECLARED_QUEUES),
        **dict.fromkeys((user_control_queues_arn(config), user_reply_queues_arn(config)), ASKING_QUEUES),
        EVENT_SOURCE_MAPPINGS: MAPPINGS,
    }


def _declared(config: Config) -> list[str]:
    dead = [*dead_publications_arns(config), *dead_copies_arns(config)]
    return [exchange_queues_arn(config), bound_queues_arn(config), *dead]


def _acknowledge_history(state: StateStack, stack: SignalboxStack, *, lake: HistoryLake, config: Config) -> None:
    Validations.of(stack).acknowledge(
        Acknowledgment(
            id="CloudFormation-Validate::W7001",
            reason="The delivery stream's construct contains a table of networks that only streams to Redshift use.",
        )
    )
    bucket = _imported(state, stack)
    for prefix in ("raw", "errors"):
        _accept_resource(lake.delivery_role, f"{bucket}/{prefix}/*", OBJECTS)
    for prefix in (RAW_PREFIX, TABLE_PREFIX, QUERY_PREFIX):
        _accept_resource(lake.reader_role, f"{bucket}/{prefix}*", OBJECTS)
    tables = "Queries may read all tables of the database, which the jobs create."
    _accept_resource(lake.reader_role, arn("glue", f"table/{lake.database_name}/*"), tables)
    for part in stack.parts.values():
        for name in (f"{RAW_PREFIX}*", f"{AUDIT_PREFIX}*", f"{KEPT_PREFIX}*", f"{REPORTS}*.svg"):
            _accept_resource(part, f"{bucket}/{name}", OBJECTS)
    for job in stack.jobs.values():
        _acknowledge_job(job, bucket, config)


def _acknowledge_job(job: HistoryJob, bucket: str, config: Config) -> None:
    tables = (f"{TABLE_PREFIX}{table}/*" for table in job.definition.reads)
    for name in (*tables, *folders_of(job), f"{RAW_PREFIX}*", f"{KEPT_PREFIX}*"):
        if name.endswith("*"):
            _accept_resource(job.role, f"{bucket}/{name}", OBJECTS)
    for resource in _declared(config):
        _accept_resource(job.role, resource, DECLARED_QUEUES)
    if config.local:
        for rule in ("GL1", "GL3"):
            _accept(job.job, rule, LOCAL_JOBS)
    else:
        _accept(job.job, "GL1", "The log groups of the jobs have the key of the stage themselves.")
    _accept_resource(job.role, arn("logs", f"log-group:{log_prefix(config)}/*"), JOB_LOGS)
    _accept_resource(job.role, "*", "Security configurations have no ARN; the job's role may only read them.")


def _imported(state: StateStack, stack: Stack) -> str:
    """Return the bucket's ARN as cdk-nag writes it in the stack that imports it."""
    reference: dict[str, str] = stack.resolve(state.export_value(state.state.history_bucket.bucket_arn))
    return reference["Fn::ImportValue"]


def _accept_resource(construct: IConstruct, resource: str, reason: str) -> None:
    _accept(construct, f"IAM5[Resource::{_as_found(construct, resource)}]", reason)


def _as_found(construct: IConstruct, resource: str) -> str:
    """Return an ARN as cdk-nag writes it, with the names of what it refers to."""
    found = Stack.of(construct).resolve(resource)
    parts = [found] if isinstance(found, str) else found["Fn::Join"][1]
    return "".join(part if isinstance(part, str) else f"<{part['Ref']}>" for part in parts)


def _accept(construct: IConstruct, rule: str, reason: str) -> None:
    Validations.of(construct).acknowledge(Acknowledgment(id=f"AwsSolutions-{rule}", reason=reason))
