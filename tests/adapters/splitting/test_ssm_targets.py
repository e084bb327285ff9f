"""SSM parameters switched to temporary queues and back, on moto."""

import json
from datetime import timedelta

import boto3
import pytest

from signalbox.aws.splitting.targets.original_queues import OriginalQueues
from signalbox.aws.splitting.targets.ssm import NoSuchParameter, SsmTargets
from signalbox.errors import EffectFailed, EffectRefused
from signalbox.queues import QueueName
from signalbox.splitting.consumers.environment import QueueElsewhere, Resolver, UnresolvedQueue
from signalbox.splitting.consumers.registry import NameSource, RegisteredQueue, Registry, SourceKind
from signalbox.splitting.model.observed_state import TargetState
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Split, SplitQueue, Stage
from signalbox.splitting.model.target import Target
from tests.fakes.rendezvous import START
from tests.fakes.splitting import MemoryAnnotations
from tests.unit.splitting.consumers.registries import HOME
from tests.unit.splitting.forwarding.languages import PlainLanguages

NAME = "/shop/orders-queue"
TARGET = Target.parse(f"ssm/{NAME}")
ORDERS, DEPLOYED, SESSION = QueueName("orders"), QueueName("mirrord-tmp-x-fallback-orders"), QueueName("mirrord-tmp-y")
URL = "https://sqs.us-east-1.amazonaws.com/123456789012/"
VALUE = NameSource(SourceKind.VALUE, variable="QUEUE")


def registry(source: NameSource = VALUE) -> Registry:
    return Registry(TARGET, (RegisteredQueue(QueueId("orders"), (source,)),))


def split(stage: Stage = Stage.STARTING) -> Split:
    queue = SplitQueue(QueueId("orders"), ORDERS, DEPLOYED, timedelta(seconds=30))
    return Split(TARGET, (queue,), (), stage, START, timedelta(seconds=120))


class Parameter:
    """A parameter as its owner and its readers see it, and the time since it was written."""

    def __init__(self, ssm) -> None:
        self.ssm = ssm
        self.later = timedelta(0)

    def put(self, value: str = URL + ORDERS, **settings: object) -> None:
        self.ssm.put_parameter(Name=NAME, Value=value, **{"Type": "String", "Overwrite": True, **settings})

    @property
    def value(self) -> str:
        return self.ssm.get_parameter(Name=NAME, WithDecryption=True)["Parameter"]["Value"]

    @property
    def settings(self) -> dict[str, object]:
        newest = self.ssm.get_parameter_history(Name=NAME)["Parameters"][-1]
        return {name: value for name, value in newest.items() if name not in ("Value", "Version", "LastModifiedDate")}

    def overwritten(self) -> list[dict[str, object]]:
        """Return a list that collects the PutParameter requests."""
        requests: list[dict[str, object]] = []
        self.ssm.meta.events.register(
            "provide-client-params.ssm.PutParameter", lambda params, **_: requests.append(params)
        )
        return requests

    def now(self):
        return self.ssm.get_parameter(Name=NAME)["Parameter"]["LastModifiedDate"] + self.later


@pytest.fixture
def parameter(aws: None) -> Parameter:
    return Parameter(boto3.client("ssm"))


@pytest.fixture
def targets(parameter: Parameter, sqs) -> SsmTargets:
    sqs.create_queue(QueueName=ORDERS)
    return SsmTargets(
        parameter.ssm, OriginalQueues(sqs), Resolver(PlainLanguages(), HOME), MemoryAnnotations(), parameter.now
    )


@pytest.mark.parametrize("value", ["orders", URL + "orders", "arn:aws:sqs:us-east-1:123456789012:orders"])
def test_a_parameter_holds_a_queues_name_url_or_arn(targets: SsmTargets, parameter: Parameter, value: str) -> None:
    parameter.put(value)

    (found,) = targets.find(registry())
    targets.switch(split(), registry())

    assert (found.original, found.visibility) == (ORDERS, timedelta(seconds=30))
    assert parameter.value == value.replace("orders", DEPLOYED)


