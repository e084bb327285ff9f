"""The doctor's checks, run side by side: each probe's facts, judged by the rules of `signalbox.doctor`."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from signalbox import __version__
from signalbox.aws.doctor.probes import PATIENCE, call, concurrency, identity, partition, queue_sources, recorders
from signalbox.aws.doctor.resources import is_catalog_governed, topic, user_rights, visibility_seconds
from signalbox.cli.shared.deployment import settings_session
from signalbox.cli.shared.stage import VERSION_OUTPUT
from signalbox.clients.stage_session import StageMissing, stack_outputs
from signalbox.doctor import rules
from signalbox.doctor.findings import CallDenied, CallFailed, Finding, has_stop, unchecked
from signalbox.doctor.resources import (
    CATALOG,
    QUEUE,
    TOPIC,
    USERS,
    VERSION,
    broker_queue_finding,
    catalog_finding,
    topic_finding,
    users_finding,
    version_finding,
)
from signalbox.local.files import require_settings

if TYPE_CHECKING:
    import boto3

    from stacks.settings.config import Config


@dataclass(frozen=True, slots=True)
class Examination:
    """A check: its name in the report, and the function that looks and judges."""

    name: str
    look: Callable[[], Finding]

    def finding(self) -> Finding:
        """Return the finding of the check, or that its call was denied or failed."""
        try:
            return self.look()
        except CallDenied as denied:
            return unchecked(self.name, str(denied), remedy=f"grant {denied.permission}, or look in the console")
        except CallFailed as failed:
            return unchecked(self.name, str(failed), remedy="check the network and the region, then try again")


def findings(config: "Config") -> Iterator[Finding]:
    """Yield the findings on a deployment with a configuration as they arrive; an unsupported region ends them.

    Raises `RejectedError` and botocore's errors for missing and refused credentials.
    """
    session = settings_session(config.region)
    region = str(session.region_name)
    yield _runtime()
    supported = rules.region_finding(region, partition=partition(session, region))
    yield supported
    if has_stop([supported]):
        return
    caller = identity(session)
    yield rules.identity_finding(caller)
    yield from _side_by_side((*_account_checks(session, config), *_resource_checks(session, config, caller.account)))


def _runtime() -> Finding:
    require_settings()
    from stacks.shared.packaging import LAMBDA_PYTHON, interpreter

    has_compiler = interpreter(LAMBDA_PYTHON) is not None
    return rules.runtime_finding(LAMBDA_PYTHON, today=datetime.now(UTC).date(), has_compiler=has_compiler)


def _account_checks(session: "boto3.Session", config: "Config") -> Iterator[Examination]:
    require_settings()
    from stacks.settings.needs import needs

    stage = config.stage
    yield Examination(VERSION, lambda: version_finding(stage, deployed_version(session, stage), command=__version__))
    demand, region = rules.Demand(**asdict(needs(config))), str(session.region_name)
    yield Examination(rules.CONCURRENCY, lambda: rules.concurrency_finding(concurrency(session), demand, region=region))
    if config.has("rendezvous"):
        yield Examination(rules.RECORDER, lambda: rules.recorder_finding(recorders(session)))
    prefixes = rules.name_prefixes(
        stage,
        exchanges=config.exchange_prefix,
        temporary=config.temporary_queue_prefix,
        broker=config.broker_queue,
    )
    yield Examination(rules.SOURCES, lambda: rules.sources_finding(queue_sources(session, prefixes, stage=stage)))


def deployed_version(session: "boto3.Session", stage: str) -> str | None:
    """Return the version that deployed a stage, or None if the stage does not exist. Raises the errors of `call`."""
    with call("cloudformation:DescribeStacks"):
        try:
            return stack_outputs(session, stage, config=PATIENCE).get(VERSION_OUTPUT)
        except StageMissing:
            return None


def _resource_checks(session: "boto3.Session", config: "Config", account: str) -> Iterator[Examination]:
    if config.has("rendezvous") or config.has("exchange"):
        yield Examination(USERS, lambda: users_finding(config.stage, user_rights(session, account)))
    if config.has("history"):
        database = config.history_database
        yield Examination(CATALOG, lambda: catalog_finding(database, is_governed=is_catalog_governed(session)))
    if alarms := config.alarm_topic_arn:
        yield Examination(TOPIC, lambda: topic_finding(alarms, topic(session, alarms)))
    if config.has("rendezvous") and (queue := config.broker_queue_arn):
        needed, name = config.offer_timeout_seconds, config.broker_queue
        yield Examination(QUEUE, lambda: broker_queue_finding(name, visibility_seconds(session, queue), needed=needed))


def _side_by_side(checks: Iterable[Examination]) -> Iterator[Finding]:
    with ThreadPoolExecutor() as pool:
        for done in as_completed([pool.submit(check.finding) for check in checks]):
            yield done.result()
