"""Lambda targets with queue names in variables, including aliases of their versions."""

from dataclasses import dataclass, field, replace

import boto3
import pytest
from botocore.exceptions import ClientError

from signalbox.aws.splitting.targets.lambdas import LambdaTargets
from signalbox.aws.splitting.targets.original_queues import OriginalQueues
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import Resolver
from signalbox.splitting.consumers.registry import NameSource, RegisteredQueue, Registry, SourceKind
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target
from tests.adapters.shared.stubs import code
from tests.adapters.splitting.lambda_functions import ACCOUNT_PREFIX, NAME, function, mapping, mappings, queue
from tests.adapters.splitting.test_lambda_targets import DEPLOYED, MEMES, SPLIT, TAGS, TARGET
from tests.fakes.splitting import MemoryAnnotations
from tests.unit.splitting.consumers.registries import HOME
from tests.unit.splitting.forwarding.languages import PlainLanguages

ALIAS = Target.parse(f"lambda/{NAME}:live")
URL = "https://sqs.us-east-1.amazonaws.com/123456789012/"
BEFORE = {"QUEUE": URL + MEMES, "COLOUR": "red"}
SWITCHED = {"QUEUE": URL + DEPLOYED, "COLOUR": "red"}
REGISTRY = Registry(TARGET, (RegisteredQueue(QueueId("memes"), (NameSource(SourceKind.VARIABLE, "QUEUE"),)),))
ALIAS_REGISTRY, ALIAS_SPLIT = replace(REGISTRY, target=ALIAS), replace(SPLIT, target=ALIAS)


@dataclass
class Lambda:
    """A Lambda client that overrides fields of moto's configurations with `overrides`."""

    client: object
    overrides: dict[str, object] = field(default_factory=dict)
    of_latest: dict[str, object] = field(default_factory=dict)
    revisions: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)

    def get_function_configuration(self, **arguments: object) -> dict[str, object]:
        found = self.client.get_function_configuration(**arguments) | {"RevisionId": "r1"} | self.overrides
        return found if "Qualifier" in arguments else found | self.of_latest

    def update_function_configuration(self, *, RevisionId: str, **arguments: object) -> object:  # noqa: N803
        self.revisions.append(RevisionId)
        return self.client.update_function_configuration(**arguments)


@pytest.fixture
def functions(aws: None) -> Lambda:
    queue("memes")
    queue(DEPLOYED)
    function(**BEFORE)
    return Lambda(boto3.client("lambda"))


@pytest.fixture
def targets(functions: Lambda) -> LambdaTargets:
    originals = OriginalQueues(boto3.client("sqs"))
    return LambdaTargets(
        functions, originals, MemoryAnnotations(), Resolver(PlainLanguages(), HOME), ACCOUNT_PREFIX, TAGS
    )


@pytest.fixture
def alias(functions: Lambda) -> None:
    functions.publish_version(FunctionName=NAME)
    functions.create_alias(FunctionName=NAME, Name="live", FunctionVersion="1")


def variables(qualifier: str = "$LATEST") -> dict[str, str]:
    found = boto3.client("lambda").get_function_configuration(FunctionName=NAME, Qualifier=qualifier)
    return dict(found["Environment"]["Variables"])


def version() -> str:
    return str(boto3.client("lambda").get_alias(FunctionName=NAME, Name="live")["FunctionVersion"])


def arrive(targets: LambdaTargets, state: TargetState, *, split: Split = ALIAS_SPLIT) -> None:
    registry = replace(REGISTRY, target=split.target)
    change = targets.switch if state is TargetState.TEMPORARY else targets.switch_back
    for _ in range(4):
        if targets.observe(split, registry) is state:
            return
        change(split, registry)
    raise AssertionError(f"never came to {state}")


def test_the_queue_of_a_variable_is_found(targets: LambdaTargets) -> None:
    assert [found.original for found in targets.find(REGISTRY)] == [MEMES]


def test_a_switch_changes_one_variable_of_the_whole_map(targets: LambdaTargets, functions: Lambda) -> None:
    targets.switch(SPLIT, REGISTRY)

    assert variables() == SWITCHED
    assert functions.revisions == ["r1"]
    assert targets.observe(SPLIT, REGISTRY) is TargetState.TEMPORARY


def test_the_switch_back_restores_the_variables(targets: LambdaTargets) -> None:
    targets.switch(SPLIT, REGISTRY)

    targets.switch_back(SPLIT, REGISTRY)

    assert (variables(), targets.observe(SPLIT, REGISTRY)) == (BEFORE, TargetState.ORIGINAL)


def test_a_second_switch_changes_nothing(targets: LambdaTargets, functions: Lambda) -> None:
    targets.switch(SPLIT, REGISTRY)

    targets.switch(SPLIT, REGISTRY)

    assert len(functions.revisions) == 1


