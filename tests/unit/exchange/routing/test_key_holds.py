"""Key holds: waiting is limited, and every hold ends."""

from datetime import timedelta

import pytest

from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.key_holds import PATIENCE, KeyHolder
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName
from tests.fakes.rendezvous import MemoryClock
from tests.unit.exchange.routing.routing_world import RETENTION, MemoryKeyHolds

LOG = ExchangeName("xlog.fifo")
A, B = RoutingKey("a"), RoutingKey("b")
M1, M2, M3 = map(MessageId, ("m1", "m2", "m3"))
THEIRS = [MessageId("theirs")]
HOLD_FOR = timedelta(seconds=40)


@pytest.fixture
def clock() -> MemoryClock:
    return MemoryClock()


@pytest.fixture
def holds() -> MemoryKeyHolds:
    return MemoryKeyHolds()


@pytest.fixture
def key_holder(holds, clock) -> KeyHolder:
    return KeyHolder(holds, clock.now, clock.sleep, HOLD_FOR, RETENTION)


def others_hold(holds: MemoryKeyHolds, key: RoutingKey, clock: MemoryClock, **how_long: float) -> None:
    now = clock.now()
    assert holds.hold(LOG, key, messages=THEIRS, now=now, until=now + timedelta(**how_long)) == THEIRS


def test_messages_of_another_batch_keep_their_place_in_a_hold(key_holder, holds) -> None:
    """Messages of two publishers failed: one is redelivered, and the key waits for the other."""
    key_holder.release(LOG, key_holder.hold(LOG, {A: [M1, M2]}), left={M1, M2})
    assert key_holder.hold(LOG, {A: [M2]}) == {}

    key_holder.release(LOG, key_holder.hold(LOG, {A: [M1]}), left={M2})

    assert holds.held[LOG, A][0] == [M2]


def test_a_key_that_is_held_for_long_is_done_without(key_holder, holds, clock) -> None:
    others_hold(holds, A, clock, seconds=30)
    began = clock.now()

    assert key_holder.hold(LOG, {A: [M1], B: [M2]}) == {B: [M2]}

    assert clock.now() - began < PATIENCE + timedelta(seconds=0.1)
    assert holds.held[LOG, A][0] == THEIRS


def test_messages_with_numbers_hold_a_key_as_long_as_they_can_be_in_a_queue(key_holder) -> None:
    hold = key_holder.new_hold([M1], replacing=[M1, M2])

    assert (hold.messages, hold.replacing, hold.until - hold.now) == ([M1], [M1, M2], RETENTION)
