"""Stages with one capability: each passes its flow of `signalbox verify`, and finds its data when it comes back."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from signalbox.aws.history.firehose import DeliveryStream
from signalbox.cli.verify import commands
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.client import stage_client
from signalbox.flows.exchange import events_in_lake
from signalbox.history.event import HistoryEvent
from signalbox.messages import MessageId
from tests.integration.shared.stages import Stages, synthesized
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

# Exchange first, and live, which includes it, last.
ORDER = ("exchange", "rendezvous", "splitting", "history", "live")
EXCHANGE = "xkept"


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[Stages]:
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
        if capability == "exchange":
            stage_client(deployment.session().client("sqs"), deployment.outputs).declare_exchange(EXCHANGE)
        if capability == "history":
            write_and_find_an_event(deployment)

    client = stage_client(deployment.session().client("sqs"), deployment.outputs)
    assert EXCHANGE in {one["exchange"] for one in client.exchanges()}


def write_and_find_an_event(deployment: Deployment) -> None:
    found, message = deployment.session().client("firehose"), MessageId("m-alone")
    event = HistoryEvent("e-1", datetime.now(UTC), "exchange", "routed", "delivered", message_id=message)
    assert DeliveryStream(found, deployment.outputs["HistoryStream"]).put([event.to_json() + "\n"]) == []
    wait_for(lambda: events_in_lake(deployment, [message]), "the event is in the lake")
