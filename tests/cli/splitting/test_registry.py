"""`signalbox split registry`, against a fake stage."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from signalbox.cli.main import app
from signalbox.control.protocol import CommandRejected, CommandUnavailable
from signalbox.errors import RejectedError
from tests.cli.shared.stage import FakeStage, Refusal, fake_stage, split, waiting_replies
from tests.fakes.aws import aws  # noqa: F401 - a fixture

REGISTRY = """
apiVersion: queues.mirrord.metalbear.co/v1alpha
kind: MirrordWorkloadQueueRegistry
metadata:
  name: meme-app
  creationTimestamp: 2026-11-20T10:00:00Z
spec:
  queues:
    memes:
      queueType: SQS
      nameSource:
        envVar: MEME_QUEUE
  consumer:
    name: meme-app
    workloadType: Lambda
---
"""


@pytest.fixture
def stage(aws) -> Iterator[FakeStage]:  # noqa: F811
    with fake_stage() as stage:
        yield stage


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "registry.yaml"
    path.write_text(REGISTRY)
    return path


def test_a_file_is_applied_document_by_document(stage, file):
    stage.replies["apply"] = lambda _: {"targets": ["lambda/meme-app"]}

    result = split("registry", "apply", "-f", str(file))

    assert result.stdout.startswith("lambda/meme-app  applied")
    (document,) = stage.asked[0]["documents"]
    assert document["spec"]["consumer"] == {"name": "meme-app", "workloadType": "Lambda"}
    assert waiting_replies() == 0


def test_json_output_is_the_stages_result(stage, file):
    stage.replies["apply"] = lambda _: {"targets": ["lambda/meme-app"]}

    result = split("registry", "apply", "-f", "-", "--json", input=file.read_text())

    assert json.loads(result.stdout) == {"targets": ["lambda/meme-app"]}


def test_an_invalid_file_is_refused_before_anything_is_sent(stage, file):
    file.write_text(REGISTRY.replace("workloadType: Lambda", "workloadType: DaemonSet"))

    with pytest.raises(RejectedError, match="'DaemonSet' of Kubernetes cannot be switched and is not supported"):
        split("registry", "apply", "-f", str(file))
    assert stage.asked == []


# The registry of metalbear-co/docs, sharing-the-cluster/queue-splitting.
FIRST_EXAMPLE = Path(__file__).with_name("registry.yaml").read_text()


def checked(*arguments: str, **options: str) -> Result:
    """Run the command, which has no stage and no `--aws`."""
    command = ["split", "registry", "check", *arguments]
    return CliRunner().invoke(app, command, catch_exceptions=False, env={"AWS_PROFILE": "none"}, **options)


def test_a_file_is_checked_without_a_stage(file):
    file.write_text(FIRST_EXAMPLE)

    shown = checked("-f", str(file))
    (found,) = json.loads(checked("-f", "-", "--json", input=FIRST_EXAMPLE).stdout)

    assert "deployment/meme-app@default" in shown.stdout
    assert "variable INCOMING_MEME_QUEUE_NAME, container main" in shown.stdout
    assert found["target"] == "deployment/meme-app@default"
    assert [(one["id"], one["names"], one["tags"]) for one in found["queues"]] == [
        ("meme-queue", ["variable INCOMING_MEME_QUEUE_NAME, container main"], {"tool": "mirrord"}),
        ("ad-queue", ["variable AD_QUEUE_NAME, container main"], {"tool": "mirrord"}),
    ]


def test_queues_of_other_brokers_are_named_and_ignored(file):
    file.write_text(FIRST_EXAMPLE.replace("queueType: SQS", "queueType: RMQ", 1))

    shown = checked("-f", str(file))

    assert "ad-queue" in shown.stdout
    assert "meme-queue" not in shown.stdout
    assert "not on SQS, so not split: meme-queue (RMQ)" in shown.stderr


@pytest.mark.parametrize(
    ("targets", "warned"),
    [
        (["lambda/demo-a", "lambda/demo-a:live", "deployment/web@default.main", "ssm//demo/queue"], []),
        (["lambda/other", "ssm//other", "ecs/demo/other"], ["lambda/other", "ssm//other", "ecs/demo/other"]),
    ],
    ids=["permitted", "not permitted"],
)
def test_targets_that_the_stage_may_not_switch_are_named_when_their_registry_is_applied(stage, file, targets, warned):
    stage.replies["apply"] = lambda _: {"targets": targets}

    said = split("registry", "apply", "-f", str(file)).stderr.splitlines()

    assert [line.split()[1] for line in said if "splittable_targets has" in line] == warned


def test_queues_of_other_brokers_are_named_when_a_file_is_applied(stage, file):
    file.write_text(FIRST_EXAMPLE.replace("queueType: SQS", "queueType: RMQ", 1))
    stage.replies["apply"] = lambda _: {"targets": ["deployment/meme-app@default"]}

    assert "not on SQS, so not split: meme-queue (RMQ)" in split("registry", "apply", "-f", str(file)).stderr


def test_a_check_reports_all_problems_with_their_paths(file):
    file.write_text(FIRST_EXAMPLE.replace("Deployment", "Job").replace("queueType: SQS", "queueType: PULSAR", 1))

    with pytest.raises(RejectedError) as refusal:
        checked("-f", str(file))

    assert [line.partition(": ")[0] for line in str(refusal.value).splitlines()] == [
        "document 1.spec.consumer.workloadType",
        "document 1.spec.queues.meme-queue.queueType",
    ]


@pytest.mark.parametrize("text", ["{", "? [a]\n: b", "&a [*a]"], ids=["no YAML", "key that is a list", "endless"])
def test_yaml_that_is_not_json_is_refused(stage, file, text):
    file.write_text(text)

    with pytest.raises(RejectedError, match="is not YAML with JSON values"):
        split("registry", "apply", "-f", str(file))


@pytest.mark.parametrize(("code", "error"), [("rejected", CommandRejected), ("unavailable", CommandUnavailable)])
def test_the_stages_refusal_is_printed(stage, file, code, error):
    def refuse(_: object) -> object:
        raise Refusal("the table is full", code)

    stage.replies["apply"] = refuse

    with pytest.raises(error, match="the table is full"):
        split("registry", "apply", "-f", str(file))
    assert waiting_replies() == 0


def test_discover_prints_a_registry_file(stage, tmp_path, file):
    stage.replies["discover"] = lambda _: {"documents": [{"kind": "MirrordWorkloadQueueRegistry", "spec": {}}]}
    path = tmp_path / "found.yaml"

    shown = split("registry", "discover", "--target", "lambda/meme-app")
    split("registry", "discover", "--target", "lambda/meme-app", "-o", str(path))

    assert stage.asked[0]["target"] == "lambda/meme-app"
    assert shown.stdout == path.read_text() == "kind: MirrordWorkloadQueueRegistry\nspec: {}\n"
    assert json.loads(split("registry", "discover", "--target", "lambda/x", "--json").stdout)[0]["spec"] == {}


def test_a_file_that_cannot_be_written_is_reported(stage, tmp_path):
    stage.replies["discover"] = lambda _: {"documents": []}

    with pytest.raises(RejectedError, match="cannot write"):
        split("registry", "discover", "--target", "lambda/meme-app", "-o", str(tmp_path))


def test_a_registry_is_removed(stage):
    stage.replies["remove"] = lambda command: {"target": command["target"]}

    shown = split("registry", "remove", "--target", "lambda/meme-app").stdout
    document = split("registry", "remove", "--target", "lambda/meme-app", "--json").stdout

    assert shown == "lambda/meme-app  removed; a running split keeps its registry\n"
    assert json.loads(document) == {"target": "lambda/meme-app"}


def test_registries_are_listed(stage):
    found = [
        {
            "target": "lambda/meme-app",
            "source": "applied",
            "applied_at": "2026-11-20T10:00:00.5+00:00",
            "documents": [{"kind": "K"}],
        }
    ]
    stage.replies["registries"] = lambda _: found

    shown = split("registry", "list").stdout
    assert "lambda/meme-app" in shown
    assert f" {datetime(2026, 11, 20, 10, tzinfo=UTC).astimezone():%Y-%m-%d %H:%M:%S} " in shown
    assert json.loads(split("registry", "list", "--json").stdout) == found


def test_an_empty_list_names_the_commands_that_make_a_registry(stage):
    stage.replies["registries"] = lambda _: []

    result = split("registry", "list")

    assert result.stdout == "no registries\n"
    assert "`signalbox split registry apply` stores it" in result.stderr


def test_the_list_says_where_each_registry_comes_from(stage):
    one = {"target": "deployment/a@b.main", "applied_at": "2026-11-20T10:00:00+00:00", "documents": []}
    stage.replies["registries"] = lambda _: [{**one, "source": "cluster main"}]

    assert "cluster main" in split("registry", "list").stdout
