"""Probes of the doctor: each reads one fact of the account."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, UnknownRegionError

from signalbox.aws.shared.errors import reason
from signalbox.aws.shared.tag_calls import TagCalls
from signalbox.doctor.findings import CallDenied, CallFailed
from signalbox.doctor.rules import ALL, ALL_BUT, QUEUE, SOME, CallerIdentity, Concurrency, QueueSources, Recorder
from signalbox.queues import STAGE_TAG
from signalbox.redrive import allowed_sources

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_sqs.client import SQSClient


# A doctor answers within seconds, also without a network.
PATIENCE = Config(connect_timeout=4, read_timeout=8, retries={"total_max_attempts": 2, "mode": "standard"})
DENIED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthorizationError",
        "UnauthorizedOperation",
        "NotAuthorized",
        "403",
        "AllAccessDisabled",
    }
)


@contextmanager
def call(permission: str) -> Iterator[None]:
    """Translate the errors of a call that needs `permission`. Raises `CallDenied` and `CallFailed`."""
    try:
        yield
    except ClientError as error:
        if str(error.response.get("Error", {}).get("Code")) in DENIED:
            raise CallDenied(permission) from error
        raise CallFailed(reason(error, permission)) from error
    except BotoCoreError as error:
        raise CallFailed(reason(error, permission)) from error


def identity(session: "boto3.Session") -> CallerIdentity:
    """Return the account and ARN of the credentials.

    Raises botocore's errors; in a region that the account has not enabled, STS refuses valid credentials, too.
    """
    found = session.client("sts", config=PATIENCE).get_caller_identity()
    return CallerIdentity(found["Account"], found["Arn"])


def partition(session: "boto3.Session", region: str) -> str | None:
    """Return the partition whose pattern a region's name matches, or None; makes no call."""
    try:
        return session.get_partition_for_region(region)
    except UnknownRegionError:
        return None


def concurrency(session: "boto3.Session") -> Concurrency:
    """Return Lambda's concurrent executions. Raises the errors of `call`."""
    with call("lambda:GetAccountSettings"):
        limit = session.client("lambda", config=PATIENCE).get_account_settings()["AccountLimit"]
    return Concurrency(limit["ConcurrentExecutions"], limit["UnreservedConcurrentExecutions"])


FREE = "INTERNAL"  # the scope of recorders that AWS services own


def recorders(session: "boto3.Session") -> list[Recorder]:
    """Return the recorders of the session's region. Raises the errors of `call`."""
    config = session.client("config", config=PATIENCE)
    with call("config:DescribeConfigurationRecorders"):
        found = config.describe_configuration_recorders()["ConfigurationRecorders"]
    with call("config:DescribeConfigurationRecorderStatus"):
        states = config.describe_configuration_recorder_status()["ConfigurationRecordersStatus"]
    recording = {state["name"] for state in states if state.get("recording")}
    return [_recorder(one, is_recording=one["name"] in recording) for one in found]


def _recorder(found: Mapping[str, Any], *, is_recording: bool) -> Recorder:
    group, mode = found.get("recordingGroup", {}), found.get("recordingMode", {})
    excluded = group.get("exclusionByResourceTypes", {}).get("resourceTypes", ())
    overrides = [one for one in mode.get("recordingModeOverrides", ()) if QUEUE in one.get("resourceTypes", ())]
    frequency = (overrides[0] if overrides else mode).get("recordingFrequency", "CONTINUOUS")
    # Recorders that were made before strategies existed have `allSupported` only.
    default = ALL if group.get("allSupported", not group.get("resourceTypes")) else SOME
    return Recorder(
        found["name"],
        found.get("roleARN", ""),
        ALL_BUT if excluded else group.get("recordingStrategy", {}).get("useOnly", default),
        included=tuple(group.get("resourceTypes", ())),
        excluded=tuple(excluded),
        frequency=frequency,
        is_recording=is_recording,
        is_paid=found.get("recordingScope") != FREE,
    )


PARALLEL_CALLS = 16


@dataclass(frozen=True, slots=True)
class _Found:
    url: str
    is_open: bool
    sources: tuple[str, ...]

    @property
    def name(self) -> str:
        return _name(self.url)


def queue_sources(session: "boto3.Session", prefixes: Iterable[str], *, stage: str) -> list[QueueSources]:
    """Return the queues whose names begin with one of the prefixes and whose tag names the stage.

    Raises the errors of `call`.
    """
    sqs = session.client("sqs", config=PATIENCE)
    urls = dict.fromkeys(url for prefix in prefixes for url in _listed(sqs, prefix))
    with ThreadPoolExecutor(PARALLEL_CALLS) as threads:
        found = [one for one in threads.map(partial(_found, sqs, TagCalls(), stage), urls) if one is not None]
    ours = {one.name for one in found}
    return [QueueSources(one.name, one.is_open, tuple(s for s in one.sources if s not in ours)) for one in found]


def _listed(sqs: "SQSClient", prefix: str) -> Iterator[str]:
    with call("sqs:ListQueues"):
        for page in sqs.get_paginator("list_queues").paginate(QueueNamePrefix=prefix):
            yield from page.get("QueueUrls", [])


def _found(sqs: "SQSClient", tag_calls: TagCalls, stage: str, url: str) -> _Found | None:
    with call("sqs:ListQueueTags, sqs:GetQueueAttributes and sqs:ListDeadLetterSourceQueues"):
        try:
            if tag_calls.tags(sqs, url).get(STAGE_TAG) != stage:
                return None
            page = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
            pages = sqs.get_paginator("list_dead_letter_source_queues").paginate(QueueUrl=url)
            sources = tuple(_name(source) for one in pages for source in one.get("queueUrls", []))
        except sqs.exceptions.QueueDoesNotExist:
            return None  # deleted since it was listed
    # Some stand-ins for SQS have the attribute, and their types lack it.
    policy = str(page["Attributes"].get("RedriveAllowPolicy", ""))
    return _Found(url, allowed_sources(policy) is None, sources)


def _name(url: str) -> str:
    return url.rpartition("/")[2]
