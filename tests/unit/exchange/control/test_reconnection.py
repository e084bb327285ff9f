"""Queues on record are connected to the functions of the deployed stage, whatever happened to the earlier ones."""

from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.errors import EffectFailed, EffectRefused
from signalbox.exchange.control.reconnection import INTERVAL, PAGE, Reconnection, ReconnectionService
from signalbox.exchange.model.connections import Connection, FunctionArn, Readers
from signalbox.exchange.model.records import User
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Role
from tests.fakes.exchange import MemoryConnectionChecks, MemoryConnections
from tests.unit.exchange.control.stage import ALICE, BOB, FEED, ExchangeStage

OLD = Readers(FunctionArn("route-1"), FunctionArn("control-1"))
NEW = Readers(FunctionArn("route-2"), FunctionArn("control-2"))
CONTROL = "box-exchange-control"
LONG = timedelta(hours=1)


class Redeployed:
    """A stage with two exchanges and three users, all connected to the functions of an earlier deployment."""

    def __init__(self) -> None:
        self.stage = ExchangeStage()
        for name in ("xpublic", "xs_live.fifo"):
            self.stage.ask("declare_exchange", exchange=name)
        self.stage.mappings.connected.clear()
        self.stage.mappings.retries.clear()
        self.retries = [QueueName(f"box-exchange-retries{ending}") for ending in ("", ".fifo")]
        self.queues = [QueueName(name) for name in ("xpublic", "xs_live.fifo")]
        self.controls = [QueueName(f"{CONTROL}-{user}") for user in (ALICE, BOB, FEED)]
        earlier = [
            *(Connection(f"old {queue}", queue, OLD.router) for queue in (*self.queues, *self.retries)),
            *(Connection(f"old {queue}", queue, OLD.control) for queue in self.controls),
        ]
        self.others = [
            Connection("admin", QueueName(CONTROL), NEW.control),
            Connection("foreign", QueueName("orders"), FunctionArn("other")),
        ]
        self.connections = MemoryConnections(self.stage.mappings, NEW, [*earlier, *self.others])
        self.checks = MemoryConnectionChecks()
        self.service = ReconnectionService(self.stage.ports, self.connections, self.checks, NEW)

    def check(self, *, until: timedelta = LONG) -> Reconnection:
        return self.service.check_when_due(until=self.stage.time.now() + until)


def test_after_a_redeployment_every_queue_is_connected_to_the_functions_that_exist_and_to_no_earlier_one():
    stage = Redeployed()

    done = stage.check()

    assert stage.stage.mappings.connected == set(stage.queues)
    assert stage.connections.users == [ALICE, BOB, FEED]
    assert (
        sorted(done.connected) == sorted(done.disconnected) == sorted([*stage.queues, *stage.retries, *stage.controls])
    )
    assert (done.problems, done.is_complete) == ([], True)
    left = [one for one in stage.connections.listed if one.function not in (NEW.router, NEW.control)]
    assert left == [one for one in stage.others if one.function == "other"]


def test_a_live_only_user_has_no_control_queue_to_connect():
    stage = Redeployed()
    lee = User(UserName("lee"), Role.SUBSCRIBER, Ownership.STRICT, stage.stage.time.now(), None)
    stage.stage.ports.store.users.put(lee)

    done = stage.check()

    assert stage.connections.users == [ALICE, BOB, FEED]
    assert (done.problems, done.is_complete) == ([], True)


def test_a_second_check_changes_nothing_and_reads_one_item():
    stage = Redeployed()
    stage.check()
    listings = stage.connections.listings

    assert stage.check() == Reconnection()
    assert stage.connections.listings == listings
    assert stage.service.reconnect(until=stage.stage.time.now() + LONG) == Reconnection()


def test_everything_is_checked_again_after_a_day():
    stage = Redeployed()
    stage.check()
    stage.stage.mappings.connected.discard(QueueName("xpublic"))
    stage.stage.time.pass_by(INTERVAL - timedelta(seconds=1))
    assert stage.check().connected == []

    stage.stage.time.pass_by(timedelta(seconds=1))

    assert stage.check().connected == ["xpublic"]


