"""Stages with one capability: each passes its flow of `signalbox verify`, and finds its data when it comes back."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from signalbox.aws.history.firehose import DeliveryStream
from signalbox.cli.main import app
from signalbox.cli.verify import commands
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import stage_client
from signalbox.errors import RejectedError
from signalbox.flows.exchange import events_in_lake
from signalbox.history.event import HistoryEvent
from signalbox.local.demo.evidence import evidence, first_evidence
from signalbox.messages import MessageId
from tests.integration.shared.stages import Stages, synthesized
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

# Exchange first, and live, which includes it, last.
ORDER = ("exchange", "rendezvous", "splitting", "history", "live")
EXCHANGE = "xkept"
# A command of each group.
OF_GROUPS = {
    "rendezvous": ("rendezvous", "stats"),
    "splitting": ("split", "list"),
    "exchange": ("exchange", "list"),
    "live": ("grant", "list"),
    "history": ("history", "query", "SELECT 1"),
}


@pytest.fixture
def stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stages]:
    monkeypatch.chdir(tmp_path)
    with Stages.started(tmp_path / ".signalbox") as started:
        yield started


def test_each_capability_alone_does_its_work_and_its_data_outlives_the_others(stages: Stages, tmp_path: Path):
    for number, capability in enumerate(ORDER):
        kept = ",".join(ORDER[:number]) or capability
        assembly = synthesized(tmp_path / capability, f"capabilities={capability}", f"kept_capabilities={kept}")
        deployment = stages.deploy(assembly)

        report, status = commands._verified(deployment, with_jobs=False)

        assert ([row for row in report.rows if row.outcome == "failed"], status, report.left) == ([], 0, [])
        assert capability in {row.capability for row in report.rows}
        assert list(deployment.capabilities) == (["exchange", "live"] if capability == "live" else [capability])
        check_the_demo(deployment)
        check_the_groups(deployment)
        check_the_doctor(stages, capability)
        if capability == "exchange":
            stage_client(deployment.session().client("sqs"), deployment.outputs).declare_exchange(EXCHANGE)
        if capability == "history":
            write_and_find_an_event(deployment)

    client = stage_client(deployment.session().client("sqs"), deployment.outputs)
    assert EXCHANGE in {one["exchange"] for one in client.exchanges()}
    check_the_page(deployment)


def test_a_stage_without_the_other_capabilities_is_removed(stages: Stages, tmp_path: Path):
    deployment = stages.deploy(synthesized(tmp_path / "live", "capabilities=live"))
    stage_client(deployment.session().client("sqs"), deployment.outputs).declare_exchange(EXCHANGE)

    done = CliRunner().invoke(app, ["destroy", "signalbox", "--yes", "--json"], catch_exceptions=False)

    document = json.loads(done.stdout)
    assert [(one["kind"], one["name"], one["error"]) for one in document["failed"]] == []
    assert EXCHANGE in {one["name"] for one in document["removed"]}
    assert {one["kind"] for one in document["stays"]} >= {"table", "state stack"}
    found = stages.session.client("cloudformation").describe_stacks()["Stacks"]
    assert [one["StackName"] for one in found if one["StackStatus"] != "DELETE_COMPLETE"] == ["signalbox-state"]


def check_the_demo(deployment: Deployment) -> None:
    """The demo shows the capabilities of the stage; history alone has nothing to show."""
    rows = [*first_evidence(deployment), *evidence(deployment)]

    assert {row.capability for row in rows} == {*deployment.capabilities} - {"history"}


def check_the_groups(deployment: Deployment) -> None:
    """The groups of the stage's capabilities work, and the others say what is missing."""
    for capability, command in OF_GROUPS.items():
        if capability not in deployment.capabilities:
            with pytest.raises(RejectedError, match="the stage has no "):
                CliRunner().invoke(app, command, catch_exceptions=False)
        elif capability != "history":  # whose tables need a Glue job
            assert CliRunner().invoke(app, command, catch_exceptions=False).exit_code == 0


def check_the_doctor(stages: Stages, capability: str) -> None:
    """The doctor finds nothing that stops a deployment, and that all queues refuse the dead letters of others."""
    command = ["doctor", "--json", "-c", f"capabilities={capability}"]

    done = CliRunner().invoke(app, command, env=stages.environment, catch_exceptions=False)

    found = {one["check"]: one["verdict"] for one in json.loads(done.stdout)["findings"]}
    assert ("stop" in found.values(), found["queue sources"], done.exit_code) == (False, "ok", 0), done.stdout


def check_the_page(deployment: Deployment) -> None:
    """The page of a stage without rendezvous, splitting and history is served."""
    endpoint = deployment.session().client("sqs").meta.endpoint_url
    with urlopen(f"{endpoint}/live/") as page, urlopen(f"{endpoint}/live/config.json") as config:  # noqa: S310 - the emulator
        assert page.status == 200
        assert "websocket_url" in json.load(config)


def write_and_find_an_event(deployment: Deployment) -> None:
    found, message = deployment.session().client("firehose"), MessageId("m-alone")
    event = HistoryEvent("e-1", datetime.now(UTC), "exchange", "routed", "delivered", message_id=message)
    assert DeliveryStream(found, deployment.outputs["HistoryStream"]).put([event.to_json() + "\n"]) == []
    wait_for(lambda: events_in_lake(deployment, [message]), "the event is in the lake")
