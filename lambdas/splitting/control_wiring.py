"""The adapters and settings of the function `control`, created once for each execution environment."""

import secrets
from collections.abc import Iterator
from datetime import timedelta
from functools import cache

from lambdas.shared import instance
from lambdas.shared.threads import parallel_map
from lambdas.splitting import target_wiring as targets
from lambdas.splitting import wiring
from signalbox.aws.history.athena import Athena
from signalbox.aws.kept.settings import DynamoKeepSettings
from signalbox.aws.shared.redrive_policies import SqsRedrivePolicies
from signalbox.aws.shared.replies import SqsReplies
from signalbox.aws.shared.tag_calls import TagCalls
from signalbox.aws.shared.temporary_queues import SqsTemporaryQueues
from signalbox.aws.splitting.audit_trail import AthenaAuditTrail
from signalbox.aws.splitting.control_queue import SqsControlQueue
from signalbox.aws.splitting.discovery import AwsDiscovery
from signalbox.aws.splitting.forwarders import LambdaForwarders
from signalbox.aws.splitting.locks import DynamoHeartbeats, DynamoLedger, DynamoLocks, DynamoQueueUses
from signalbox.aws.splitting.splits import DynamoRegistries
from signalbox.aws.splitting.target_notes import DynamoAnnotations, DynamoSamples
from signalbox.kept.sweeper import KeptSweeper
from signalbox.queues import QueueName
from signalbox.splitting.control.chains import Chains
from signalbox.splitting.control.command_handlers import ControlService
from signalbox.splitting.control.effect_executor import EffectExecutor
from signalbox.splitting.control.keeping import KeepService
from signalbox.splitting.control.observation import SplitObserver
from signalbox.splitting.control.orphan_queues import OrphanQueueSweeper
from signalbox.splitting.control.ports import AuditTrail, KeptStore, NoAuditTrail, Outlets, Resources, Store
from signalbox.splitting.control.presentation import SplitPresenter
from signalbox.splitting.control.problems import ProblemLog
from signalbox.splitting.control.reconcile_loop import ReconcileLoop, Reconciler
from signalbox.splitting.control.registries import RegistryService
from signalbox.splitting.control.registry_reader import RegistryReader
from signalbox.splitting.control.replays import SessionReplayer
from signalbox.splitting.control.routes import RouteReader
from signalbox.splitting.control.session_start import Admissions, SessionStarter
from signalbox.splitting.forwarding.decider import RECORD_AGE
from signalbox.splitting.model.observed_state import Timings
from signalbox.splitting.queues.names import RANDOM_CHARACTERS, RANDOM_LENGTH

# A response takes a second or two; a test checks that the function's timeout is longer.
AUDIT_TIMEOUT = timedelta(seconds=20)


@cache
def timings() -> Timings:
    """Return the timings of the reconcile loop."""
    settings = instance.settings()
    return Timings(
        settle=settings.seconds("SPLIT_TIMEOUT_SECONDS") + RECORD_AGE,
        empty_for=settings.seconds("SPLIT_EMPTY_SECONDS"),
        heartbeat=settings.seconds("SPLIT_HEARTBEAT_SECONDS"),
    )


@cache
def replies() -> SqsReplies:
    """Return the reply sender."""
    return SqsReplies(instance.sqs(), instance.settings().text("CONTROL_QUEUE_URL"))


@cache
def redrive_policies() -> SqsRedrivePolicies:
    """Return the redrive allow policies of queues."""
    return SqsRedrivePolicies(instance.sqs(), replies().url(QueueName("")), targets.queue_arn_prefix())


@cache
def sweep() -> OrphanQueueSweeper:
    """Return the orphan-queue sweeper."""
    return OrphanQueueSweeper(
        splits=wiring.splits(),
        temporary_queues=SqsTemporaryQueues(instance.sqs(), TagCalls()),
        split_queues=wiring.queues(),
        clock=instance.CLOCK,
        stage=targets.stage(),
        parallel_map=parallel_map,
    )


