"""Lambda targets with event source mappings: switched and restored."""

import json
from dataclasses import replace
from datetime import timedelta

import boto3
import pytest
from botocore.exceptions import ClientError

from signalbox.aws.splitting.targets.lambdas import LambdaTargets
from signalbox.aws.splitting.targets.original_queues import OriginalQueues
from signalbox.errors import EffectFailed, EffectRefused, RejectedError
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import QueueElsewhere, Resolver, UnresolvedQueue
from signalbox.splitting.consumers.registry import ConsumedQueue, NameSource, RegisteredQueue, Registry, SourceKind
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Split, SplitQueue, Stage
from signalbox.splitting.model.target import Target
from tests.adapters.splitting.lambda_functions import (
    ACCOUNT_PREFIX,
    NAME,
    SETTINGS,
    SlowMappings,
    function,
    mapping,
    mappings,
    queue,
    tags,
)
from tests.fakes.splitting import MemoryAnnotations
from tests.unit.splitting.consumers.registries import HOME
from tests.unit.splitting.control.observed_states import LONG_AGO
from tests.unit.splitting.forwarding.languages import PlainLanguages

TARGET = Target.parse(f"lambda/{NAME}")
MEMES, DEPLOYED = QueueName("memes"), QueueName("mirrord-tmp-1-fallback-memes")
TAGS = {"signalbox:stage": "signalbox"}
REGISTRY = Registry(
    TARGET, (RegisteredQueue(QueueId("memes"), (NameSource(SourceKind.EVENT_SOURCE, "memes", variable="QUEUE"),)),)
)
SPLIT = Split(
    TARGET,
    (SplitQueue(QueueId("memes"), MEMES, DEPLOYED, timedelta(seconds=30)),),
    (),
    Stage.STARTING,
    LONG_AGO,
    timedelta(seconds=120),
)


@pytest.fixture
def slow(aws: None) -> SlowMappings:
    return SlowMappings(boto3.client("lambda"))


@pytest.fixture
def targets(aws: None) -> LambdaTargets:
    return made(boto3.client("lambda"))


def made(client: object) -> LambdaTargets:
    originals = OriginalQueues(boto3.client("sqs"))
    return LambdaTargets(client, originals, MemoryAnnotations(), Resolver(PlainLanguages(), HOME), ACCOUNT_PREFIX, TAGS)


@pytest.fixture
def consumer(aws: None) -> None:
    queue("memes", VisibilityTimeout="45")
    queue(DEPLOYED)
    function()


def test_the_queue_of_a_mapping_is_found(targets: LambdaTargets, consumer: None) -> None:
    mapping()

    found = targets.find(REGISTRY)

    assert list(found) == [ConsumedQueue(QueueId("memes"), MEMES, timedelta(seconds=45))]


