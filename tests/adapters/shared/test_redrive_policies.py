"""Redrive allow policies in SQS, and the queues that are made with them."""

import json

import pytest

from signalbox.aws.shared.managed_queues import OwnQueues
from signalbox.aws.shared.redrive_policies import SqsRedrivePolicies
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.queues import QueueName, allow_policy
from tests.adapters.shared.stubs import ARNS, URLS, PolicedSqs, StubbedClient, error
from tests.fakes.aws import aws, sqs  # noqa: F401 - fixtures

TAGS = {"signalbox:stage": "dev"}


@pytest.fixture
def policed(sqs) -> PolicedSqs:  # noqa: F811 - a fixture
    return PolicedSqs(sqs)


def naming(name: str) -> dict[str, str]:
    return {"RedrivePolicy": json.dumps({"deadLetterTargetArn": ARNS + name, "maxReceiveCount": 1})}


def test_a_policy_is_read_and_set(policed):
    policies, name = SqsRedrivePolicies(policed, URLS, ARNS), QueueName("dead")
    policed.create_queue(QueueName=name, Attributes={})
    assert policies.policy(name) == ""

    policies.set_policy(name, allow_policy())

    assert policies.policy(name) == allow_policy()
    assert policies.policy(QueueName("missing")) is None


def test_the_sources_of_a_queue_are_listed_by_their_arns(sqs):  # noqa: F811 - a fixture
    policies, name = SqsRedrivePolicies(sqs, URLS, ARNS), QueueName("dead")
    sqs.create_queue(QueueName=name)
    sqs.create_queue(QueueName="source", Attributes=naming("dead"))

    assert policies.sources(name) == [ARNS + "source"]


def test_the_arn_of_a_queue_has_its_name_at_the_end(policed):
    assert SqsRedrivePolicies(policed, URLS, ARNS).arn(QueueName("dead")) == ARNS + "dead"


def test_errors_are_translated(sqs):  # noqa: F811 - a fixture
    name = QueueName("dead")

    def denying(call: str) -> SqsRedrivePolicies:
        return SqsRedrivePolicies(StubbedClient(sqs, call, error("AccessDenied")), URLS, ARNS)

    with pytest.raises(EffectFailed):
        denying("get_queue_attributes").policy(name)
    with pytest.raises(EffectFailed):
        denying("get_paginator").sources(name)
    with pytest.raises(EffectRefused):
        denying("set_queue_attributes").set_policy(name, "")


def test_a_queue_is_made_with_its_sources(policed):
    queues = OwnQueues(policed, URLS, ARNS)

    queues.make("orders-dlq", {}, TAGS, sources=[QueueName("orders")])
    queues.make("orders", naming("orders-dlq"), TAGS)

    assert policed.policies == {"orders-dlq": allow_policy([ARNS + "orders"]), "orders": allow_policy()}


def test_an_existing_queue_keeps_the_queues_that_name_it(policed, sqs):  # noqa: F811 - a fixture
    sqs.create_queue(QueueName="orders", tags=TAGS, Attributes={"VisibilityTimeout": "9"})
    sqs.create_queue(QueueName="theirs", Attributes=naming("orders"))

    OwnQueues(policed, URLS, ARNS).make("orders", {"VisibilityTimeout": "10"}, TAGS)

    assert policed.policies == {"orders": allow_policy([ARNS + "theirs"])}
