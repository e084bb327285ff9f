"""Events while the router has no time, as on a busy machine."""

import json
import time
from contextlib import ExitStack

import pytest

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.exchange.model.records import OrderBy
from signalbox.local.stage import LOCAL_SETTINGS
from signalbox.local.stage_folder import StageFolder
from tests.integration.live.stage import TrialRealm, new_topic
from tests.integration.live.wamp_clients import command_of, joined
from tests.integration.shared.dead_letters import dead_letter_lines
from tests.integration.shared.fault_injection import FaultInjector
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]

EVENTS = 100
TIMEOUT_SECONDS = int(LOCAL_SETTINGS["route_timeout_seconds"])


def test_events_are_late_and_complete_after_a_time_out_of_the_router(
    place: TrialRealm, deployment: Deployment, stage_folder: StageFolder
):
    """The batch is hidden for six time-outs, and the later events of its topic wait for it.

    A batch that times out at each of its five receives becomes dead letters.
    """
    topic = new_topic()
    posts = [PublishRequest(topic, json.dumps(number), {}, f"{topic}-{number}") for number in range(EVENTS)]
    router = FaultInjector(stage_folder, [deployment.outputs["RouteFunctionName"]])
    with ExitStack() as stack:
        administrator = client_of(deployment)
        client = joined(stack, command_of("autobahn-runner"), place.login("subscriber", topic=topic))
        client.wait_for_join()

        with router.stopped() as instances:
            list(administrator.publish_all(place.realm, posts, order_by=OrderBy.TOPIC))
            end = time.monotonic() + TIMEOUT_SECONDS + 1
            wait_for(lambda: time.monotonic() > end, "the time-out of the router")
            early = [one for one in client.output if "value" in one]
        client.wait_for(lambda: sum("value" in one for one in client.output) >= EVENTS, "all events")

        assert instances
        assert early == []
        assert [one["value"] for one in client.output if "value" in one] == list(range(EVENTS))
        assert list(dead_letter_lines(deployment)) == []
