"""Exchanges that keep the order of each publisher: the message groups are the publishers."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.exchange.messages.deliveries import DeliveredMessage
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.records import LiveSettings, OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.router import Router
from signalbox.messages import Message, MessageId
from signalbox.sarracenia.rights.names import ExchangeName
from tests.unit.exchange.routing.routing_world import CONTROL_ID, HOLD_FOR, Killed, MemoryHeads, MemoryKeyHolds, World
from tests.unit.exchange.routing.test_router_live import Live

LOG = ExchangeName("xlog.fifo")
QUEUE = "q_all.fifo"


@pytest.fixture
def world() -> World:
    made = World()
    made.declare(LOG)
    made.table.exchanges[LOG] = replace(made.table.exchanges[LOG], live=LiveSettings(order_by=OrderBy.PUBLISHER))
    made.bind(LOG, "#", queue=QUEUE)
    made.use(live=Live(made, made.holds, cannot_write=True))
    return made


@pytest.fixture
def holds(world) -> MemoryKeyHolds:
    return world.holds


@pytest.fixture
def router(world) -> Router:
    return world.routers[0]


def received(number: int, publisher: str, key: str, *, group: str | None = None) -> Message:
    properties = MessageProperties.of_publication(key, f"{publisher} {number}")
    message = properties.published(publisher=publisher, deduplication_id=str(number), order_by=OrderBy.PUBLISHER)
    system: Mapping[str, str] = {
        **message.system_attributes,
        "SenderId": f"{CONTROL_ID}:session",
        "SentTimestamp": "1774000000000",
        "ApproximateReceiveCount": "1",
        **({"MessageGroupId": group} if group else {}),
    }
    return replace(message, message_id=MessageId(f"m{number}"), system_attributes=system)


def got(world: World) -> list[tuple[str, str, int | None]]:
    found = map(DeliveredMessage.parse, world.messages(QUEUE))
    return [(str(one.key), one.body, one.sequence) for one in found]


def test_messages_of_several_publishers_are_numbered_together(world, router, holds) -> None:
    batch = [received(1, "alice", "a"), received(2, "bob", "a"), received(3, "alice", "b"), received(4, "bob", "a")]

    assert router.route(batch, LOG).not_done == ()

    assert sorted(got(world)) == [("a", "alice 1", 1), ("a", "bob 2", 2), ("a", "bob 4", 3), ("b", "alice 3", 1)]
    assert holds.held == {}


def test_on_a_stage_without_live_and_history_the_order_stays_and_nothing_is_logged_or_kept(
    world, router, holds
) -> None:
    world.table.kept.add(DeclaredName(QUEUE))
    alone = replace(router, live=None, copies=replace(router.copies, keeper=None))
    batch = [received(1, "alice", "a"), received(2, "bob", "a"), received(3, "alice", "b")]

    result = alone.route(batch, LOG)

    assert result.not_done == ()
    assert {event.kind for event in result.events} == {"routed"}
    assert sorted(got(world)) == [("a", "alice 1", 1), ("a", "bob 2", 2), ("b", "alice 3", 1)]
    assert holds.held == {}


def test_a_publisher_chooses_its_message_groups(world, router) -> None:
    batch = [received(1, "alice", "a", group="a"), received(2, "alice", "b", group="alice")]

    assert router.route(batch, LOG).not_done == ()

    assert got(world) == [("a", "alice 1", 1), ("b", "alice 2", 1)]


def test_a_key_that_another_router_holds_keeps_back_its_messages_and_what_their_publisher_said_later(
    world, router, holds
) -> None:
    now = world.now()
    holds.hold(LOG, RoutingKey("a"), messages=[MessageId("theirs")], now=now, until=now + timedelta(seconds=40))

    routed = router.route([received(1, "alice", "a"), received(2, "alice", "b"), received(3, "bob", "b")], LOG)

    assert routed.not_done == ("m1", "m2")
    assert [body for _, body, _ in got(world)] == ["bob 3"]
    assert list(holds.held) == [(LOG, RoutingKey("a"))]


def test_a_message_that_comes_again_after_many_of_others_has_the_number_that_it_had(world, router) -> None:
    first = received(1, "alice", "a")
    for number in range(1, 40):
        router.route([received(number, "bob" if number > 1 else "alice", "a")], LOG)

    assert router.route([first], LOG).not_done == ()

    head = world.heads.heads[LOG, RoutingKey("a")]
    assert (head.sequence, head.recent["m1"]) == (39, 1)


def test_a_new_message_waits_for_those_of_others_that_hold_its_key(world, router, holds) -> None:
    """Both first messages have numbers, and the second one's publisher is redelivered later."""
    live = Live(world, holds, failing={"alice 1", "bob 2"})
    router = world.use(live=live)
    router.route([received(1, "alice", "a"), received(2, "bob", "a")], LOG)
    live.failing = set()

    assert router.route([received(1, "alice", "a"), received(3, "alice", "a")], LOG).not_done == ("m3",)
    assert router.route([received(2, "bob", "a")], LOG).not_done == ()
    assert router.route([received(3, "alice", "a")], LOG).not_done == ()

    assert got(world) == [("a", "alice 1", 1), ("a", "bob 2", 2), ("a", "alice 3", 3)]
    assert holds.held == {}


