"""The doctor's checks, run side by side: each probe's facts, judged by the rules of `signalbox.doctor`."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError

from signalbox.aws.doctor import account as account_probes
from signalbox.aws.doctor import bootstrap as bootstrap_probes
from signalbox.aws.doctor import clusters as cluster_probes
from signalbox.aws.doctor import quotas as quota_probes
from signalbox.aws.doctor import recorder as recorder_probes
from signalbox.aws.doctor import resources as resource_probes
from signalbox.aws.doctor.calls import SET_CREDENTIALS
from signalbox.cli.shared.deployment import aws_session
from signalbox.doctor import account, bootstrap, clusters, programs, quotas, recorder, resources
from signalbox.doctor.account import Identity
from signalbox.doctor.findings import Finding, Verdict, stop, unchecked
from signalbox.doctor.problems import CallDenied, CallFailed, CredentialsUnusable
from signalbox.doctor.quotas import Demand
from signalbox.errors import RejectedError
from signalbox.local.files import checkout_modules

if TYPE_CHECKING:
    from stacks.settings.config import Config

Findings = Iterable[Finding | None]
PARALLEL_CALLS = 16


@dataclass(frozen=True, slots=True)
class Check:
    """A check: its name in the report, and the function that looks and judges."""

    name: str
    look: Callable[[], Findings]

    def findings(self) -> list[Finding]:
        """Return the findings; a call that is denied or fails is a finding, too."""
        try:
            return [finding for finding in self.look() if finding is not None]
        except CallDenied as denied:
            remedy = f"grant {denied.permission} to see it, or look in the console"
            return [unchecked(self.name, str(denied), remedy=remedy)]
        except CredentialsUnusable as problem:
            return [stop(self.name, str(problem), remedy=problem.remedy)]
        except CallFailed as failed:
            return [unchecked(self.name, str(failed), remedy="check the network and the region, then try again")]


@dataclass(frozen=True, slots=True)
class Examination:
    """The examination of a deployment with `config`; with `bootstraps`, the deployment bootstraps the CDK first."""

    config: "Config"
    demand: Demand
    bootstraps: bool = False

    def findings(self) -> Iterator[Finding]:
        """Yield the findings as they arrive: first the machine, the credentials and the region, then the account."""
        try:
            session = self._session()
        except (RejectedError, BotoCoreError) as error:
            yield from _side_by_side(_machine_checks())
            yield stop(account.REGION, str(error), remedy="set AWS_REGION, or AWS_PROFILE to a profile with a region")
            return
        region = str(session.region_name)
        found: list[Identity] = []
        first = [*_machine_checks(), *_entry_checks(session, region, found)]
        has_obstacle = False
        for finding in _side_by_side(first):
            is_entry = finding.check in (account.CREDENTIALS, account.REGION)
            has_obstacle |= is_entry and finding.verdict is Verdict.STOP
            yield finding
        if has_obstacle:
            return  # every other call would fail for the same reason
        yield from _side_by_side(self._account_checks(session, region, found[0].account if found else None))

    def _session(self) -> boto3.Session:
        return boto3.Session(region_name=self.config.region) if self.config.region else aws_session()

    def _account_checks(self, session: boto3.Session, region: str, owner: str | None) -> Iterator[Check]:
        demand = self.demand
        yield Check(bootstrap.BOOTSTRAP, partial(_bootstrap, session, is_requested=self.bootstraps))
        if owner is not None:
            yield Check(
                bootstrap.ASSETS,
                partial(_assets, session, account=owner, region=region, known_key=self.config.asset_key_arn),
            )
        yield Check(quotas.CONCURRENCY, partial(_concurrency, session, demand, region))
        yield Check(quotas.REQUESTS, partial(_requests, session, demand, region))
        yield Check(quotas.USERS, partial(_identities, session, demand))
        yield Check(quotas.TABLES, partial(_tables, session, demand, region))
        yield Check(quotas.SCHEDULES, partial(_schedules, session, demand))
        yield Check(recorder.RECORDER, partial(_recorder, session))
        yield Check(resources.QUEUE, partial(_queue, session, self.config))
        if self.config.alarm_topic_arn:
            yield Check(resources.TOPIC, partial(_topic, session, self.config.alarm_topic_arn))
        for name in self.config.clusters.eks.values():
            yield Check(clusters.CLUSTER, partial(_cluster, session, name))


def examination(config: "Config", *, bootstraps: bool) -> Examination:
    """Return the examination of a configuration."""
    with checkout_modules():
        from stacks.settings.needs import needs
    return Examination(config, Demand(**asdict(needs(config))), bootstraps)


def _side_by_side(checks: Iterable[Check]) -> Iterator[Finding]:
    with ThreadPoolExecutor(PARALLEL_CALLS) as pool:
        for done in as_completed([pool.submit(check.findings) for check in checks]):
            yield from done.result()


def _machine_checks() -> Sequence[Check]:
    return [Check(programs.PYTHON, _python), Check(programs.NODE, _node)]


def _python() -> Findings:
    version = sys.version_info[:2]
    return [
        programs.python_finding(version),
        programs.runtime_finding(version, today=datetime.now(UTC).date()),
    ]


def _node() -> Findings:
    from signalbox.local.tools import node_version

    return [programs.node_finding(node_version())]


def _entry_checks(session: boto3.Session, region: str, found: list[Identity]) -> Iterator[Check]:
    """Yield the checks of credentials and region; the identity is added to `found`."""
    partition = account_probes.partition(session, region)
    obstacle = account.partition_finding(region, partition=partition)
    if obstacle is not None:
        yield Check(account.REGION, lambda: [obstacle])
        return
    yield Check(account.CREDENTIALS, partial(_identity, session, found))
    yield Check(account.REGION, partial(_region, session, region))


def _identity(session: boto3.Session, found: list[Identity]) -> Findings:
    found.append(account_probes.identity(session))
    return [account.identity_finding(found[0])]


def _region(session: boto3.Session, region: str) -> Findings:
    try:
        return [account.region_finding(region, regions=account_probes.regions(session))]
    except CredentialsUnusable:
        return [unchecked(account.REGION, "it needs credentials", remedy=SET_CREDENTIALS)]


def _bootstrap(session: boto3.Session, *, is_requested: bool) -> Findings:
    version = bootstrap_probes.bootstrap_version(session)
    return [bootstrap.bootstrap_finding(version, is_requested=is_requested)]


def _assets(session: boto3.Session, *, account: str, region: str, known_key: str | None) -> Findings:
    bucket = bootstrap_probes.assets_bucket(session, account=account, region=region)
    return [bootstrap.assets_finding(bucket.key, exists=bucket.exists, known_key=known_key)]


def _concurrency(session: boto3.Session, demand: Demand, region: str) -> Findings:
    return [quotas.concurrency_finding(quota_probes.concurrency(session), demand, region=region)]


def _requests(session: boto3.Session, demand: Demand, region: str) -> Findings:
    return [quotas.requests_finding(quota_probes.requests_a_second(session), demand, region=region)]


def _identities(session: boto3.Session, demand: Demand) -> Findings:
    users, roles = quota_probes.iam_users_and_roles(session)
    return [quotas.users_finding(users), quotas.roles_finding(roles, demand)]


def _tables(session: boto3.Session, demand: Demand, region: str) -> Findings:
    return [quotas.tables_finding(quota_probes.tables(session), demand, region=region)]


def _schedules(session: boto3.Session, demand: Demand) -> Findings:
    return [quotas.schedules_finding(quota_probes.schedule_groups(session), demand)]


def _recorder(session: boto3.Session) -> Findings:
    return [recorder.recorder_finding(recorder_probes.recorders(session))]


def _queue(session: boto3.Session, config: "Config") -> Findings:
    arn = config.broker_queue_arn
    if arn:
        owner = arn.split(":")[4]
        found = resource_probes.queue(session, config.broker_queue, owner=owner)
        return [resources.imported_queue_finding(found, arn=arn)]
    found = resource_probes.queue(session, config.broker_queue)
    return [resources.queue_finding(found, name=config.broker_queue, stage=config.stage)]


def _topic(session: boto3.Session, arn: str) -> Findings:
    return [resources.topic_finding(arn, exists=resource_probes.topic_exists(session, arn))]


def _cluster(session: boto3.Session, name: str) -> Findings:
    return [clusters.cluster_finding(name, cluster_probes.cluster(session, name))]
