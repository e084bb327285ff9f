"""A front on the local stage before upstream's broker: upstream's client, unchanged, and proxies of that broker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.parts.rendezvous.clients import real_clients
from benchmarks.parts.rendezvous.original import build, running_broker
from benchmarks.parts.rendezvous.proxies import polling
from benchmarks.shared.sides import Side
from benchmarks.shared.stage import UPSTREAM_QUEUE, UPSTREAM_REGION, Stage
from signalbox.local.files import read_json
from signalbox.rendezvous.wire.reply import NO_PROXIES, TIMED_OUT
from tests.integration.shared.stages import Stages, synthesized
from tests.patience import wait_for

pytestmark = [pytest.mark.emulator, pytest.mark.release]
CLIENTS = 5


@pytest.fixture
def stages(tmp_path: Path) -> Iterator[Stages]:
    with Stages.started(tmp_path / ".signalbox") as started:
        yield started


def test_clients_get_the_answers_and_the_errors_of_a_broker_in_time(stages: Stages, tmp_path: Path) -> None:
    programs = build()
    exchange = real_clients(programs.client)

    with running_broker(programs, upstream(stages)) as broker:
        settings = ("capabilities=rendezvous", f"broker_url={broker.broker_url}")
        stages.deploy(synthesized(tmp_path / "front", *settings))
        front = Stage({"rendezvous_url": "", **(read_json(stages.folder.local) or {})}).signalbox()
        # The first start of the function may take longer than a client waits for its queue.
        wait_for(lambda: NO_PROXIES in exchange(front, 1, 1)[0].error, "a reply of the front")
        with polling(broker.broker_url, CLIENTS):
            answered = exchange(front, CLIENTS, CLIENTS)
        with polling(broker.broker_url, 1, is_silent=True):
            (late,) = exchange(front, 1, 1)
        (denied,) = exchange(front, 1, 1)
    (alone,) = exchange(front, 1, 1)

    assert [(one.error, one.is_right) for one in answered] == [("", True)] * CLIENTS
    assert TIMED_OUT in late.error
    assert NO_PROXIES in denied.error
    assert NO_PROXIES in alone.error
    assert answered[0].calls.keys() == {"SendMessage", "GetQueueUrl", "ReceiveMessage"}


def upstream(stages: Stages) -> Side:
    """Return upstream's broker, whose own SQS part reads a queue of another region."""
    session = stages.session
    keys = session.get_credentials().get_frozen_credentials()
    endpoint = session.client("sqs").meta.endpoint_url
    return Side("upstream", "", UPSTREAM_QUEUE, UPSTREAM_REGION, endpoint, keys.access_key, keys.secret_key)
