"""The queues of a stage, with the queues whose dead letters each takes."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from signalbox.aws.doctor.calls import PATIENCE, call
from signalbox.aws.shared.tag_calls import TagCalls
from signalbox.doctor.queue_sources import QueueSources
from signalbox.queues import STAGE_TAG
from signalbox.redrive import allowed_sources

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_sqs.client import SQSClient

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
