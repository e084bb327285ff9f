"""The loop of a bridge: it survives a lost database and a lost realm, and ends when it is asked to."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from signalbox.clients.bridge.run import BridgeClock, BridgeRun
from signalbox.clients.bridge.worker import Worker
from signalbox.errors import RejectedError, UnavailableError
from signalbox.live.bridge.checkpoints import Checkpoint
from signalbox.live.bridge.rows import DatabaseRow
from signalbox.live.bridge.service import ArvadosBridge
from tests.fakes.bridge import NOON, FakeCluster, FakeRealm, counted_calls

REALM = "xs_lab.fifo"
PERMISSION = DatabaseRow(
    2,
    object_uuid="zzzzz-o0j2j-000000000000000",
    event_type="create",
    properties={"new_attributes": {"link_class": "permission"}},
)


@dataclass(slots=True)
class Cluster(FakeCluster):
    """A cluster whose connections may fail, and whose lock may be held; each wait runs the next of `waits`."""

    connections: int = 0
    fails_at: set[int] = field(default_factory=set)
    unreadable: int = 0
    locked: int = 0
    waits: list[Callable[[], None]] = field(default_factory=list)

    @contextmanager
    def connect(self) -> Iterator["Cluster"]:
        self.connections += 1
        if self.connections in self.fails_at:
            raise UnavailableError("PostgreSQL: no server")
        yield self

    def try_lock(self, name: str) -> bool:
        assert name == f"signalbox bridge {REALM}"
        self.locked -= 1
        return self.locked < 0

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.waits.pop(0)()

    def add_row(self) -> None:
        """Commit a row."""
        self.insert("a")
        self.commit("a")


@dataclass(slots=True)
class Ending:
    """The request to end, and what the run has said and reported."""

    is_due: bool = False
    said: list[str] = field(default_factory=list)
    reported: list[Mapping[str, object]] = field(default_factory=list)

    def end(self) -> None:
        self.is_due = True


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def ending() -> Ending:
    return Ending()


def a_run(cluster: Cluster, realm: FakeRealm, ending: Ending) -> BridgeRun:
    seconds = iter(range(1_000_000))

    def bridge(table, target):
        return ArvadosBridge(table, target, now=lambda: NOON, run="1", patience=timedelta(days=1), start=0)

    clock = BridgeClock(lambda: NOON, lambda: float(next(seconds)), lambda _: None, lambda: 1.0)
    return BridgeRun(
        cluster.connect,
        realm,
        REALM,
        bridge,
        is_ending=lambda: ending.is_due,
        say=ending.said.append,
        report=ending.reported.append,
        clock=clock,
    )


def test_rows_are_published_until_the_end_is_due(cluster, ending):
    realm = FakeRealm()
    cluster.waits = [cluster.add_row, lambda: None, ending.end]

    a_run(cluster, realm, ending).run()

    assert realm.published == [1]
    assert realm.stored is not None
    assert realm.stored.checkpoint == Checkpoint(1, run="1")
    assert ending.said == ["publishing to xs_lab.fifo the rows after 0"]
    assert ending.reported[-1] == {
        "at": "2026-11-23T12:00:00.000+00:00",
        "position": 1,
        "published": 1,
        "already_published": 0,
        "cut": 0,
        "unreadable": 0,
        "late_ids": 0,
        "resumed": 1,
    }


class CountingWorker(Worker):
    """A worker that waits for its end, and counts how often it is woken."""

    woken = 0

    def wake(self) -> None:
        self.woken += 1
        Worker.wake(self)


def test_a_row_that_changes_a_permission_wakes_the_workers_and_another_does_not(cluster, ending):
    """The groups of users follow within seconds, without the check of each half minute."""
    worker = CountingWorker("permissions", lambda one: one.wait(60), dict, ending.said.append)
    woken: list[int] = []

    def add_link() -> None:
        woken.append(worker.woken)
        cluster.add_row()
        cluster.rows_by_id[cluster.last_id] = PERMISSION

    cluster.waits = [cluster.add_row, add_link, lambda: woken.append(worker.woken), ending.end]

    replace(a_run(cluster, FakeRealm(), ending), workers=[worker]).run()

    assert woken == [0, 1]


def test_an_error_of_a_worker_ends_the_run(cluster, ending):
    """Otherwise the bridge would go on without logs and without a message."""

    def work(_: Worker) -> None:
        raise LookupError("a defect")

    worker = Worker("logs", work, dict, ending.said.append)
    run = replace(a_run(cluster, FakeRealm(), ending), workers=[worker])
    cluster.waits = [lambda: worker.wait(0.01)] * 1_000

    with pytest.raises(LookupError, match="a defect"):
        run.run()


def test_statistics_are_reported_while_nothing_ends(cluster, ending):
    cluster.waits = [lambda: None] * 20 + [ending.end]

    a_run(cluster, FakeRealm(), ending).run()

    assert len(ending.reported) > 2


def test_a_database_that_is_lost_is_connected_again(cluster, ending):
    def lose() -> None:
        raise UnavailableError("PostgreSQL: the connection is lost")

    realm = FakeRealm()
    cluster.fails_at = {2, 3}
    cluster.waits = [cluster.add_row, lose, cluster.add_row, ending.end]

    a_run(cluster, realm, ending).run()

    assert realm.published == [1, 2]
    assert cluster.connections == 4
    assert ending.said[1:4] == [
        "PostgreSQL: the connection is lost; trying again",
        "PostgreSQL: no server; trying again",
        "PostgreSQL: no server; trying again",
    ]
    assert ending.reported[-1]["published"] == 2
    assert ending.reported[-1]["resumed"] == 2


def test_rows_whose_outcome_is_unknown_are_published_once_when_aws_is_back(cluster, ending):
    realm = FakeRealm()
    # The calls are the checkpoint of the start, that of the window, the first row's three publications, and the
    # checkpoint of the next run.
    realm.after_call = counted_calls({4: UnavailableError, 5: UnavailableError})
    cluster.add_row()
    cluster.add_row()
    cluster.waits = [ending.end]

    a_run(cluster, realm, ending).run()

    assert realm.published == [1, 2]
    assert ending.reported[-1]["already_published"] == 1


def test_the_first_connection_must_succeed(cluster, ending):
    cluster.fails_at = {1}

    with pytest.raises(UnavailableError, match="no server"):
        a_run(cluster, FakeRealm(), ending).run()


def test_a_rejection_ends_the_run(cluster, ending):
    realm = FakeRealm()
    realm.before_call = counted_calls({2: RejectedError})
    cluster.waits = [cluster.add_row]

    with pytest.raises(RejectedError):
        a_run(cluster, realm, ending).run()


def test_a_second_bridge_waits_for_the_first(cluster, ending):
    realm = FakeRealm()
    cluster.locked = 3
    cluster.waits = [lambda: None, lambda: None, lambda: None, ending.end]

    a_run(cluster, realm, ending).run()

    assert ending.said[0] == "another bridge publishes to xs_lab.fifo: waiting until it ends"
    assert len(ending.said) == 2


def test_a_waiting_bridge_ends_without_a_report(cluster, ending):
    cluster.locked = 9
    cluster.waits = [ending.end]

    a_run(cluster, FakeRealm(), ending).run()

    assert ending.reported == []


def test_a_bridge_that_waits_for_a_database_ends(cluster, ending):
    realm = FakeRealm()

    def lose_and_end() -> None:
        ending.end()
        raise UnavailableError("PostgreSQL: gone")

    cluster.waits = [lose_and_end]

    a_run(cluster, realm, ending).run()

    assert ending.said[-1] == "PostgreSQL: gone; trying again"


def test_a_bridge_that_waits_for_the_realm_ends(cluster, ending):
    realm = FakeRealm()
    realm.before_call = ending.end

    a_run(cluster, realm, ending).run()

    assert ending.said == []
    assert ending.reported == []
