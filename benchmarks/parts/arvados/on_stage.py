"""Times on a stage, with a bridge in this process: of lines to a viewer, and of queued containers to a dispatcher."""

import json
import random
import secrets
import threading
import time
from bisect import bisect_left
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from functools import partial

from benchmarks.parts.arvados.api_server import CONTAINER, REQUEST, TOKEN
from benchmarks.parts.live.following import wait
from benchmarks.shared.figures import Summary, summary
from benchmarks.shared.stage import Stage
from signalbox.cli.exchange.stage import client_of
from signalbox.clients.bridge.log_endpoint import LogEndpoint as Client
from signalbox.clients.bridge.log_realm import LogRealm
from signalbox.clients.bridge.postgres import PostgresLogs
from signalbox.clients.bridge.realm import BridgedRealm
from signalbox.clients.bridge.run import BridgeRun
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import Login
from signalbox.clients.web_socket import connector
from signalbox.errors import UnavailableError
from signalbox.exchange.model.records import OrderBy
from signalbox.live.bridge.log_positions import LogPosition
from signalbox.live.bridge.log_reader import ContainerReader
from signalbox.live.bridge.ports import BridgeRealm, LogTable
from signalbox.live.bridge.service import ArvadosBridge
from signalbox.live.bridge.topics import log_topic
from signalbox.live.wamp.patterns import TopicPattern
from tests.fakes.arvados.cluster import ArvadosCluster, new_uuid
from tests.fakes.arvados.http_server import serving
from tests.fakes.arvados.log_endpoint import ContainerLog, LogEndpoint, State, line
from tests.postgres import ClusterDatabase, postgres

REALM, QUEUE = "xs_arvados.fifo", "q_dispatch"
LINES, LINE_SECONDS = 1_000, 0.1
CONTAINERS, CONTAINER_SECONDS = 50, 4.0  # at most between two
LIST_SECONDS = 10.0  # CloudVMs.PollInterval of Arvados
END_SECONDS = 120.0
EVENT, LIST = "its event", "a list each 10 s"


def declared_realm(stage: Stage) -> BridgedRealm:
    """Return a new realm for a cluster."""
    client = client_of(stage.deployment)
    client.declare_exchange(REALM, live={"live": True, "order_by": "exchange"})
    login = next(
        Login(REALM, one["name"], one["ticket"]) for one in stage.local["live_users"] if one["role"] == "admin"
    )
    live = partial(LiveClient, connector(stage.local["websocket_url"]), login)
    return BridgedRealm(client, REALM, "bridge.arvados", OrderBy.EXCHANGE, None, live)


def line_milliseconds(realm: BridgedRealm) -> Summary | None:
    """Return the times of lines from the poll that sees them to a viewer."""
    log, over, owner = ContainerLog(REQUEST, CONTAINER, State.RUNNING), threading.Event(), new_uuid("group")
    polls: list[tuple[int, float]] = []
    endpoint = LogEndpoint({TOKEN: None}, {CONTAINER: log})

    def note(method: str, _: str) -> None:
        if method == "PROPFIND":
            polls.append((len(log.files.get("stdout.txt", b"")), time.perf_counter()))

    endpoint.records = note
    with serving(endpoint) as server, realm.live() as viewer, ThreadPoolExecutor(2) as pool, ExitStack() as stack:
        stack.callback(over.set)
        viewer.follow(PatternCursor(TopicPattern.parse(log_topic(owner, CONTAINER, "stdout"))))
        list(viewer.backfill())
        position = LogPosition(CONTAINER, REQUEST, (owner,))
        pool.submit(_poll, ContainerReader(position, Client.of(server.url, TOKEN), LogRealm(realm)), over)
        pool.submit(_write, log, over)
        arrived = list[float]()
        while len(arrived) < LINES:
            event = viewer.receive(END_SECONDS)
            if event is None:
                raise UnavailableError(f"line {len(arrived)} did not arrive")
            arrived += [time.perf_counter()] * str(event.payload.arguments[0]).count("\n")
    begun = [polls[bisect_left(polls, (len(line("0000")) * number, 0.0))][1] for number in range(1, LINES + 1)]
    return summary([(at - begin) * 1000 for at, begin in zip(arrived, begun, strict=True)])


def _poll(reader: ContainerReader, over: threading.Event) -> None:
    while not over.wait(max(reader.due_at - time.monotonic(), 0)):
        reader.poll(time.monotonic())


def _write(log: ContainerLog, over: threading.Event) -> None:
    for number in range(LINES):
        log.write("stdout.txt", line(f"{number:04}"))
        over.wait(LINE_SECONDS)


def queued_milliseconds(realm: BridgedRealm) -> dict[str, Summary]:
    """Return the times of the same containers from Queued until they are seen, in the example's queue and in a list."""
    over, queued, ways = threading.Event(), dict[str, float](), dict[str, dict[str, float]]({EVENT: {}, LIST: {}})
    realm.client.declare_queue(QUEUE)
    realm.client.bind(REALM, QUEUE, "container.*.*.queued")
    with postgres() as server, server.cluster("arvados") as database, ThreadPoolExecutor(3) as pool:
        cluster, works = ArvadosCluster(database), list[Future[None]]()
        with ExitStack() as stack:
            stack.callback(over.set)
            works += [pool.submit(_publish, realm, database, over), pool.submit(_consume, realm, over, ways[EVENT])]
            works += [pool.submit(_list, database, over, ways[LIST])]
            _, first = cluster.submit(new_uuid("group"))  # starts an instance of each function
            wait(lambda: first in ways[EVENT], seconds=END_SECONDS)
            for _ in range(CONTAINERS):
                over.wait(random.random() * CONTAINER_SECONDS)
                _, container = cluster.submit(new_uuid("group"))
                queued[container] = time.perf_counter()
            wait(lambda: all(queued.keys() <= seen.keys() for seen in ways.values()), seconds=END_SECONDS)
        for work in works:
            work.result()
    times = ((way, [(seen[one] - at) * 1000 for one, at in queued.items()]) for way, seen in ways.items())
    return {way: found for way, taken in times if (found := summary(taken))}


def _publish(realm: BridgedRealm, database: ClusterDatabase, over: threading.Event) -> None:
    def made(table: LogTable, target: BridgeRealm) -> ArvadosBridge:
        run, patience = secrets.token_hex(4), timedelta(seconds=30)
        return ArvadosBridge(table, target, lambda: datetime.now(UTC), run, patience, start=0, is_ending=over.is_set)

    connect = partial(PostgresLogs.connect, database.dsn)
    BridgeRun(connect, realm, REALM, made, over.is_set, say=lambda _: None, report=lambda _: None).run()


def _consume(realm: BridgedRealm, over: threading.Event, seen: dict[str, float]) -> None:
    with realm.client.consumer(QUEUE) as consumer:
        while not over.is_set():
            for message in consumer.receive(wait_seconds=1):
                seen.setdefault(json.loads(message.delivered.body)["uuid"], time.perf_counter())
                consumer.ack(message)


def _list(database: ClusterDatabase, over: threading.Event, seen: dict[str, float]) -> None:
    while not over.wait(LIST_SECONDS):
        with database.transaction() as connection:
            for (container,) in connection.execute(b"SELECT uuid FROM containers WHERE state = 'Queued'"):
                seen.setdefault(container, time.perf_counter())
