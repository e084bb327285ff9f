"""The relay of logs, with a real database and the stand-in's endpoint: which logs it follows, and that it goes on."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from random import Random

import pytest

from signalbox.clients.bridge.containers import PostgresContainers
from signalbox.clients.bridge.log_endpoint import LogEndpoint as Client
from signalbox.clients.bridge.log_endpoint import TokenRefused
from signalbox.clients.bridge.log_realm import LISTED_EACH, LogRealm, Subscriptions
from signalbox.clients.bridge.log_relay import LogRelay, RelayConnections, RelayPace
from signalbox.clients.bridge.worker import Worker
from signalbox.live.bridge.log_selection import ContainerSelection
from signalbox.live.procedures.meta_events import ON_CREATE
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.patterns import TopicPattern
from tests.fakes.arvados.cluster import ArvadosCluster, new_uuid
from tests.fakes.arvados.http_server import Server, serving
from tests.fakes.arvados.log_endpoint import line
from tests.fakes.live_router import Router, grants, running
from tests.patience import wait_for
from tests.postgres import ClusterDatabase
from tests.unit.clients.bridge.exchange import Exchange, realm, session

TOKEN = "v2/zzzzz-gj3su-000000000000001/secret"
FAST = RelayPace(list_seconds=0.1, save_seconds=0.2)
OWNER, OTHER = new_uuid("group"), new_uuid("group")


@dataclass(slots=True)
class Stage:
    """A cluster, a realm, and relays between them."""

    cluster: ArvadosCluster
    server: Server
    exchange: Exchange
    patterns: list[TopicPattern] = field(default_factory=list)
    pace: RelayPace = FAST
    said: list[str] = field(default_factory=list)

    def relay(self, *names: str, token: str = TOKEN, files: "SlowFiles | None" = None) -> Worker:
        @contextmanager
        def connections() -> Iterator[RelayConnections]:
            with (
                PostgresContainers.connect(self.cluster.database.dsn) as containers,
                session(self.exchange.router) as client,
            ):
                is_asked = "subscribed" in names
                yield RelayConnections(containers, Subscriptions.follow(client) if is_asked else None)

        selection = ContainerSelection.parse(names or ("all",))
        target = LogRealm(realm(self.exchange))
        relay = LogRelay(target, files or Client.of(self.server.url, token), selection, connections, pace=self.pace)
        if files:
            relay.monotonic = files.monotonic
        return Worker("logs", relay.work, relay.figures, self.said.append, pause_seconds=0.05)

    def text(self, container: str, name: str = "stdout", owner: str = OWNER) -> str:
        topic = f"container.{owner}.{container}.log.{name}"
        return "".join(str(one.payload.arguments[0]) for one in list(self.exchange.router.log) if one.topic == topic)

    def wait_for_text(self, container: str, expected: bytes, owner: str = OWNER) -> None:
        wait_for(lambda: self.text(container, owner=owner) == expected.decode(), "the log", seconds=30)


@pytest.fixture
def router() -> Iterator[Router]:
    with running({"cluster": grants("container.", "bridge.", "wamp.")}) as router:
        router.procedures["wamp.subscription.list"] = lambda _: Payload(
            ([{"id": 1, "uri": "other", "match": "exact"}],), {"after": None}
        )
        yield router


@pytest.fixture
def stage(router: Router, cluster_database: ClusterDatabase) -> Iterator[Stage]:
    cluster = ArvadosCluster(cluster_database)
    cluster.endpoint.tokens[TOKEN] = None
    with serving(cluster.endpoint) as server:
        yield Stage(cluster, server, Exchange(router))


def start(stage: Stage, owner: str = OWNER) -> tuple[str, str, Callable[[bytes], None]]:
    """Run a container, and return its request, its UUID, and what writes to its stdout."""
    request, container = stage.cluster.submit(owner)
    stage.cluster.lock(container)
    log = stage.cluster.run(container)
    return request, container, partial(log.write, "stdout.txt")


def test_a_container_is_followed_from_its_start_to_the_last_line_of_the_saved_log(stage):
    with stage.relay().running():
        _, container, write = start(stage)
        write(line("1"))
        stage.wait_for_text(container, stage.cluster.endpoint.logs[container].files["stdout.txt"])
        write(b"unfinished")
        stage.cluster.finish(container)
        stage.wait_for_text(container, stage.cluster.endpoint.logs[container].saved["stdout.txt"])


@dataclass(slots=True)
class SlowFiles:
    """An endpoint whose list of files takes nearly a second, by a clock that each look at it moves on."""

    client: Client
    at: float = 0.0
    polls: list[tuple[float, float]] = field(default_factory=list)

    def monotonic(self) -> float:
        self.at += 0.05
        return self.at

    def sizes(self, request: str, container: str) -> Mapping[str, int]:
        begin, self.at = self.at, self.at + 0.9
        self.polls.append((begin, self.at))
        return self.client.sizes(request, container)

    def read(self, request: str, container: str, name: str, *, begin: int, limit: int) -> bytes:
        return self.client.read(request, container, name, begin=begin, limit=limit)


def test_no_second_has_the_requests_of_two_slow_polls(stage):
    files = SlowFiles(Client.of(stage.server.url, TOKEN))
    start(stage)
    with stage.relay(files=files).running():
        wait_for(lambda: len(files.polls) > 3, "polls of the log", seconds=30)

    assert all(later[0] - end >= 1 for (_, end), later in pairwise(files.polls))


@pytest.mark.parametrize("seed", range(4))
def test_a_relay_that_is_stopped_and_whose_calls_get_no_answer_publishes_each_line_once(stage, seed):
    """A call without an answer may have published its line, or not."""
    random, others = Random(seed), threading.Event()  # noqa: S311 - not for secrets
    _, container, write = start(stage)
    for _ in range(4):
        with stage.relay().running():
            for number in range(3):
                write(line(f"{number}") + b"begun ")
                stage.exchange.lost = random.choice([0, 1, 2])
                stage.exchange.lost_before = random.choice([0, 1])
                others.wait(0.3 * random.random())
    stage.exchange.lost = stage.exchange.lost_before = 0
    stage.cluster.finish(container)
    with stage.relay().running():
        stage.wait_for_text(container, stage.cluster.endpoint.logs[container].saved["stdout.txt"])


def test_only_the_logs_of_subscribed_containers_are_followed(stage):
    relay = stage.relay("subscribed")
    with relay.running():
        _, container, write = start(stage)
        _, quiet, write_quiet = start(stage, OTHER)
        write(line("1"))
        write_quiet(line("1"))
        details = {"id": 7, "uri": f"container.{OWNER}.{container}.log.", "match": "prefix"}
        wait_for(lambda: stage.exchange.router.subscriptions() > 0, "the relay's subscription", seconds=30)
        stage.exchange.router.publish(ON_CREATE, 1, details)

        stage.wait_for_text(container, stage.cluster.endpoint.logs[container].files["stdout.txt"])

    assert stage.cluster.endpoint.per_container[quiet] == 0
    assert relay.figures()["logs"] == 1


def test_each_readers_group_of_a_shared_container_gets_the_log(stage):
    with stage.relay().running():
        _, container, write = start(stage)
        write(line("1"))
        stage.wait_for_text(container, stage.cluster.endpoint.logs[container].files["stdout.txt"])
        stage.cluster.submit(OTHER, container=container)
        write(line("2"))
        stage.wait_for_text(container, stage.cluster.endpoint.logs[container].files["stdout.txt"], OTHER)
        stage.wait_for_text(container, stage.cluster.endpoint.logs[container].files["stdout.txt"], OWNER)


def test_a_log_is_read_through_another_request_when_its_first_is_deleted(stage):
    """A container that several requests share goes on without the first."""
    with stage.relay().running():
        request, container, write = start(stage)
        write(line("1"))
        stage.wait_for_text(container, stage.cluster.endpoint.logs[container].files["stdout.txt"])
        other, _ = stage.cluster.submit(OWNER, container=container)
        stage.cluster.endpoint.logs[container].request = other
        stage.cluster.delete(request)
        write(line("2"))
        stage.wait_for_text(container, stage.cluster.endpoint.logs[container].files["stdout.txt"])


def test_a_second_container_of_a_request_is_followed_and_the_first_is_finished(stage):
    with stage.relay().running():
        _, container, write = start(stage)
        write(line("1"))
        stage.wait_for_text(container, stage.cluster.endpoint.logs[container].files["stdout.txt"])
        write(line("last"))
        stage.cluster.endpoint.logs[container].save()
        other = stage.cluster.retry(container)
        stage.cluster.lock(other)
        stage.cluster.run(other).write("stdout.txt", line("again"))

        stage.wait_for_text(container, stage.cluster.endpoint.logs[container].saved["stdout.txt"])
        stage.wait_for_text(other, stage.cluster.endpoint.logs[other].files["stdout.txt"])


def test_a_container_that_has_ended_is_not_published_again_by_the_next_run(stage):
    _, container, write = start(stage)
    write(line("1"))
    stage.cluster.finish(container)
    expected = stage.cluster.endpoint.logs[container].saved["stdout.txt"]
    for _ in range(2):
        relay = stage.relay()
        with relay.running():
            stage.wait_for_text(container, expected)
            wait_for(lambda relay=relay: relay.figures()["logs"] == 0, "the end", seconds=30)
            before = stage.cluster.endpoint.per_container[container]

    assert stage.cluster.endpoint.per_container[container] == before
    stage.wait_for_text(container, expected)


def test_a_refused_token_ends_the_bridge_without_naming_it(stage):
    start(stage)
    relay = stage.relay(token="v2/zzzzz-gj3su-000000000000009/wrong")
    with relay.running():
        wait_for(lambda: refused(relay), "the refusal", seconds=30)

    with pytest.raises(TokenRefused) as error:
        relay.check()
    assert "wrong" not in str(error.value) + "".join(stage.said)


def refused(relay: Worker) -> bool:
    try:
        relay.check()
    except TokenRefused:
        return True
    return False


def test_more_logs_than_a_relay_follows_are_counted(stage):
    stage.pace = replace(FAST, containers=1)
    start(stage)
    start(stage)
    relay = stage.relay()
    with relay.running():
        wait_for(lambda: relay.figures()["logs_refused"] == 1, "the count", seconds=30)

    assert relay.figures()["logs"] == 1


def test_subscriptions_are_listed_in_pages_and_those_that_ended_left_out(router):
    """Each call of `patterns` reads one page: the bridge has other work."""
    places = []
    pages = {0: ["container.a", "container.b"], 1: ["container.c"]}
    now = datetime.now(UTC)

    def listed(payload: Payload) -> Payload:
        place, _ = payload.keywords["after"]
        places.append(place)
        details = [{"id": uri, "uri": uri, "match": "exact"} for uri in pages[place]]
        return Payload((details,), {"after": [1, 0] if place == 0 else None})

    router.procedures["wamp.subscription.list"] = listed
    with session(router) as client:
        subscriptions = Subscriptions.follow(client)
        found = [uris(subscriptions, now) for _ in range(3)]
        pages[0].remove("container.a")
        later = [uris(subscriptions, now + LISTED_EACH) for _ in range(2)]

    assert found == [["container.a", "container.b"], *[["container.a", "container.b", "container.c"]] * 2]
    assert later == [["container.a", "container.b", "container.c"], ["container.b", "container.c"]]
    assert places == [0, 1, 0, 1]


def uris(subscriptions: Subscriptions, now: datetime) -> list[str]:
    return sorted(one.uri for one in subscriptions.patterns(now))
