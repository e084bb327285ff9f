"""The demo of the exchange leaves nothing behind, so that the next `make up` can run it again."""

import pytest

from signalbox.local.demo_exchange import OF_EXCHANGES, OF_QUEUES, USER, exchange_rows

pytestmark = pytest.mark.emulator

SHARED = "worker 1: 4, worker 2: 4, q_demo-pump_alerts: 3; all as announced"


@pytest.mark.parametrize("time", ["the first time", "the second time"])
def test_the_demo_shows_its_deliveries_and_leaves_nothing_behind(deployment, time):
    seen = dict(exchange_rows(deployment))

    assert seen["who got what"] == SHARED, time
    assert seen["nobody asked for"] == "1: dropped and counted"
    assert seen["acknowledged"] == "11 of 11 copies, none is left"
    assert seen["history"] == "routed (delivered): 11, unrouted (dropped): 1"
    sqs, iam = deployment.session().client("sqs"), deployment.session().client("iam")
    left = [sqs.list_queues(QueueNamePrefix=prefix).get("QueueUrls", []) for prefix in (OF_QUEUES, OF_EXCHANGES)]
    assert left == [[], []]
    assert [user for user in iam.list_users()["Users"] if user["UserName"].endswith(f"_{USER}")] == []
