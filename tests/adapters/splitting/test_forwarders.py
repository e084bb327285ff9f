"""Event source mappings to the function `split`: created once, disabled and deleted, with AWS's states."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import boto3
import pytest

from signalbox.aws.shared.mappings import EventSourceMappings
from signalbox.aws.splitting.forwarders import LambdaForwarders
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.queues import QueueName
from signalbox.splitting.model.observed_state import Forwarder, ForwardingState
from tests.adapters.shared.stubs import ARNS, TaggingLambda, error, function
from tests.fakes.rendezvous import START

ORIGINAL = QueueName("memes")


@pytest.fixture
def forwarders(sqs) -> LambdaForwarders:
    sqs.create_queue(QueueName=ORIGINAL)
    return LambdaForwarders(boto3.client("lambda"), function("split"), ARNS, stage="signalbox", concurrency=20)


def mappings(forwarders: LambdaForwarders) -> list[dict[str, object]]:
    return forwarders.lambda_.list_event_source_mappings()["EventSourceMappings"]


def state(forwarders: LambdaForwarders) -> ForwardingState:
    return forwarders.observe([ORIGINAL])[ORIGINAL].state


class Listing:
    """A Lambda client with a fixed list of mappings; it counts changes, and can fail them."""

    def __init__(self, *listed: dict[str, object], error: Exception | None = None) -> None:
        self.listed, self.error = listed, error
        self.changes: list[tuple[str, dict[str, object]]] = []
        self.exceptions = boto3.client("lambda").exceptions

    def get_paginator(self, _: str) -> "Listing":
        return self

    def paginate(self, **_: object) -> list[dict[str, object]]:
        return [{"EventSourceMappings": list(self.listed)}]

    def __getattr__(self, name: str) -> object:
        return lambda **arguments: self._change(name, arguments)

    def _change(self, name: str, arguments: dict[str, object]) -> None:
        self.changes.append((name, arguments))
        if self.error:
            raise self.error


def mapping(name: str, *, uuid: str = "u1", at: datetime = START) -> dict[str, object]:
    return {"UUID": uuid, "State": name, "LastModified": at}


def test_a_queue_without_a_mapping_has_no_forwarder(forwarders: LambdaForwarders) -> None:
    assert forwarders.observe([ORIGINAL]) == {ORIGINAL: Forwarder()}


def test_a_forwarder_is_a_mapping_with_partial_batch_responses(forwarders: LambdaForwarders) -> None:
    forwarders.start(ORIGINAL)

    (made,) = mappings(forwarders)
    assert made["EventSourceArn"] == ARNS + ORIGINAL
    assert made["FunctionArn"] == forwarders.function_arn
    assert made["BatchSize"] == 10
    assert made["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert made["ScalingConfig"] == {"MaximumConcurrency": 20}
    assert state(forwarders) is ForwardingState.ON


def test_a_mapping_is_tagged(aws: None) -> None:
    listing = Listing()

    LambdaForwarders(listing, "split", ARNS, stage="signalbox", concurrency=20).start(ORIGINAL)

    ((name, arguments),) = listing.changes
    assert name == "create_event_source_mapping"
    assert arguments["Tags"] == {"signalbox:stage": "signalbox", "signalbox:capability": "splitting"}


def test_forwarding_is_started_once_stopped_and_started_again(forwarders: LambdaForwarders) -> None:
    for _ in range(2):
        forwarders.start(ORIGINAL)
    (made,) = mappings(forwarders)

    for _ in range(2):
        forwarders.stop(ORIGINAL)
    assert state(forwarders) is ForwardingState.OFF

    forwarders.start(ORIGINAL)
    assert state(forwarders) is ForwardingState.ON
    assert [one["UUID"] for one in mappings(forwarders)] == [made["UUID"]]


def test_a_forwarder_is_deleted(forwarders: LambdaForwarders) -> None:
    forwarders.start(ORIGINAL)
    forwarders.stop(ORIGINAL)

    for _ in range(2):
        forwarders.remove(ORIGINAL)

    assert state(forwarders) in (ForwardingState.ABSENT, ForwardingState.STOPPING)


def test_the_forwarder_of_an_earlier_deployment_is_replaced(sqs) -> None:
    sqs.create_queue(QueueName=ORIGINAL)
    functions = TaggingLambda()
    earlier, now = (
        LambdaForwarders(functions, function(name), ARNS, stage="signalbox", concurrency=20)
        for name in ("split-1", "split-2")
    )
    earlier.start(ORIGINAL)
    consumer = function("meme-app")
    functions.create_event_source_mapping(EventSourceArn=ARNS + ORIGINAL, FunctionName=consumer)

    now.start(ORIGINAL)

    left = [one["FunctionArn"] for one in mappings(now) if one["State"] != "Deleting"]
    assert sorted(left) == sorted([consumer, now.function_arn])


def test_the_stages_own_forwarder_and_mappings_in_deletion_are_not_earlier_ones(aws: None) -> None:
    listing = Listing(
        {**mapping("Enabled"), "FunctionArn": "split"}, {**mapping("Deleting", uuid="u2"), "FunctionArn": "split-1"}
    )

    EventSourceMappings(listing, "split", ARNS, concurrency=20).remove_earlier(ORIGINAL)

    assert listing.changes == []


def test_the_mapping_of_the_deployed_consumer_is_not_changed(forwarders: LambdaForwarders) -> None:
    consumer = function("meme-app")
    forwarders.lambda_.create_event_source_mapping(EventSourceArn=ARNS + ORIGINAL, FunctionName=consumer)

    assert state(forwarders) is ForwardingState.ABSENT
    forwarders.stop(ORIGINAL)
    forwarders.remove(ORIGINAL)

    assert [(one["FunctionArn"], one["State"]) for one in mappings(forwarders)] == [(consumer, "Enabled")]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["Creating"], ForwardingState.STARTING, id="creating"),
        pytest.param(["Enabling"], ForwardingState.STARTING, id="enabling"),
        pytest.param(["Updating"], ForwardingState.STARTING, id="updating"),
        pytest.param(["Enabled"], ForwardingState.ON, id="enabled"),
        pytest.param(["Disabling"], ForwardingState.STOPPING, id="disabling"),
        pytest.param(["Disabled"], ForwardingState.OFF, id="disabled"),
        pytest.param(["Deleting"], ForwardingState.STOPPING, id="deleting"),
        pytest.param(["Disabled", "Enabled"], ForwardingState.ON, id="two-and-one-is-on"),
    ],
)
def test_each_state_of_a_mapping_is_translated(aws: None, names: list[str], expected: ForwardingState) -> None:
    forwarders = LambdaForwarders(Listing(*map(mapping, names)), "split", ARNS, stage="signalbox", concurrency=20)

    assert state(forwarders) is expected


def test_a_state_never_seems_older_than_it_is(aws: None) -> None:
    """The emulator cuts off the fraction of the second."""
    late = START + timedelta(seconds=5)
    listing = Listing(mapping("Disabled"), mapping("Disabled", uuid="u2", at=late))

    found = LambdaForwarders(listing, "split", ARNS, stage="signalbox", concurrency=20).observe([ORIGINAL])[ORIGINAL]

    assert found.since == late + timedelta(seconds=1)
    assert found.since.tzinfo is UTC


def test_duplicate_mappings_are_both_disabled_and_deleted(aws: None) -> None:
    """The emulator takes a second one; AWS does not."""
    listing = Listing(mapping("Enabled"), mapping("Enabled", uuid="u2"), mapping("Deleting", uuid="u3"))
    forwarders = LambdaForwarders(listing, "split", ARNS, stage="signalbox", concurrency=20)

    forwarders.stop(ORIGINAL)
    forwarders.remove(ORIGINAL)

    assert [(name, arguments["UUID"]) for name, arguments in listing.changes] == [
        ("update_event_source_mapping", "u1"),
        ("update_event_source_mapping", "u2"),
        ("delete_event_source_mapping", "u1"),
        ("delete_event_source_mapping", "u2"),
    ]


def test_deleting_an_absent_mapping_is_ignored(forwarders: LambdaForwarders) -> None:
    gone = forwarders.lambda_.exceptions.ResourceNotFoundException({"Error": {"Code": "x"}}, "TheCall")
    listing = Listing(mapping("Disabled"), error=gone)

    LambdaForwarders(listing, "split", ARNS, stage="signalbox", concurrency=20).remove(ORIGINAL)

    assert len(listing.changes) == 1


def test_a_deleted_queue_is_a_refusal(forwarders: LambdaForwarders) -> None:
    with pytest.raises(EffectRefused, match=r"ResourceNotFoundException at CreateEventSourceMapping.*'gone'"):
        forwarders.start(QueueName("gone"))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(error("InvalidParameterValueException"), EffectRefused, id="role-may-not-receive"),
        pytest.param(error("ResourceInUseException"), EffectFailed, id="changing-already"),
        pytest.param(error("ResourceConflictException", status=409), EffectFailed, id="made-by-somebody-else-just-now"),
        pytest.param(error("ServiceException", status=500), EffectFailed, id="broken"),
    ],
)
def test_temporary_failures_differ_from_refusals(
    forwarders: LambdaForwarders, answer: Exception, expected: type[Exception]
) -> None:
    failing = replace(forwarders, lambda_=Listing(error=answer))

    with pytest.raises(expected, match="of event source mapping of queue 'memes'"):
        failing.start(ORIGINAL)