@pytest.mark.parametrize("value", [URL.replace("123", "321") + "orders", "arn:aws:sqs:eu-west-1:123456789012:orders"])
def test_a_parameter_with_a_queue_of_another_account_or_region_is_refused(
    targets: SsmTargets, parameter: Parameter, value: str
) -> None:
    parameter.put(value)

    with pytest.raises(QueueElsewhere, match="splits queues of account 123456789012 in region us-east-1"):
        targets.find(registry())
    with pytest.raises(EffectRefused, match="splits queues of account 123456789012"):
        targets.switch(split(), registry())
    assert targets.observe(split(), registry()) is TargetState.ORIGINAL


def test_an_unknown_parameter_is_refused_and_gone(targets: SsmTargets) -> None:
    with pytest.raises(NoSuchParameter, match=f"ssm/{NAME}: there is no such parameter"):
        targets.find(registry())
    with pytest.raises(EffectRefused, match="no such parameter"):
        targets.switch(split(), registry())
    assert targets.observe(split(), registry()) is TargetState.GONE


def test_a_value_without_a_queue_name_is_refused_and_not_quoted(targets: SsmTargets, parameter: Parameter) -> None:
    parameter.put("pass:word", Type="SecureString")

    with pytest.raises(UnresolvedQueue) as refusal:
        targets.find(registry())

    assert "pass:word" not in str(refusal.value)


def test_readers_have_the_propagation_time_in_both_directions(targets: SsmTargets, parameter: Parameter) -> None:
    parameter.put()
    states = [targets.observe(split(), registry())]

    targets.switch(split(), registry())
    for parameter.later in (timedelta(seconds=59), timedelta(seconds=60)):
        states.append(targets.observe(split(), registry()))
    targets.switch_back(split(Stage.RESTORING), registry())
    for parameter.later in (timedelta(seconds=59), timedelta(seconds=60)):
        states.append(targets.observe(split(Stage.RESTORING), registry()))

    assert states == [
        TargetState.ORIGINAL,
        TargetState.CHANGING,
        TargetState.TEMPORARY,
        TargetState.CHANGING,
        TargetState.ORIGINAL,
    ]


def test_a_switch_can_be_undone_before_its_propagation(targets: SsmTargets, parameter: Parameter) -> None:
    parameter.put()
    targets.switch(split(), registry())

    assert targets.observe(split(Stage.RESTORING), registry()) is TargetState.TEMPORARY


def test_only_the_value_changes_and_it_is_restored_exactly(targets: SsmTargets, parameter: Parameter) -> None:
    value = '{ "queue" :  "orders" }'
    parameter.put(
        value, Type="SecureString", KeyId="alias/mine", Description="whose", AllowedPattern=".*", Tier="Advanced"
    )
    before, source = parameter.settings, NameSource(SourceKind.VALUE, selector=".queue")
    requests = parameter.overwritten()

    targets.switch(split(), registry(source))
    assert json.loads(parameter.value) == {"queue": DEPLOYED}
    assert parameter.settings == before
    targets.switch_back(split(Stage.RESTORING), registry(source))

    assert parameter.value == value
    assert parameter.settings == before
    # moto keeps a key that is not given again; SSM would use its default key.
    assert [before.items() <= {**request, "LastModifiedUser": "N/A", "Labels": []}.items() for request in requests] == [
        True,
        True,
    ]


def test_policies_of_a_parameter_are_kept(targets: SsmTargets, parameter: Parameter) -> None:
    """SSM returns each policy as JSON text; moto returns text only if it was given text."""
    policy = {"Type": "Expiration", "Version": "1.0", "Attributes": {"Timestamp": "2030-01-01T00:00:00.000Z"}}
    parameter.put(Tier="Advanced", Policies=json.dumps([json.dumps(policy)]))

    targets.switch(split(), registry())

    assert [policy_document["PolicyText"] for policy_document in parameter.settings["Policies"]] == [str(policy)]


