"""Exchanges that keep the order of each publisher: the message groups are the publishers."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from signalbox.exchange.messages.properties import DeliveredMessage, MessageProperties
from signalbox.exchange.model.records import LiveSettings, OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.key_holds import KeyHolder
from signalbox.exchange.routing.router import Router
from signalbox.messages import Attribute, Message, MessageId
from signalbox.sarracenia.rights.names import ExchangeName
from tests.unit.exchange.routing.routing_world import CONTROL_ID, MemoryKeyHolds, World
from tests.unit.exchange.routing.test_router_live import Live

LOG = ExchangeName("xlog.fifo")
QUEUE = "q_all.fifo"


@pytest.fixture
def world() -> World:
    made = World()
    made.declare(LOG)
    made.table.exchanges[LOG] = replace(made.table.exchanges[LOG], live=LiveSettings(order_by=OrderBy.PUBLISHER))
    made.bind(LOG, "#", queue=QUEUE)
    return made


@pytest.fixture
def holds() -> MemoryKeyHolds:
    return MemoryKeyHolds()


@pytest.fixture
def router(world, holds) -> Router:
    def sleep(seconds: float) -> None:
        world.moment += seconds

    key_holder = KeyHolder(holds, world.now, sleep, timedelta(seconds=40))
    made: Router = replace(world.router(), key_holder=key_holder)
    return made


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


def test_a_message_in_another_publishers_group_is_dead_lettered(world, router) -> None:
    assert router.route([received(1, "alice", "a", group="a")], LOG).not_done == ()

    buried = world.messages("xlog-dlq.fifo")[0]
    assert buried.attributes["Reason"] == Attribute(
        "String", "MessageGroupId: expected 'alice', the group of its publisher, not 'a'"
    )
    assert got(world) == []


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
    for number in range(1, 60):
        router.route([received(number, "bob" if number > 1 else "alice", "a")], LOG)

    assert router.route([first], LOG).not_done == ()

    head = world.heads.heads[LOG, RoutingKey("a")]
    assert (head.sequence, head.recent["m1"]) == (59, 1)


def test_a_publishers_own_name_is_used_for_the_group_only() -> None:
    properties = MessageProperties.of_publication("a", "body")

    message = properties.published(deduplication_id="d", order_by=OrderBy.PUBLISHER, sender="alice")

    assert message.group_id == "alice"
    assert "publisher" not in message.attributes


def test_no_later_message_overtakes_a_redelivered_one_with_a_number(world, router) -> None:
    live = router.live = Live(failing={"alice 1"})
    failing = [received(1, "alice", "a"), received(3, "bob", "b")]
    assert router.route(failing, LOG).not_done == ("m1",)
    live.failing = set()

    assert router.route([received(2, "bob", "a")], LOG).not_done == ("m2",)
    assert router.route(failing[:1], LOG).not_done == ()
    assert router.route([received(2, "bob", "a")], LOG).not_done == ()

    assert live.delivered == [("alice 1", 1), ("bob 3", 1), ("alice 1", 1), ("bob 2", 2)]
    assert got(world) == [("b", "bob 3", 1), ("a", "alice 1", 1), ("a", "bob 2", 2)]


def test_a_failed_live_delivery_blocks_later_messages_of_its_key(world, router) -> None:
    router.live = Live(failing={"alice 1"})

    routed = router.route([received(1, "alice", "a"), received(2, "bob", "a"), received(3, "bob", "b")], LOG)

    assert routed.not_done == ("m1", "m2", "m3")
    assert got(world) == []
