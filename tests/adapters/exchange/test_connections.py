"""The event source mappings of all functions, and the item of the last check."""

import json
from collections.abc import Mapping

import pytest

from signalbox.aws.exchange.connections import DynamoConnectionChecks, LambdaConnections
from signalbox.aws.exchange.user_control_queues import UserControlQueues
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.exchange.model.connections import Connection, ConnectionCheck, FunctionArn, QueueMissing, Readers
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import UserName
from tests.adapters.shared.stubs import ARNS, KEY, URLS, StubbedClient, TaggingLambda, attributes_of, error, function
from tests.fakes.clock import START

ALICE, CONTROL = UserName("alice"), "signalbox-exchange-control"
OWN = f"{CONTROL}-alice"
TAGS = {"signalbox:stage": "signalbox", "signalbox:capability": "exchange"}


@pytest.fixture
def functions(sqs) -> TaggingLambda:
    return TaggingLambda()


@pytest.fixture
def connections(sqs, functions) -> LambdaConnections:
    """Return the connections of a stage whose administrators' queue has other settings than that of Alice."""
    for name in ("dead", "gone", "xpublic"):
        sqs.create_queue(QueueName=name)
    redrive = json.dumps({"deadLetterTargetArn": f"{ARNS}dead", "maxReceiveCount": 5})
    sqs.create_queue(QueueName=CONTROL, Attributes={"KmsMasterKeyId": KEY, "RedrivePolicy": redrive})
    earlier = json.dumps({"deadLetterTargetArn": f"{ARNS}gone", "maxReceiveCount": 5})
    sqs.create_queue(QueueName=OWN, Attributes={"RedrivePolicy": earlier})
    functions.create_event_source_mapping(
        EventSourceArn=ARNS + CONTROL,
        FunctionName=function("control"),
        BatchSize=1,
        ScalingConfig={"MaximumConcurrency": 7},
    )
    control_queues = UserControlQueues(sqs, functions, URLS + CONTROL, "")
    return LambdaConnections(functions, control_queues, ARNS, TAGS)


def connect(functions, queue: str, name: str, tags: Mapping[str, str] = TAGS) -> str:
    made = functions.create_event_source_mapping(EventSourceArn=ARNS + queue, FunctionName=function(name), Tags=tags)
    return str(made["UUID"])


def test_all_mappings_of_queues_are_listed_with_their_functions(connections, functions) -> None:
    mapping = connect(functions, "xpublic", "route-1")

    (found,) = (one for one in connections.every() if one.queue == "xpublic")
    assert found == Connection(mapping, QueueName("xpublic"), FunctionArn(found.function))
    assert found.function.endswith(":function:route-1")


def test_other_sources_and_mappings_in_deletion_are_left_out(connections) -> None:
    listed = [
        {"UUID": "u1", "State": "Enabled", "EventSourceArn": "arn:aws:kinesis:us-east-1:1:stream/s"},
        {"UUID": "u2", "State": "Deleting", "EventSourceArn": f"{ARNS}xpublic", "FunctionArn": "f"},
        {"UUID": "u3", "State": "Enabled"},  # of a self-managed broker
    ]
    paginator = StubbedClient(None, "paginate", [{"EventSourceMappings": listed}])
    stubbed = StubbedClient(connections.functions, "get_paginator", paginator)

    assert LambdaConnections(stubbed, connections.control_queues, ARNS, TAGS).every() == []


def test_a_failed_listing_can_be_retried(connections) -> None:
    stubbed = StubbedClient(connections.functions, "get_paginator", error("TooManyRequestsException", status=429))

    with pytest.raises(EffectFailed, match="TooManyRequests"):
        LambdaConnections(stubbed, connections.control_queues, ARNS, TAGS).every()


def test_a_user_gets_the_reader_of_the_administrators_and_no_dead_letter_queue(connections, sqs, functions) -> None:
    for _ in range(2):
        connections.connect_user(ALICE)

    own = attributes_of(sqs, OWN)
    assert not own.get("RedrivePolicy")
    assert own["KmsMasterKeyId"] == KEY
    (mapping,) = (one for one in connections.every() if one.queue == OWN)
    assert mapping.function.endswith(":function:control")
    settings = functions.get_event_source_mapping(UUID=mapping.mapping_id)
    assert (settings["BatchSize"], settings["ScalingConfig"]) == (1, {"MaximumConcurrency": 2})
    (tags,) = (tags for tags in functions.tags.values() if tags)
    assert tags == {**TAGS, "signalbox:user": "alice"}


def test_a_user_whose_queue_is_gone_is_refused(connections, sqs) -> None:
    sqs.delete_queue(QueueUrl=URLS + OWN)

    with pytest.raises(QueueMissing, match=f"{OWN}.*signalbox user add alice"):
        connections.connect_user(ALICE)


def test_a_mapping_of_this_stage_is_deleted(connections, functions) -> None:
    connect(functions, "xpublic", "route-1")
    (found,) = (one for one in connections.every() if one.queue == "xpublic")

    assert connections.disconnect(found)
    assert [one for one in connections.every() if one.queue == "xpublic"] == []


@pytest.mark.parametrize("tags", [{}, {**TAGS, "signalbox:stage": "other"}], ids=["untagged", "another-stage"])
def test_a_mapping_of_others_is_kept(connections, functions, tags) -> None:
    connect(functions, "xpublic", "tap", tags)
    (found,) = (one for one in connections.every() if one.queue == "xpublic")

    assert not connections.disconnect(found)
    assert found in connections.every()


def test_a_mapping_that_is_gone_counts_as_deleted(connections, functions) -> None:
    gone = Connection("00000000-0000-4000-8000-000000000000", QueueName("xpublic"), FunctionArn("f"))
    functions.list_tags = StubbedClient(
        None, "list_tags", functions.exceptions.ResourceNotFoundException({"Error": {}}, "ListTags")
    ).list_tags

    assert connections.disconnect(gone)


def test_a_refused_deletion_names_the_queue(connections, functions) -> None:
    functions.list_tags = StubbedClient(None, "list_tags", error("AccessDeniedException")).list_tags

    with pytest.raises(EffectRefused, match="of queue 'xpublic'"):
        connections.disconnect(Connection("u1", QueueName("xpublic"), FunctionArn("f")))


def test_the_last_check_is_stored_with_its_functions(exchange_table) -> None:
    checks = DynamoConnectionChecks(exchange_table)
    assert checks.last() is None

    check = ConnectionCheck(Readers(FunctionArn("route"), FunctionArn("control")), START)
    checks.record(check)

    assert checks.last() == check
