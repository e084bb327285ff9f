"""The queues of a stage and their sources, as SQS lists them."""

import json

import boto3
import pytest

from signalbox.aws.doctor.probes import queue_sources
from signalbox.doctor.rules import QueueSources
from signalbox.queues import allow_policy
from tests.adapters.shared.stubs import ARNS, PolicedSqs
from tests.fakes.aws import aws

__all__ = ["aws"]
TAGS = {"signalbox:stage": "trial"}


class Session:
    """A session with one SQS client."""

    def __init__(self, sqs: PolicedSqs) -> None:
        self.sqs = sqs

    def client(self, _service: str, **_options: object) -> PolicedSqs:
        return self.sqs


@pytest.fixture
def sqs(aws: None) -> PolicedSqs:
    return PolicedSqs(boto3.client("sqs"))


def redrive(name: str) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": ARNS + name, "maxReceiveCount": 1})}


def test_the_queues_of_the_stage_are_found_with_strange_sources(sqs: PolicedSqs):
    sqs.create_queue(QueueName="trial-open", Attributes={}, tags=TAGS)
    sqs.create_queue(
        QueueName="trial-dead", Attributes={"RedriveAllowPolicy": allow_policy([ARNS + "trial-a"])}, tags=TAGS
    )
    sqs.create_queue(QueueName="trial-a", Attributes=redrive("trial-dead"), tags=TAGS)
    sqs.create_queue(QueueName="eve", Attributes=redrive("trial-dead"))
    sqs.create_queue(QueueName="trial-of-others", Attributes={})

    found = queue_sources(Session(sqs), ["trial-", "trial-o"], stage="trial")

    assert sorted(found, key=lambda one: one.name) == [
        QueueSources("trial-a", is_open=True, strangers=()),
        QueueSources("trial-dead", is_open=False, strangers=("eve",)),
        QueueSources("trial-open", is_open=True, strangers=()),
    ]


def test_a_queue_that_is_gone_meanwhile_is_left_out(sqs: PolicedSqs):
    url = sqs.create_queue(QueueName="trial-gone", Attributes={}, tags=TAGS)["QueueUrl"]
    tags = sqs.list_queue_tags(QueueUrl=url)

    class Gone(PolicedSqs):
        def list_queue_tags(self, *, QueueUrl: str) -> object:  # noqa: N803
            self.client.delete_queue(QueueUrl=QueueUrl)
            return tags

    assert queue_sources(Session(Gone(sqs.client)), ["trial-"], stage="trial") == []
