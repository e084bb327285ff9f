"""The demo of the exchange deletes everything that it creates, so that the next `make up` can run it again."""

import pytest

from signalbox.local.demo.exchange import EXCHANGE_PREFIX, QUEUE_PREFIX, USER, exchange_rows

pytestmark = [pytest.mark.emulator, pytest.mark.release]

SHARED = "worker 1: 4, worker 2: 4, q_demo-pump_alerts: 3; all as published"


@pytest.mark.parametrize("time", ["the first time", "the second time"])
def test_the_demo_shows_all_deliveries_and_deletes_its_resources(deployment, time):
    seen = dict(exchange_rows(deployment))

    assert seen["deliveries"] == SHARED, time
    assert seen["unrouted"] == "1: dropped and counted"
    assert seen["acknowledged"] == "11 of 11 copies; the queues are empty"
    assert seen["history"] == "routed (delivered): 11, unrouted (dropped): 1"
    sqs, iam = deployment.session().client("sqs"), deployment.session().client("iam")
    left = [sqs.list_queues(QueueNamePrefix=prefix).get("QueueUrls", []) for prefix in (QUEUE_PREFIX, EXCHANGE_PREFIX)]
    assert left == [[], []]
    assert [user for user in iam.list_users()["Users"] if user["UserName"].endswith(f"_{USER}")] == []
