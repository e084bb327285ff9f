"""The dependencies of the function `control`, created once for each function instance."""

from datetime import timedelta
from functools import cache

from lambdas.exchange import wiring
from lambdas.shared import instance
from lambdas.shared.threads import parallel_map
from signalbox.aws.exchange.bindings import DynamoBindings
from signalbox.aws.exchange.connections import DynamoConnectionChecks, LambdaConnections
from signalbox.aws.exchange.counters import DynamoCounters, DynamoRightsVersion
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues, DynamoUsers
from signalbox.aws.exchange.items import LEFT
from signalbox.aws.exchange.queue_metrics import KEPT_FOR, CloudWatchQueueMetrics
from signalbox.aws.exchange.queues import SqsExchangeQueues
from signalbox.aws.exchange.route_mappings import RouteMappings
from signalbox.aws.exchange.sender import SqsExchangeSender
from signalbox.aws.exchange.user_control_queues import UserControlQueues
from signalbox.aws.live.grants import DynamoGrants, DynamoGroups, DynamoSecrets
from signalbox.aws.live.log import DynamoTopicLog
from signalbox.aws.live.session_notifier import SqsSessionNotifier
from signalbox.aws.live.sessions import DynamoRealmSessions, DynamoSessions
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.aws.shared.managed_queues import OwnQueues
from signalbox.aws.shared.mappings import EventSourceMappings
from signalbox.aws.shared.redrive_policies import SqsRedrivePolicies
from signalbox.aws.shared.replies import SqsReplies
from signalbox.aws.shared.tag_calls import TagCalls
from signalbox.aws.shared.temporary_queues import SqsTemporaryQueues
from signalbox.exchange.control.command_handlers import ExchangeService
from signalbox.exchange.control.dead_letters import DeadLetterService
from signalbox.exchange.control.reconnection import ReconnectionService
from signalbox.exchange.control.scheduled_tasks import ExchangeQueueSweeper
from signalbox.exchange.model.connections import FunctionArn, Readers
from signalbox.exchange.model.control_ports import DELETING, ControlPorts, ExchangeStore, StageConfig
from signalbox.exchange.model.events import CAPABILITY
from signalbox.live.admin.command_handlers import LiveCommandHandlers
from signalbox.live.admin.concerned_sessions import ConcernedSessions, RightsNotices
from signalbox.live.admin.ports import LiveAdminStore
from signalbox.live.admin.rights_changes import RightsChanges
from signalbox.queues import CAPABILITY_TAG, STAGE_TAG
from signalbox.sarracenia.rights.names import ExchangeName

KEPT_LOCALLY = timedelta(seconds=2)  # the local stage measures at each read, which is free


@cache
def replies() -> SqsReplies:
    """Return the sender of replies to clients."""
    return SqsReplies(instance.sqs(), instance.settings().text("EXCHANGE_CONTROL_QUEUE_URL"))


@cache
def dead_letters() -> SqsDeadLetters:
    """Return the stage's dead-letter queue of the exchange."""
    return SqsDeadLetters(instance.sqs(), instance.settings().text("EXCHANGE_DEAD_LETTER_QUEUE_URL"))


@cache
def dead_letter_service() -> DeadLetterService:
    """Return the service that records dead letters. It may write an event twice, so metrics do not count its events."""
    return DeadLetterService(ports(), instance.history().write)


@cache
def sweep() -> ExchangeQueueSweeper:
    """Return the orphan-queue sweeper."""
    return ExchangeQueueSweeper(ports(), SqsTemporaryQueues(instance.sqs(), TagCalls()), parallel_map)


@cache
def redrive_policies() -> SqsRedrivePolicies:
    """Return the redrive allow policies of queues."""
    return SqsRedrivePolicies(instance.sqs(), wiring.url_prefix(), queue_arn_prefix())


@cache
def user_queues() -> UserControlQueues:
    """Return the control and reply queues of users."""
    settings = instance.settings()
    url, prefix = settings.text("EXCHANGE_CONTROL_QUEUE_URL"), settings.text("EXCHANGE_PREFIX")
    return UserControlQueues(instance.sqs(), instance.functions(), url, prefix)


@cache
def reconnection(control: FunctionArn) -> ReconnectionService:
    """Return the service that connects queues to the deployed functions; `control` is the ARN of the running one."""
    settings, prefix = instance.settings(), queue_arn_prefix()
    return ReconnectionService(
        ports(),
        LambdaConnections(instance.functions(), user_queues(), prefix, tags()),
        DynamoConnectionChecks(wiring.table()),
        Readers(FunctionArn(settings.text("ROUTE_FUNCTION_ARN")), control),
    )


