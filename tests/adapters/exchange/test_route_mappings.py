"""The event source mappings of the router: created after a queue, and deleted before it."""

from dataclasses import replace

import boto3
import pytest

from signalbox.aws.exchange.route_mappings import RouteMappings
from signalbox.aws.shared.mappings import EventSourceMappings
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.queues import QueueName
from tests.adapters.shared.stubs import ARNS, StubbedClient, error, function

NAME = QueueName("xpublic")
TAGS = {"signalbox:stage": "signalbox", "signalbox:capability": "exchange"}


@pytest.fixture
def routes(sqs) -> RouteMappings:
    sqs.create_queue(QueueName=NAME)
    functions = boto3.client("lambda")
    return RouteMappings(EventSourceMappings(functions, function("route"), ARNS, 10, TAGS, sleep=lambda _: None))


def mappings(routes: RouteMappings) -> list[dict[str, object]]:
    return routes.mappings.functions.list_event_source_mappings()["EventSourceMappings"]


def answering(routes: RouteMappings, call: str, *answers: object) -> RouteMappings:
    client = StubbedClient(routes.mappings.functions, call, *answers)
    return replace(routes, mappings=replace(routes.mappings, functions=client))


class Listed:
    """A paginator that returns mappings in these states, one list a call."""

    def __init__(self, *lists: list[str]) -> None:
        self.lists = list(lists)

    def paginate(self, **_: object) -> list[dict[str, object]]:
        states = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        return [{"EventSourceMappings": [{"UUID": f"u{n}", "State": state} for n, state in enumerate(states)]}]


def test_an_exchange_is_connected_once(routes: RouteMappings) -> None:
    for _ in range(2):
        assert routes.connect(NAME)

    (made,) = mappings(routes)
    assert (made["EventSourceArn"], made["FunctionArn"]) == (ARNS + NAME, routes.mappings.function_arn)
    assert (made["BatchSize"], made["FunctionResponseTypes"]) == (10, ["ReportBatchItemFailures"])
    assert made["ScalingConfig"] == {"MaximumConcurrency": 10}


def test_a_mapping_says_whose_it_is(routes: RouteMappings) -> None:
    asked = answering(routes, "create_event_source_mapping", {})

    asked.connect(NAME)

    assert asked.mappings.functions.calls[0]["Tags"] == TAGS


def test_a_fifo_queue_is_connected_in_the_same_way(routes: RouteMappings, sqs) -> None:
    name = QueueName("xs_a.fifo")
    sqs.create_queue(QueueName=name, Attributes={"FifoQueue": "true"})

    assert routes.connect(name)
    assert mappings(routes)[0]["ScalingConfig"] == {"MaximumConcurrency": 10}


def test_a_disabled_mapping_is_enabled_again(routes: RouteMappings) -> None:
    routes.connect(NAME)
    (made,) = mappings(routes)
    routes.mappings.functions.update_event_source_mapping(UUID=made["UUID"], Enabled=False)

    routes.connect(NAME)

    assert [one["State"] for one in mappings(routes)] == ["Enabled"]


def test_a_mapping_that_is_being_made_does_not_work_yet(routes: RouteMappings) -> None:
    assert not answering(routes, "get_paginator", Listed(["Creating"])).connect(NAME)


def test_one_that_is_being_deleted_is_no_connection(routes: RouteMappings) -> None:
    client = answering(routes, "get_paginator", Listed(["Deleting"], ["Deleting", "Enabled"]))

    assert client.connect(NAME)
    assert len(mappings(routes)) == 1


def test_only_the_exchanges_own_mapping_is_deleted(routes: RouteMappings) -> None:
    other = function("consumer")
    routes.mappings.functions.create_event_source_mapping(EventSourceArn=ARNS + NAME, FunctionName=other)
    routes.connect(NAME)

    for _ in range(2):
        routes.disconnect(NAME)

    left = [(one["FunctionArn"], one["State"]) for one in mappings(routes) if one["State"] != "Deleting"]
    assert left == [(other, "Enabled")]


TOO_NEW = error("InvalidParameterValueException", "SQS Error Code: AWS.SimpleQueueService.NonExistentQueue.")


def test_a_queue_that_lambda_does_not_find_yet_is_mapped_later(routes: RouteMappings) -> None:
    client = answering(routes, "create_event_source_mapping", TOO_NEW, TOO_NEW, {})

    client.connect(NAME)

    assert len(client.mappings.functions.calls) == 3


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        pytest.param(TOO_NEW, EffectFailed, id="queue-too-new"),
        pytest.param(error("ResourceConflictException", status=409), EffectFailed, id="being-deleted"),
        pytest.param(error("InvalidParameterValueException", "role"), EffectRefused, id="role-may-not-receive"),
    ],
)
def test_temporary_and_permanent_failures_differ(routes, refusal, expected: type[Exception]) -> None:
    with pytest.raises(expected):
        answering(routes, "create_event_source_mapping", refusal).connect(NAME)
