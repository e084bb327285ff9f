"""Discovery writes registries that can be applied unchanged."""

import pytest

from signalbox.queues import QueueName
from signalbox.splitting.consumers.discovery import NOTE, Evidence, NothingDiscovered, TargetIsSplit, registry_documents
from signalbox.splitting.consumers.registry import NameSource, SourceKind
from signalbox.splitting.consumers.registry_file import parse_registries
from signalbox.splitting.consumers.registry_reader import ALL_VALUES
from signalbox.splitting.model.target import Target
from tests.unit.splitting.consumers.registries import HOME
from tests.unit.splitting.forwarding.languages import PlainLanguages

TARGET = Target.parse("lambda/meme-app:live")
SERVICE = Target.parse("ecs/main/memes")
MEMES = QueueName("memes")
URL = "https://sqs.us-east-1.amazonaws.com/123456789012/"
ARN = "arn:aws:sqs:us-east-1:123456789012:"


def receiving(*resources: str, action: object = "sqs:ReceiveMessage", effect: str = "Allow") -> dict[str, object]:
    return {"Statement": [{"Effect": effect, "Action": action, "Resource": list(resources)}]}


def sources(evidence: Evidence, target: Target = TARGET) -> dict[str, NameSource]:
    """Return the sources by queue id of the registry parsed from the documents."""
    (registry,) = parse_registries(registry_documents(target, evidence, HOME), PlainLanguages())
    assert registry.target == target
    return {queue.queue_id: queue.sources[0] for queue in registry.queues}


def in_variables(policies: list[dict[str, object]] | None = None, **variables: str) -> Evidence:
    return Evidence(environments={None: variables}, policies=policies)


def test_the_queue_of_a_mapping_is_registered() -> None:
    expected = NameSource(SourceKind.EVENT_SOURCE, "memes", variable="MEMES_QUEUE")

    assert sources(Evidence((MEMES,))) == {"memes": expected}


def test_a_local_command_reads_a_mapped_queue_from_the_variable_that_names_it() -> None:
    evidence = Evidence((MEMES,), {None: {"COLOUR": "red", "QUEUE": URL + "memes"}})

    assert sources(evidence) == {"memes": NameSource(SourceKind.EVENT_SOURCE, "memes", variable="QUEUE")}


@pytest.mark.parametrize(
    "value", [URL + "orders.fifo", ARN + "orders.fifo", "http://localhost:4566/123456789012/orders.fifo"]
)
def test_urls_and_arns_are_recognised_without_policies(value: str) -> None:
    assert sources(in_variables(QUEUE=value)) == {"orders.fifo": NameSource(SourceKind.VARIABLE, "QUEUE")}


def test_a_bare_name_counts_if_the_role_names_that_queue() -> None:
    evidence = in_variables([receiving(ARN + "memes")], QUEUE="memes", OTHER="notes")

    assert sources(evidence) == {"memes": NameSource(SourceKind.VARIABLE, "QUEUE")}


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(receiving(ARN + "mem*"), id="by a pattern"),
        pytest.param(receiving("*", action="*"), id="everything"),
        pytest.param({"Statement": {"Effect": "Allow", "Action": "SQS:Receive*", "Resource": ARN + "memes"}}, id="one"),
    ],
)
def test_a_url_counts_if_the_role_may_receive_from_the_queue(policy: dict[str, object]) -> None:
    assert list(sources(in_variables([policy], QUEUE=URL + "memes"))) == ["memes"]


def test_names_in_a_json_map_are_found() -> None:
    evidence = in_variables(QUEUES=f'{{"a": "{URL}memes", "b": "{URL}orders.fifo"}}', LIST=f'["{URL}memes"]')

    assert sources(evidence) == {"QUEUES": NameSource(SourceKind.VARIABLE, "QUEUES", selector=ALL_VALUES)}


def test_a_queue_is_registered_once() -> None:
    evidence = Evidence(
        (MEMES, MEMES), {None: {"A": URL + "orders.fifo", "B": URL + "orders.fifo", "C": URL + "memes"}}
    )

    assert list(sources(evidence)) == ["memes", "orders.fifo"]


def test_each_container_has_its_own_document() -> None:
    environments = {"app": {"A": URL + "memes"}, "sidecar": {"B": URL + "orders.fifo"}, "proxy": {"C": "x"}}

    found = sources(Evidence(environments=environments), SERVICE)

    assert found == {
        "memes": NameSource(SourceKind.VARIABLE, "A", containers=("app",)),
        "orders.fifo": NameSource(SourceKind.VARIABLE, "B", containers=("sidecar",)),
    }


def test_queues_that_only_the_role_names_are_annotated() -> None:
    documents = registry_documents(
        TARGET, Evidence((MEMES,), policies=[receiving(ARN + "memes", ARN + "lost", "*")]), HOME
    )

    assert documents[0]["metadata"] == {"name": "meme-app-live", "annotations": {NOTE: "lost"}}


NOTHING = "no mapping and no variable of lambda/meme-app:live"
ELSEWHERE = [ARN.replace("123", "321") + "memes", ARN.replace("us-east", "eu-west") + "memes"]


@pytest.mark.parametrize(
    ("policies", "variables", "reason"),
    [
        *((None, {"QUEUE": value}, NOTHING) for value in ("memes", "", "https://example.com/memes", "a b")),
        (None, {"QUEUE": "arn:aws:sns:us-east-1:123456789012:memes"}, NOTHING),
        pytest.param(None, {"QUEUE": "[" * 100_000}, NOTHING, id="deep"),
        (None, {"MIXED": f'{{"a": "{URL}memes", "b": "red"}}'}, None),
        pytest.param([receiving("*", action=["sqs:*"])], {"COLOUR": "red"}, None, id="a name, all queues"),
        *(
            pytest.param([policy], {"QUEUE": URL + "memes"}, None, id=name)
            for name, policy in {
                "only send": receiving(ARN + "memes", action="sqs:SendMessage"),
                "denied": receiving(ARN + "memes", effect="Deny"),
                "not SQS": receiving("arn:aws:s3:::memes"),
                "nonsense": {"Statement": ["nonsense"]},
                "empty": {},
            }.items()
        ),
        pytest.param([receiving(*ELSEWHERE)], {"QUEUE": "memes"}, None, id="queues of others"),
        pytest.param([receiving(ARN + "lost")], {}, "its role may receive from lost", id="only the role"),
    ],
)
def test_without_a_reference_to_a_queue_that_the_role_may_receive_from_nothing_is_registered(
    policies: list[dict[str, object]] | None, variables: dict[str, str], reason: str | None
) -> None:
    with pytest.raises(NothingDiscovered, match=reason):
        registry_documents(TARGET, in_variables(policies, **variables), HOME)


def test_a_split_target_is_refused() -> None:
    with pytest.raises(TargetIsSplit, match="discover its queues after the split"):
        registry_documents(TARGET, Evidence((MEMES, QueueName("mirrord-tmp-1-fallback-memes"))), HOME)


@pytest.mark.parametrize(
    "value", [URL.replace("us-east-1", "eu-west-1") + "memes", ARN.replace("123", "321") + "memes"]
)
@pytest.mark.parametrize("form", ["{}", '{{"a": "{}"}}'])
def test_queues_of_another_account_or_region_are_left_out(value: str, form: str) -> None:
    assert list(sources(in_variables(A=form.format(value), B=URL + "orders.fifo"))) == ["orders.fifo"]
