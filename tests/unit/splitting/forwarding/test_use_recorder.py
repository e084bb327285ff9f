"""A call records a queue before it sends messages to it, once for many messages."""

from datetime import timedelta

from signalbox.queues import QueueName
from signalbox.splitting.forwarding.use_recorder import USE_LASTS, UseRecorder
from signalbox.splitting.model.observed_state import QueueUse
from tests.fakes.splitting import START, MemoryQueueUses, MemoryTime

QUEUE, OTHER = QueueName("ann-memes"), QueueName("bob-memes")
MOMENT = timedelta(seconds=1)


def test_a_use_is_recorded_once_for_as_long_as_it_lasts():
    time, uses = MemoryTime(), MemoryQueueUses()
    recorder = UseRecorder(uses, time.now)

    assert recorder.is_open(QUEUE)
    time.moment += USE_LASTS - MOMENT
    assert recorder.is_open(QUEUE)
    assert uses.uses == {QUEUE: QueueUse(START + USE_LASTS)}

    time.moment += MOMENT
    assert recorder.is_open(OTHER)
    assert recorder.is_open(QUEUE)
    assert uses.uses == dict.fromkeys((QUEUE, OTHER), QueueUse(START + 2 * USE_LASTS))


def test_a_closed_queue_is_open_only_to_the_calls_that_were_told_so():
    time, uses = MemoryTime(), MemoryQueueUses()
    informed, late = UseRecorder(uses, time.now), UseRecorder(uses, time.now)
    informed.is_open(QUEUE)

    assert uses.close(QUEUE, seen=uses.uses[QUEUE], now=START)

    assert informed.is_open(QUEUE)
    assert not late.is_open(QUEUE)
    time.moment += USE_LASTS
    assert not informed.is_open(QUEUE)