def test_a_function_is_changing_until_lambda_has_updated_it(targets: LambdaTargets, functions: Lambda) -> None:
    targets.switch(SPLIT, REGISTRY)
    functions.overrides = {"LastUpdateStatus": "InProgress"}

    assert targets.observe(SPLIT, REGISTRY) is TargetState.CHANGING


def test_a_failed_update_is_repeated(targets: LambdaTargets, functions: Lambda) -> None:
    targets.switch(SPLIT, REGISTRY)
    functions.overrides = {"LastUpdateStatus": "Failed", "LastUpdateStatusReason": "no network interface"}

    state = targets.observe(SPLIT, REGISTRY)
    targets.switch(SPLIT, REGISTRY)

    assert (state, len(functions.revisions)) == (TargetState.MIXED, 2)


def test_variables_that_cannot_be_read_are_not_overwritten(targets: LambdaTargets, functions: Lambda) -> None:
    functions.overrides = {"Environment": {"Error": {"ErrorCode": "KMSAccessDeniedException", "Message": "no"}}}

    with pytest.raises(EffectRefused, match="cannot be read: KMSAccessDeniedException: no"):
        targets.switch(SPLIT, REGISTRY)
    with pytest.raises(EffectFailed, match="cannot be read: KMSAccessDeniedException: no"):
        targets.observe(SPLIT, REGISTRY)


def test_a_function_that_cannot_be_read_does_not_count_as_gone(targets: LambdaTargets, functions: Lambda) -> None:
    answer = {"Error": {"Code": "AccessDeniedException", "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": 403}}

    def refuse(**_named: object) -> None:
        raise ClientError(answer, "GetFunctionConfiguration")

    functions.get_function_configuration = refuse

    with pytest.raises(EffectFailed, match="AccessDeniedException"):
        targets.observe(SPLIT, REGISTRY)


def test_a_function_that_reads_another_queue_now_is_not_switched(targets: LambdaTargets, functions: Lambda) -> None:
    functions.client.update_function_configuration(FunctionName=NAME, Environment={"Variables": {"QUEUE": "other"}})

    with pytest.raises(EffectRefused, match="name other queues than at the start of the split"):
        targets.switch(SPLIT, REGISTRY)


def test_a_local_command_receives_the_original_form_while_the_function_is_switched(targets: LambdaTargets) -> None:
    targets.switch(SPLIT, REGISTRY)

    assert targets.environment(REGISTRY, {MEMES: QueueName("mine")}) == {"QUEUE": URL + "mine"}


def test_a_mapping_and_a_variable_of_one_queue_are_switched_together(targets: LambdaTargets) -> None:
    mapping()
    sources = (NameSource(SourceKind.EVENT_SOURCE, "memes"), NameSource(SourceKind.VARIABLE, "QUEUE"))
    both = replace(REGISTRY, queues=(RegisteredQueue(QueueId("memes"), sources),))

    targets.switch(SPLIT, both)
    switched = (targets.observe(SPLIT, both), variables(), len(mappings(DEPLOYED)))
    targets.switch_back(SPLIT, both)

    assert switched == (TargetState.TEMPORARY, SWITCHED, 1)
    assert (targets.observe(SPLIT, both), variables(), mappings(DEPLOYED)) == (TargetState.ORIGINAL, BEFORE, [])
    assert len(targets.find(both)) == 1


def test_an_alias_points_at_a_version_with_temporary_names(targets: LambdaTargets, alias: None) -> None:
    arrive(targets, TargetState.TEMPORARY)

    assert (variables("live"), variables("1"), version()) == (SWITCHED, BEFORE, "2")


def test_an_alias_points_at_its_old_version_again(targets: LambdaTargets, alias: None) -> None:
    arrive(targets, TargetState.TEMPORARY)

    arrive(targets, TargetState.ORIGINAL)

    assert (variables("live"), variables(), version()) == (BEFORE, BEFORE, "1")


def test_an_interrupted_switch_of_an_alias_continues_or_is_undone(targets: LambdaTargets, alias: None) -> None:
    targets.switch(ALIAS_SPLIT, ALIAS_REGISTRY)  # so far only the function has changed

    state = targets.observe(ALIAS_SPLIT, ALIAS_REGISTRY)
    arrive(targets, TargetState.ORIGINAL)

    assert (state, variables(), version()) == (TargetState.MIXED, BEFORE, "1")


def test_a_second_switch_of_an_alias_changes_nothing(targets: LambdaTargets, functions: Lambda, alias: None) -> None:
    arrive(targets, TargetState.TEMPORARY)
    calls = len(functions.revisions)

    targets.switch(ALIAS_SPLIT, ALIAS_REGISTRY)

    assert (variables("live"), version(), len(functions.revisions)) == (SWITCHED, "2", calls)