def test_the_maximum_of_receives_of_a_queue_is_found(targets: LambdaTargets, consumer: None) -> None:
    mapping()
    queue("dead")
    dead = f"{ACCOUNT_PREFIX}dead"
    redrive = json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": "1"})
    sqs = boto3.client("sqs")
    url = sqs.get_queue_url(QueueName="memes")["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"RedrivePolicy": redrive})

    (found,) = targets.find(REGISTRY)

    assert found.maximum_receives == 1


def test_a_queue_without_a_mapping_to_the_function_is_not_found(targets: LambdaTargets, consumer: None) -> None:
    with pytest.raises(UnresolvedQueue, match="lambda/meme-app has no event source mapping from queue 'memes'"):
        targets.find(REGISTRY)


@pytest.mark.parametrize(
    "source", [NameSource(SourceKind.VARIABLE, "ABSENT"), NameSource(SourceKind.EVENT_SOURCE, "not-mapped")]
)
def test_a_queue_to_which_a_function_has_no_reference_does_not_block_the_others(
    targets: LambdaTargets, consumer: None, source: NameSource
) -> None:
    mapping()
    absent = RegisteredQueue(QueueId("optional"), (source,))

    found = targets.find(replace(REGISTRY, queues=(absent, *REGISTRY.queues)))

    assert [one.original for one in found] == [MEMES]


def test_an_event_source_of_another_account_is_refused(targets: LambdaTargets, consumer: None) -> None:
    mapping()
    arn = ACCOUNT_PREFIX.replace("123", "321") + MEMES
    registry = replace(
        REGISTRY, queues=(RegisteredQueue(QueueId("memes"), (NameSource(SourceKind.EVENT_SOURCE, arn),)),)
    )

    with pytest.raises(QueueElsewhere, match="event source of queue 'memes' names a queue of account 321456789012"):
        targets.find(registry)


def test_an_unknown_function_is_not_found(targets: LambdaTargets) -> None:
    with pytest.raises(RejectedError, match="there is no lambda/meme-app"):
        targets.find(REGISTRY)


def test_a_mapping_to_another_function_is_not_the_targets(targets: LambdaTargets, consumer: None) -> None:
    mapping()

    assert not targets._event_sources.of(Target.parse("lambda/meme"), MEMES)


def test_a_switch_copies_every_setting_and_tag(targets: LambdaTargets, consumer: None) -> None:
    mapping(Tags={"team": "memes", "aws:cloudformation:stack-name": "app"}, **SETTINGS)
    before = mappings("memes")[0]

    targets.switch(SPLIT, REGISTRY)

    assert mappings(DEPLOYED) == [before]
    assert tags(DEPLOYED) == {"team": "memes", **TAGS}
    assert mappings("memes") == [before | {"State": "Disabled"}]
    assert targets.observe(SPLIT, REGISTRY) is TargetState.TEMPORARY


def test_a_switch_and_back_restores_everything(targets: LambdaTargets, consumer: None) -> None:
    mapping(**SETTINGS)
    before = mappings("memes")

    targets.switch(SPLIT, REGISTRY)
    targets.switch_back(SPLIT, REGISTRY)

    assert (mappings("memes"), mappings(DEPLOYED)) == (before, [])
    assert targets.observe(SPLIT, REGISTRY) is TargetState.ORIGINAL


def test_the_old_mapping_is_disabled_only_when_the_new_one_is_on(slow: SlowMappings, consumer: None) -> None:
    mapping()
    targets = made(slow)
    states = [targets.observe(SPLIT, REGISTRY)]

    for _ in range(2):
        targets.switch(SPLIT, REGISTRY)
        states.append(targets.observe(SPLIT, REGISTRY))
        slow.settle()
        states.append(targets.observe(SPLIT, REGISTRY))

    assert slow.calls == [f"create {DEPLOYED}", "disable memes"]
    assert states == [
        TargetState.ORIGINAL,
        TargetState.CHANGING,
        TargetState.MIXED,
        TargetState.CHANGING,
        TargetState.TEMPORARY,
    ]


def test_the_switch_back_enables_the_old_mapping_before_it_deletes_the_new_one(
    slow: SlowMappings, consumer: None
) -> None:
    mapping()
    targets = made(slow)
    _until(TargetState.TEMPORARY, targets.switch, targets, slow)
    slow.calls.clear()

    _until(TargetState.ORIGINAL, targets.switch_back, targets, slow)

    assert slow.calls == ["enable memes", f"disable {DEPLOYED}", f"delete {DEPLOYED}"]


def _until(state: TargetState, change: object, targets: LambdaTargets, slow: SlowMappings) -> None:
    for _ in range(5):
        if targets.observe(SPLIT, REGISTRY) is state:
            return
        change(SPLIT, REGISTRY)
        slow.settle()
    raise AssertionError(f"never came to {state}")


def test_a_mapping_that_was_off_stays_off(targets: LambdaTargets, consumer: None) -> None:
    mapping(Enabled=False)

    targets.switch(SPLIT, REGISTRY)
    switched = (targets.observe(SPLIT, REGISTRY), mappings(DEPLOYED)[0]["State"])
    targets.switch_back(SPLIT, REGISTRY)

    assert switched == (TargetState.TEMPORARY, "Disabled")
    assert (mappings("memes")[0]["State"], mappings(DEPLOYED)) == ("Disabled", [])


def test_a_mapping_that_a_deployment_enabled_again_is_disabled_again(targets: LambdaTargets, consumer: None) -> None:
    uuid = mapping()
    targets.switch(SPLIT, REGISTRY)
    boto3.client("lambda").update_event_source_mapping(UUID=uuid, Enabled=True)

    state = targets.observe(SPLIT, REGISTRY)
    targets.switch(SPLIT, REGISTRY)

    assert (state, targets.observe(SPLIT, REGISTRY)) == (TargetState.MIXED, TargetState.TEMPORARY)


def test_a_mapping_deleted_during_a_split_is_created_again(targets: LambdaTargets, consumer: None) -> None:
    uuid = mapping(Tags={"team": "memes"}, **SETTINGS)
    before = mappings("memes")
    targets.switch(SPLIT, REGISTRY)
    boto3.client("lambda").delete_event_source_mapping(UUID=uuid)

    state = targets.observe(SPLIT, REGISTRY)
    targets.switch_back(SPLIT, REGISTRY)

    assert state is TargetState.TEMPORARY
    assert (mappings("memes"), mappings(DEPLOYED), tags("memes")) == (before, [], {"team": "memes"})


def test_a_deleted_function_is_gone(targets: LambdaTargets, consumer: None) -> None:
    mapping()
    boto3.client("lambda").delete_function(FunctionName=NAME)

    assert targets.observe(SPLIT, REGISTRY) is TargetState.GONE


def test_the_mappings_of_a_deleted_function_are_deleted(targets: LambdaTargets, consumer: None) -> None:
    mapping()
    targets.switch(SPLIT, REGISTRY)
    boto3.client("lambda").delete_function(FunctionName=NAME)
    restoring = replace(SPLIT, stage=Stage.RESTORING)

    state = targets.observe(restoring, REGISTRY)
    targets.switch_back(restoring, REGISTRY)

    assert (state, mappings(DEPLOYED)) == (TargetState.MIXED, [])
    assert targets.observe(restoring, REGISTRY) is TargetState.GONE


def test_a_refusal_has_the_code_the_queue_and_the_function(slow: SlowMappings, consumer: None) -> None:
    mapping()
    slow.refusal = _error("InvalidParameterValueException", "the role may not call ReceiveMessage on SQS", 400)

    with pytest.raises(EffectRefused) as refused:
        made(slow).switch(SPLIT, REGISTRY)

    assert all(
        word in str(refused.value) for word in ("InvalidParameterValueException", DEPLOYED, NAME, "role may not")
    )
    assert mappings("memes")[0]["State"] == "Enabled"


def test_a_mapping_in_use_is_a_temporary_failure(slow: SlowMappings, consumer: None) -> None:
    mapping()
    slow.refusal = _error("ResourceConflictException", "there is one already", 409)

    with pytest.raises(EffectFailed, match="ResourceConflictException"):
        made(slow).switch(SPLIT, REGISTRY)


def _error(code: str, text: str, status: int) -> ClientError:
    answer = {"Error": {"Code": code, "Message": text}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "CreateEventSourceMapping")


def test_a_switch_without_any_mapping_left_is_refused(targets: LambdaTargets, consumer: None) -> None:
    with pytest.raises(EffectRefused, match="no longer has an event source mapping from queue 'memes'"):
        targets.switch(SPLIT, REGISTRY)


def test_a_mapping_with_unreadable_filters_is_refused(slow: SlowMappings, consumer: None) -> None:
    mapping()
    whole = slow.client.get_event_source_mapping
    problem = {"ErrorCode": "KMSAccessDeniedException", "Message": "no"}
    slow.get_event_source_mapping = lambda **found: whole(**found) | {"FilterCriteriaError": problem}

    with pytest.raises(EffectRefused, match="cannot be copied: KMSAccessDeniedException"):
        made(slow).switch(SPLIT, REGISTRY)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, "mine", id="no variable"),
        pytest.param(
            "https://sqs.us-east-1.amazonaws.com/1/memes", "https://sqs.us-east-1.amazonaws.com/1/mine", id="url"
        ),
        pytest.param("https://sqs.us-east-1.amazonaws.com/1/other", "mine", id="another queue"),
    ],
)
def test_a_local_command_receives_the_functions_form_of_reference(
    targets: LambdaTargets, value: str | None, expected: str
) -> None:
    queue("memes")
    function(**({"QUEUE": value} if value else {}))

    environment = targets.environment(REGISTRY, {MEMES: QueueName("mine")})

    assert environment == {"QUEUE": expected}


def test_a_mapping_without_a_variable_gives_a_local_command_none(targets: LambdaTargets, consumer: None) -> None:
    without = RegisteredQueue(QueueId("memes"), (NameSource(SourceKind.EVENT_SOURCE, "memes"),))

    assert targets.environment(replace(REGISTRY, queues=(without,)), {MEMES: QueueName("mine")}) == {}