@cache
def service() -> ControlService:
    """Return the service of the commands."""
    return ControlService(
        splits=wiring.splits(),
        registries=_registries(),
        starter=_starter(),
        loop=loop(),
        discovery=AwsDiscovery(
            instance.functions(),
            instance.aws_client("ecs"),
            instance.aws_client("iam"),
            targets.home(),
            targets.prefix(),
            targets.workloads(),
        ),
        audit_trail=_audit_trail(),
    )


@cache
def loop() -> ReconcileLoop:
    """Return the reconcile loop."""
    store, resources = _store(), _resources()
    outlets = Outlets(wiring.sender(), wiring.dead_letters(), instance.record)
    problems = ProblemLog(store.annotations, instance.CLOCK)
    routes = RouteReader(targets.languages(), timings().settle, instance.CLOCK)
    replayer = SessionReplayer(store.splits, _kept_store(), outlets, routes, problems)
    reconciler = Reconciler(
        store,
        _heartbeats(),
        SplitObserver(store, resources, problems),
        EffectExecutor(store, resources, outlets, routes, replayer),
        timings(),
        instance.record,
    )
    return ReconcileLoop(store.splits, _reader(), _chains(), reconciler)


def _starter() -> SessionStarter:
    splits, resources = wiring.splits(), _resources()
    return SessionStarter(
        Admissions(splits, _registries(), resources, _kept_store(), _random_parts()),
        KeepService(splits, _kept_store(), instance.CLOCK),
        SplitPresenter(_store().annotations, _heartbeats(), resources, _reader(), replies().url, instance.CLOCK),
        _chains(),
        instance.record,
        reads_objects=bool(wiring.buckets()),
    )


@cache
def _registries() -> RegistryService:
    return RegistryService(DynamoRegistries(wiring.table()), _reader(), targets.declared_registries(), instance.CLOCK)


@cache
def _reader() -> RegistryReader:
    return RegistryReader(targets.languages(), targets.prefix(), tuple(targets.clusters()))


@cache
def _chains() -> Chains:
    control_queue = SqsControlQueue(instance.sqs(), instance.settings().text("CONTROL_QUEUE_URL"))
    return Chains(DynamoLocks(wiring.table()), control_queue, _random_parts(), instance.CLOCK)


@cache
def _resources() -> Resources:
    forwarders = LambdaForwarders(
        instance.functions(),
        function_arn=instance.settings().text("SPLIT_FUNCTION_ARN"),
        queue_arn_prefix=targets.queue_arn_prefix(),
        stage=targets.stage(),
        concurrency=instance.settings().number("SPLIT_CONCURRENCY"),
    )
    return Resources(wiring.queues(), forwarders, targets.by_kind())


@cache
def _kept_store() -> KeptStore | None:
    kept = wiring.kept()
    return None if kept is None else KeptStore(DynamoKeepSettings(wiring.table()), kept, kept)


@cache
def kept_sweeper() -> KeptSweeper | None:
    """Return the sweeper of kept messages; None without history."""
    store = _kept_store()
    return None if store is None else KeptSweeper(store.settings, store.objects, instance.CLOCK)


@cache
def _store() -> Store:
    table = wiring.table()
    return Store(
        splits=wiring.splits(),
        samples=DynamoSamples(table, timings()),
        annotations=DynamoAnnotations(table),
        ledger=DynamoLedger(table),
        uses=DynamoQueueUses(table),
    )


def _heartbeats() -> DynamoHeartbeats:
    return DynamoHeartbeats(wiring.table())


def _audit_trail() -> AuditTrail:
    settings = instance.settings()
    if not settings.has("HISTORY_DATABASE"):
        return NoAuditTrail()
    lake = Athena(
        instance.aws_client("athena"),
        settings.text("HISTORY_DATABASE"),
        settings.text("QUERY_RESULTS"),
        timeout=AUDIT_TIMEOUT,
    )
    return AthenaAuditTrail(lake, settings.text("HISTORY_TABLE"))


def _random_parts() -> Iterator[str]:
    return iter(lambda: "".join(secrets.choice(RANDOM_CHARACTERS) for _ in range(RANDOM_LENGTH)), "")