def test_a_numbered_message_behind_a_late_one_keeps_its_key_held(world, router, holds) -> None:
    live = Live(world, holds, failing={"bob 1", "alice 2", "alice 3"})
    router = world.use(live=live)
    router.route([received(1, "bob", "a"), received(2, "alice", "a"), received(3, "alice", "b")], LOG)
    live.failing = set()

    again = [received(2, "alice", "a"), received(3, "alice", "b"), received(4, "carol", "b")]
    assert router.route(again, LOG).not_done == ("m2", "m3", "m4")
    assert router.route([received(4, "carol", "b")], LOG).not_done == ("m4",)
    assert router.route([received(1, "bob", "a")], LOG).not_done == ()
    assert router.route(again, LOG).not_done == ()

    assert [(key, number) for key, _, number in got(world)] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert holds.held == {}


def test_a_batch_that_comes_again_is_routed_in_the_order_of_its_numbers(world, router, holds) -> None:
    live = Live(world, holds, failing={"bob 1", "alice 2"})
    router = world.use(live=live)
    batch = [received(1, "bob", "a"), received(2, "alice", "a"), received(3, "alice", "b")]
    assert router.route(batch, LOG).not_done == ("m1", "m2", "m3")
    live.failing = set()

    assert router.route([*batch[1:], batch[0]], LOG).not_done == ()

    assert got(world) == [("a", "bob 1", 1), ("a", "alice 2", 2), ("b", "alice 3", 1)]


def test_a_publishers_own_name_is_used_for_the_group_only() -> None:
    properties = MessageProperties.of_publication("a", "body")

    message = properties.published(deduplication_id="d", order_by=OrderBy.PUBLISHER, sender="alice")

    assert message.group_id == "alice"
    assert "publisher" not in message.attributes


@pytest.mark.parametrize("cannot_write", [False, True])
def test_no_later_message_overtakes_a_redelivered_one_with_a_number(world, holds, cannot_write) -> None:
    """Neither when its functions are killed for hours, and no call extends its hold."""
    live = Live(world, holds, failing={"alice 1"}, cannot_write=cannot_write)
    router = world.use(live=live)
    failing = [received(1, "alice", "a"), received(3, "bob", "b")]
    assert router.route(failing, LOG).not_done == ("m1",)
    live.failing = set()
    world.moment += 3600

    assert router.route([received(2, "bob", "a")], LOG).not_done == ("m2",)
    assert router.route(failing[:1], LOG).not_done == ()
    assert router.route([received(2, "bob", "a")], LOG).not_done == ()

    assert live.delivered == [("alice 1", 1), ("bob 3", 1), ("alice 1", 1), ("bob 2", 2)]
    assert got(world) == [("b", "bob 3", 1), ("a", "alice 1", 1), ("a", "bob 2", 2)]


def test_a_key_whose_number_may_be_stored_stays_held(world, router, holds, monkeypatch) -> None:
    """The response to the first attempt was lost, and the second one finds another head."""
    save = MemoryHeads.save
    monkeypatch.setattr(MemoryHeads, "save", lambda *values: not save(*values))
    assert router.route([received(1, "alice", "a")], LOG).not_done == ("m1",)
    monkeypatch.undo()

    assert router.route([received(2, "bob", "a")], LOG).not_done == ("m2",)
    assert router.route([received(1, "alice", "a")], LOG).not_done == ()
    assert router.route([received(2, "bob", "a")], LOG).not_done == ()

    assert got(world) == [("a", "alice 1", 1), ("a", "bob 2", 2)]


def test_a_message_without_a_number_holds_its_key_for_the_time_of_a_batch(world, router, holds, monkeypatch) -> None:
    def kill(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(MemoryHeads, "save", kill)
    with pytest.raises(Killed):
        router.route([received(1, "alice", "a")], LOG)
    monkeypatch.undo()
    assert list(holds.held) == [(LOG, RoutingKey("a"))]
    world.moment += HOLD_FOR.total_seconds()

    assert router.route([received(2, "bob", "a")], LOG).not_done == ()
    assert router.route([received(1, "alice", "a")], LOG).not_done == ()

    assert got(world) == [("a", "bob 2", 1), ("a", "alice 1", 2)]
    assert holds.held == {}


def test_keys_without_another_router_are_held_by_the_transaction_that_stores_their_numbers(
    world, router, holds
) -> None:
    live = Live(world, holds)
    router = world.use(live=live)

    assert router.route([received(1, "alice", "a"), received(2, "bob", "b")], LOG).not_done == ()

    assert (live.at_once, holds.held) == (["a", "b"], {})


def test_a_batch_waits_for_a_key_that_another_router_holds(world, router, holds) -> None:
    now, live = world.now(), Live(world, holds)
    router = world.use(live=live)
    holds.hold(LOG, RoutingKey("a"), messages=[MessageId("theirs")], now=now, until=now + timedelta(seconds=1))

    assert router.route([received(1, "alice", "a")], LOG).not_done == ()

    assert live.at_once == []
    assert live.delivered == [("alice 1", 1)]
