"""The bridge from a cluster's PostgreSQL to a realm, on a stage: killed at random moments, each row arrives once."""

import json
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

import pytest

from signalbox.cli.exchange.stage import client_of
from signalbox.clients.deployment import Deployment
from tests.fakes.arvados.cluster import ArvadosCluster
from tests.fakes.arvados.http_server import serving
from tests.fakes.arvados.log_endpoint import LogEndpoint, line
from tests.integration.live.arvados_lab import COLLECTION, PROJECT, START_SECONDS, STATE, TOKEN, Lab
from tests.integration.live.arvados_sdk import sdk_client
from tests.integration.live.tls_endpoint import tls_endpoint
from tests.patience import wait_for
from tests.postgres import ClusterDatabase

pytestmark = [pytest.mark.emulator, pytest.mark.release]

KILLS, WRITERS, TRANSACTIONS = 4, 3, 6
SECRET = "v2/zzzzz-gj3su-000000000000002/secretofthecontainer"


def insert_in_transactions(database: ClusterDatabase, seed: int, pause: Callable[[float], object]) -> list[int]:
    """Insert rows in transactions that overlap those of other threads; return the ids of the committed ones."""
    random, committed = Random(seed), []  # noqa: S311 - not for secrets
    with database.transaction() as connection:
        for _ in range(TRANSACTIONS):
            numbers = []
            for _ in range(random.randint(1, 3)):
                numbers.append(
                    database.insert(
                        connection,
                        object_uuid=COLLECTION,
                        object_owner_uuid=PROJECT,
                        properties=json.dumps({"new_attributes": {"name": f"name of {seed}"}}),
                    )
                )
                pause(random.random() * 0.2)
            if random.random() < 0.2:
                connection.rollback()
            else:
                connection.commit()
                committed += numbers
    return committed


def test_each_row_arrives_once_and_in_order_though_the_bridge_is_killed(lab: Lab):
    random, pause = Random(16), threading.Event().wait  # noqa: S311 - not for secrets
    with lab.following(), ThreadPoolExecutor(WRITERS) as pool:
        writers: list[Future[list[int]]] = []
        for run in range(KILLS):
            with lab.running():  # ends with SIGKILL
                lab.wait_for_bridges(run + 1)
                writers += [
                    pool.submit(insert_in_transactions, lab.database, WRITERS * run + number, pause)
                    for number in range(WRITERS)
                ]
                enough = len(lab.ids) + random.randint(1, 9)
                wait_for(lambda enough=enough: len(lab.ids) >= enough, f"{enough} rows", seconds=START_SECONDS)
        with lab.running() as bridge:
            lab.wait_for_bridges(KILLS + 1)
            lab.database.drop_connections("bridge")
            lab.wait_for_bridges(KILLS + 2)
            committed = sorted(number for one in writers for number in one.result())
            wait_for(
                lambda: len(lab.ids) >= len(committed),
                "all rows",
                seconds=START_SECONDS,
                progress=lambda: len(lab.ids),
            )
            bridge.send_signal(signal.SIGTERM)
            assert bridge.wait(START_SECONDS) == 0

    assert lab.ids == committed
    assert {topic for topic, _ in lab.received} == {STATE, f"{STATE}.update"}
    statistics = json.loads((lab.desk.folder / "bridge.out").read_text().splitlines()[-1])
    assert statistics["position"] == committed[-1]
    assert (statistics["resumed"], statistics["cut"], statistics["late_ids"]) == (2, 0, 0)


def test_a_log_arrives_once_and_whole_though_the_bridge_is_killed(lab: Lab):
    """It is read from the endpoint while it is written, and its end from the saved file."""
    random, pause = Random(7), threading.Event().wait  # noqa: S311 - not for secrets
    cluster = ArvadosCluster(lab.database, LogEndpoint({TOKEN: None}))
    _, container = cluster.submit(PROJECT)
    cluster.lock(container)
    log = cluster.run(container)
    log.write("crunch-run.txt", line("started") + line(f'container token "{SECRET}/{container}"'))
    topic = f"container.{PROJECT}.{container}.log"
    with serving(cluster.endpoint) as server, lab.following():
        lab.api = server.url
        for run in range(KILLS):
            with lab.running():  # ends with SIGKILL
                lab.wait_for_bridges(run + 1)
                wanted = log.files.get("stdout.txt", b"").count(b"\n") + 1
                log.write("stdout.txt", line(f"run {run}"))
                wait_for(
                    lambda wanted=wanted: lab.text(f"{topic}.stdout").count("\n") >= wanted,
                    "the line",
                    seconds=START_SECONDS,
                )
                for number in range(20):
                    log.write("stdout.txt", line(f"{number}") + b"begun ")
                    pause(random.random() * 0.2)
        cluster.finish(container)
        with lab.running() as bridge:
            lab.wait_for_bridges(KILLS + 1)
            expected = log.saved["stdout.txt"].decode()
            wait_for(lambda: lab.text(f"{topic}.stdout") == expected, "the log", seconds=START_SECONDS)
            bridge.send_signal(signal.SIGTERM)
            assert bridge.wait(START_SECONDS) == 0

    assert lab.text(f"{topic}.crunch-run") == log.saved["crunch-run.txt"].decode().splitlines(keepends=True)[0]
    assert SECRET not in "".join(path.read_text() for path in lab.desk.folder.glob("bridge.*"))
    assert f"container.{PROJECT}.{container}.complete" in {one for one, _ in lab.received}


def test_the_sdk_of_arvados_receives_the_rows_of_the_database(lab: Lab, deployment: Deployment, tmp_path: Path):
    """Rows in PostgreSQL reach Arvados' Python SDK with the fields of arvados-ws, without arvados-ws."""
    administrator = client_of(deployment)
    administrator.declare_exchange(lab.place.realm, live={"arvados": True})
    with lab.running() as bridge, tls_endpoint(lab.place.url, tmp_path) as endpoint:
        lab.wait_for_bridges(1)
        token = f"v2/{lab.user}/{lab.ticket}"
        with sdk_client(endpoint, urlsplit(lab.place.url).path, token, [["event_type", "in", ["create"]]]) as client:
            assert client.next(1) == [{"status": 200}]
            attributes = {"name": "reads", "manifest_text": ""}
            lab.database.insert(event_type="update")
            number = lab.database.insert(
                uuid="zzzzz-57u5n-0", event_type="create", properties=json.dumps({"new_attributes": attributes})
            )
            (row,) = client.next(1)
        bridge.send_signal(signal.SIGTERM)
        assert bridge.wait(START_SECONDS) == 0

    assert row.pop("event_at").endswith("Z")
    assert row == {
        "msgID": 1,
        "id": number,
        "uuid": "zzzzz-57u5n-0",
        "object_uuid": "zzzzz-4zz18-000000000000000",
        "object_owner_uuid": "zzzzz-j7d0g-000000000000000",
        "object_kind": "arvados#collection",
        "event_type": "create",
        "properties": {"new_attributes": {"name": "reads"}},
    }