def test_an_alias_released_during_a_split_is_published_with_the_original_names(
    targets: LambdaTargets, functions: Lambda
) -> None:
    functions.create_alias(FunctionName=NAME, Name="live", FunctionVersion="$LATEST")
    arrive(targets, TargetState.TEMPORARY)
    published = functions.publish_version(FunctionName=NAME)["Version"]
    functions.update_alias(FunctionName=NAME, Name="live", FunctionVersion=published)

    arrive(targets, TargetState.ORIGINAL)

    assert (variables("live"), variables(), version()) == (BEFORE, BEFORE, "2")


def test_a_switch_does_not_release_unpublished_code(targets: LambdaTargets, functions: Lambda, alias: None) -> None:
    functions.update_function_code(FunctionName=NAME, ZipFile=code("new"))

    with pytest.raises(EffectRefused, match="runs version 1, which differs from the latest function"):
        targets.switch(ALIAS_SPLIT, ALIAS_REGISTRY)


@pytest.mark.parametrize(("name", "value"), [("Layers", [{"Arn": "arn:aws:lambda:x:1:layer:y:1"}]), ("Timeout", 7)])
def test_a_switch_does_not_release_unpublished_settings(
    targets: LambdaTargets, functions: Lambda, alias: None, name: str, value: object
) -> None:
    functions.of_latest[name] = value

    with pytest.raises(EffectRefused, match="runs version 1, which differs from the latest function"):
        targets.switch(ALIAS_SPLIT, ALIAS_REGISTRY)


def test_code_released_during_a_split_is_kept(targets: LambdaTargets, functions: Lambda, alias: None) -> None:
    arrive(targets, TargetState.TEMPORARY)
    functions.update_function_code(FunctionName=NAME, ZipFile=code("new"))
    functions.publish_version(FunctionName=NAME)
    functions.update_alias(FunctionName=NAME, Name="live", FunctionVersion="3")

    arrive(targets, TargetState.ORIGINAL)

    found = functions.get_function_configuration(FunctionName=NAME, Qualifier="live")
    assert found["CodeSha256"] == functions.get_function_configuration(FunctionName=NAME)["CodeSha256"]
    assert (variables("live"), version()) == (BEFORE, "4")


def test_code_released_during_a_split_is_not_replaced_by_unpublished_code(
    targets: LambdaTargets, functions: Lambda, alias: None
) -> None:
    arrive(targets, TargetState.TEMPORARY)
    functions.update_function_code(FunctionName=NAME, ZipFile=code("new"))
    functions.publish_version(FunctionName=NAME)
    functions.update_alias(FunctionName=NAME, Name="live", FunctionVersion="3")
    functions.update_function_code(FunctionName=NAME, ZipFile=code("newer"))

    with pytest.raises(EffectRefused, match="and its function differ; publish the intended version"):
        arrive(targets, TargetState.ORIGINAL)


def test_an_alias_of_two_versions_is_refused(targets: LambdaTargets, functions: Lambda, alias: None) -> None:
    weights = {"AdditionalVersionWeights": {"1": 0.5}}
    whole = functions.client.get_alias
    functions.get_alias = lambda **named: whole(**named) | {"RoutingConfig": weights}

    with pytest.raises(EffectRefused, match="routes its calls to several versions"):
        targets.switch(ALIAS_SPLIT, ALIAS_REGISTRY)


def test_a_version_is_refused(targets: LambdaTargets, alias: None) -> None:
    target = Target.parse(f"lambda/{NAME}:1")

    with pytest.raises(EffectRefused, match="lambda/meme-app:1 is a version, which cannot be changed"):
        targets.switch(replace(SPLIT, target=target), replace(REGISTRY, target=target))


def test_a_version_that_is_not_ready_is_waited_for(targets: LambdaTargets, functions: Lambda, alias: None) -> None:
    targets.switch(ALIAS_SPLIT, ALIAS_REGISTRY)
    publish = functions.client.publish_version
    functions.publish_version = lambda **named: publish(FunctionName=NAME) | {"State": "Pending"}

    targets.switch(ALIAS_SPLIT, ALIAS_REGISTRY)

    assert version() == "1"


def test_a_function_whose_update_failed_is_not_published(
    targets: LambdaTargets, functions: Lambda, alias: None
) -> None:
    arrive(targets, TargetState.TEMPORARY)
    functions.update_function_code(FunctionName=NAME, ZipFile=code("new"))
    functions.publish_version(FunctionName=NAME)
    functions.update_alias(FunctionName=NAME, Name="live", FunctionVersion="3")
    targets.switch_back(ALIAS_SPLIT, ALIAS_REGISTRY)
    functions.overrides = {"LastUpdateStatus": "Failed", "StateReason": "out of addresses"}

    with pytest.raises(EffectFailed, match="could not be changed: out of addresses"):
        targets.switch_back(ALIAS_SPLIT, ALIAS_REGISTRY)