@pytest.mark.parametrize(
    "replaced", [replace(NEW, router=FunctionArn("route-3")), replace(NEW, control=FunctionArn("control-3"))]
)
def test_a_replaced_function_is_a_deployment(replaced: Readers):
    stage = Redeployed()
    stage.check()
    listings, stage.connections.readers = stage.connections.listings, replaced

    again = ReconnectionService(stage.stage.ports, stage.connections, stage.checks, replaced)
    again.check_when_due(until=stage.stage.time.now() + LONG)

    assert stage.connections.listings == listings + 1
    assert stage.checks.check is not None
    assert stage.checks.check.readers == replaced


def test_a_mapping_of_somebody_else_on_an_exchanges_queue_is_kept():
    stage = Redeployed()
    tap = Connection("tap", stage.queues[0], FunctionArn("somebody's"))
    stage.connections.listed.append(tap)
    stage.connections.foreign.add("tap")

    done = stage.check()

    assert tap in stage.connections.listed
    assert done.is_complete


def test_a_check_stops_at_its_deadline_and_the_next_one_continues():
    stage = Redeployed()
    for number in range(2 * PAGE):
        stage.stage.ask("declare_exchange", exchange=f"xs_{number:02}")
    stage.stage.mappings.connected.clear()
    sizes = stage.stage.sqs.sizes

    def slow(names):
        stage.stage.time.pass_by(timedelta(seconds=1))
        return sizes(names)

    stage.stage.sqs.sizes = slow  # type: ignore[method-assign]

    first = stage.check(until=timedelta(seconds=PAGE))
    assert (len(first.connected), first.is_complete, stage.checks.check) == (PAGE, False, None)

    second = stage.check()
    assert second.is_complete
    assert stage.checks.check is not None
    assert not set(first.connected) & set(second.connected)
    assert len(stage.stage.mappings.connected) == 2 * PAGE + 2


def test_an_earlier_reader_stays_until_the_new_one_is_connected():
    stage = Redeployed()
    stage.connections.failing[ALICE] = EffectFailed("throttled")

    done = stage.check()

    assert Connection(f"old {CONTROL}-alice", QueueName(f"{CONTROL}-alice"), OLD.control) in stage.connections.listed
    assert (done.problems, done.is_complete, stage.checks.check) == (["throttled"], False, None)
    assert len(done.connected) == 6


def test_a_refusal_is_tried_again_since_a_new_permission_may_not_count_yet():
    stage = Redeployed()
    stage.connections.failing[f"old {stage.queues[0]}"] = EffectRefused("denied")

    done = stage.check()

    assert (done.problems, done.is_complete) == (["denied"], False)
    assert stage.checks.check is None


def test_a_queue_that_somebody_deleted_is_reported_with_its_remedy():
    stage = Redeployed()
    stage.stage.sqs.delete(QueueName("xpublic"))

    done = stage.check()

    assert done.problems == ["queue 'xpublic' does not exist: declare exchange 'xpublic' again to create it"]
    assert done.is_complete
    assert "xs_live.fifo" in done.connected


def test_an_exchange_in_deletion_is_not_connected():
    stage = Redeployed()
    stored = stage.stage.exchanges.find(ExchangeName("xpublic"))
    assert stored is not None
    stage.stage.exchanges.save(replace(stored, is_deleting=True), replacing=stored)

    assert "xpublic" not in stage.check().connected


@pytest.mark.parametrize("left", ["nothing", "a record in deletion"])
def test_an_exchange_that_is_deleted_during_the_check_is_disconnected_again(left: str):
    stage = Redeployed()

    def delete() -> None:
        stored = stage.stage.exchanges.find(ExchangeName("xpublic"))
        assert stored is not None
        if left == "nothing":
            stage.stage.exchanges.forget(stored)
        else:
            stage.stage.exchanges.save(replace(stored, is_deleting=True), replacing=stored)

    stage.stage.meanwhile(stage.stage.mappings, "connect", delete)

    stage.check()

    assert "xpublic" not in stage.stage.mappings.connected


def test_a_stage_without_records_needs_no_change():
    stage = ExchangeStage()
    for user in (ALICE, BOB, FEED):
        stage.users.remove(UserName(user))
    connections, checks = MemoryConnections(stage.mappings, NEW), MemoryConnectionChecks()

    done = ReconnectionService(stage.ports, connections, checks, NEW).check_when_due(until=stage.time.now() + LONG)

    assert done == Reconnection()
    assert checks.check is not None