@cache
def ports() -> ControlPorts:
    """Return the ports of commands and scheduled tasks."""
    settings, sqs, table = instance.settings(), instance.sqs(), wiring.table()
    stage, route_arn = settings.text("STAGE"), settings.text("ROUTE_FUNCTION_ARN")
    concurrency, functions = settings.number("ROUTE_CONCURRENCY"), instance.functions()
    queues = OwnQueues(sqs, wiring.url_prefix(), queue_arn_prefix())
    return ControlPorts(
        store=ExchangeStore(
            exchanges=DynamoExchanges(table),
            queues=DynamoQueues(table),
            left=DynamoQueues(table, LEFT),
            bindings=DynamoBindings(table),
            users=DynamoUsers(table),
        ),
        counters=DynamoCounters(table),
        sqs=SqsExchangeQueues(queues, stage=stage, key_arn=settings.text("QUEUE_KEY_ARN")),
        mappings=RouteMappings(EventSourceMappings(functions, route_arn, queue_arn_prefix(), concurrency, tags())),
        metrics=CloudWatchQueueMetrics(
            instance.aws_client("cloudwatch"), instance.CLOCK.now, KEPT_LOCALLY if instance.is_local() else KEPT_FOR
        ),
        now=instance.CLOCK.now,
        config=config(),
        queue_url=replies().url,
        record=instance.record,
        end_realm=_end_realm,
        parallel_map=parallel_map,
    )


@cache
def exchange_service() -> ExchangeService:
    """Return the service that executes commands about exchanges, queues and bindings."""
    return ExchangeService(ports(), SqsExchangeSender(instance.sqs(), wiring.url_prefix()), wiring.stored_denies())


def _end_realm(realm: ExchangeName) -> bool:
    if not wiring.has_live():
        return True
    RightsChanges(rights(), rights_notices(), instance.record, None).end_realm(realm)
    rights_notices().end_refused(realm)
    log, now = DynamoTopicLog(instance.table("LIVE_TABLE"), parallel_map), instance.CLOCK.now
    return log.delete(realm, now=now, until=now() + DELETING)


@cache
def live_commands() -> LiveCommandHandlers:
    """Return the handlers of commands about live."""
    return LiveCommandHandlers(rights(), rights_notices(), instance.record)


@cache
def rights() -> LiveAdminStore:
    """Return the stores that decide about rights in realms."""
    live, store = instance.table("LIVE_TABLE"), ports().store
    return LiveAdminStore(store.exchanges, store.users, DynamoGrants(live), DynamoGroups(live), DynamoSecrets(live))


@cache
def rights_notices() -> RightsNotices:
    """Return the notices to the sessions that a change of rights concerns."""
    live, inbox = instance.table("LIVE_TABLE"), instance.settings().text("LIVE_INBOX_URL")
    return RightsNotices(
        ConcernedSessions(rights(), DynamoRealmSessions(live), DynamoSessions(live), parallel_map),
        DynamoRightsVersion(wiring.table()),
        SqsSessionNotifier(instance.sqs(), inbox, parallel_map),
        instance.CLOCK,
    )


@cache
def config() -> StageConfig:
    """Return the stage's settings."""
    settings = instance.settings()
    region, account = settings.text("ROUTE_FUNCTION_ARN").split(":")[3:5]
    return StageConfig(
        names=wiring.names(),
        account=account,
        region=region,
        retention=settings.seconds("EXCHANGE_RETENTION_SECONDS"),
        visibility=settings.seconds("EXCHANGE_VISIBILITY_SECONDS"),
        metrics_delay=settings.seconds("QUEUE_METRICS_DELAY_SECONDS"),
        user_quota=settings.number("EXCHANGE_USER_QUOTA"),
    )


def queue_arn_prefix() -> str:
    """Return the ARN prefix of all queues, which are in the account and region of the router."""
    partition, _, region, account = instance.settings().text("ROUTE_FUNCTION_ARN").split(":")[1:5]
    return f"arn:{partition}:sqs:{region}:{account}:"


def tags() -> dict[str, str]:
    """Return the tags of queues and mappings that the stage makes."""
    return {STAGE_TAG: instance.settings().text("STAGE"), CAPABILITY_TAG: CAPABILITY}
