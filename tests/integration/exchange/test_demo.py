"""The demo of the exchange deletes everything that it creates, so that the next `make up` can run it again."""

import pytest

from signalbox.clients.deployment import Deployment
from signalbox.flows.trial import Journal, Trial
from signalbox.local.demo.exchange import MARK, USER, show_exchange

pytestmark = [pytest.mark.emulator, pytest.mark.release]


@pytest.mark.parametrize("time", ["the first time", "the second time"])
def test_the_demo_shows_all_deliveries_and_deletes_its_resources(deployment: Deployment, time: str):
    trial = Trial(deployment, Journal())

    show_exchange(trial)

    seen = {row.what: row.detail for row in trial.journal.rows}
    assert "worker 1: 4, worker 2: 4, q_demo-pump_alerts: 3; all as published" in seen["messages are routed by topic"]
    counted = "unrouted: 1, dropped and counted; 11 of 11 copies acknowledged"
    assert seen["all messages are counted and acknowledged"] == counted, time
    assert seen["the history has all events"] == "routed (delivered): 11, unrouted (dropped): 1"
    sqs, iam = deployment.session().client("sqs"), deployment.session().client("iam")
    left = [sqs.list_queues(QueueNamePrefix=f"{kind}{MARK}").get("QueueUrls", []) for kind in ("q", "xs")]
    assert left == [[], []]
    assert [user for user in iam.list_users()["Users"] if user["UserName"].endswith(f"_{USER}")] == []