def test_only_the_version_of_the_old_value_is_stored(targets: SsmTargets, parameter: Parameter) -> None:
    parameter.put("orders")
    parameter.put()

    targets.switch(split(), registry())

    assert targets.annotations.of(TARGET) == {"version": "2"}


def test_a_parameter_changed_during_a_split_is_switched_again_and_keeps_the_change(
    targets: SsmTargets, parameter: Parameter
) -> None:
    source = NameSource(SourceKind.VALUE, pattern="queue=(.*)")
    parameter.put("level=info queue=orders")
    targets.switch(split(), registry(source))
    parameter.put("level=debug queue=orders")
    assert targets.observe(split(Stage.SPLIT), registry(source)) is TargetState.ORIGINAL

    targets.switch(split(Stage.SPLIT), registry(source))
    targets.switch_back(split(Stage.RESTORING), registry(source))

    assert parameter.value == "level=debug queue=orders"


def test_an_old_value_that_ssm_deleted_is_rebuilt_from_the_names(targets: SsmTargets, parameter: Parameter) -> None:
    """SSM keeps the newest hundred versions."""
    parameter.put()
    targets.switch(split(), registry())
    for _ in range(100):
        parameter.put(URL + DEPLOYED)

    targets.switch_back(split(Stage.RESTORING), registry())

    assert parameter.value == URL + ORDERS


def test_a_parameter_that_holds_another_queue_now_is_not_switched(targets: SsmTargets, parameter: Parameter) -> None:
    parameter.put("bills")

    with pytest.raises(EffectRefused, match="no longer holds the queues"):
        targets.switch(split(), registry())


def test_a_parameter_without_a_queue_name_counts_as_original(targets: SsmTargets, parameter: Parameter) -> None:
    source = NameSource(SourceKind.VALUE, selector=".queue")
    parameter.put("none")

    assert targets.observe(split(Stage.SPLIT), registry(source)) is TargetState.ORIGINAL
    with pytest.raises(EffectRefused, match="holds no queue name"):
        targets.switch(split(Stage.SPLIT), registry(source))


def test_a_local_command_receives_the_old_value_with_the_sessions_queue(
    targets: SsmTargets, parameter: Parameter
) -> None:
    parameter.put()
    before = targets.environment(registry(), {ORDERS: SESSION})
    targets.switch(split(), registry())

    assert before == targets.environment(registry(), {ORDERS: SESSION}) == {"QUEUE": URL + SESSION}


def test_a_parameter_without_a_variable_gives_a_local_command_none(targets: SsmTargets, parameter: Parameter) -> None:
    parameter.put()

    assert targets.environment(registry(NameSource(SourceKind.VALUE)), {ORDERS: SESSION}) == {}


def test_a_session_does_not_start_with_an_unknown_queue_in_the_value(targets: SsmTargets, parameter: Parameter) -> None:
    parameter.put("bills")

    with pytest.raises(UnresolvedQueue, match="was changed and reads other queues than those of its split"):
        targets.environment(registry(), {ORDERS: SESSION})


@pytest.mark.parametrize(("tier", "limit"), [("Standard", 4096), ("Advanced", 8192)])
def test_a_value_that_would_be_too_long_is_refused_with_the_limit(
    targets: SsmTargets, parameter: Parameter, tier: str, limit: int
) -> None:
    source = NameSource(SourceKind.VALUE, pattern="queue=(.*)")
    parameter.put("queue=orders".rjust(limit, "x"), Tier=tier)

    with pytest.raises(EffectRefused, match=rf"has at most {limit}$"):
        targets.switch(split(), registry(source))


def test_a_concurrent_write_is_a_temporary_failure(targets: SsmTargets, parameter: Parameter, monkeypatch) -> None:
    parameter.put()

    def refuse(**_request: object) -> None:
        raise parameter.ssm.exceptions.TooManyUpdates({"Error": {"Code": "TooManyUpdates"}}, "PutParameter")

    monkeypatch.setattr(parameter.ssm, "put_parameter", refuse)

    with pytest.raises(EffectFailed, match="TooManyUpdates"):
        targets.switch(split(), registry())
