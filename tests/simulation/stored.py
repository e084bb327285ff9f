"""The state of a stage in a canonical form, so that equal states of several runs are found to be equal."""

import math
from collections.abc import Iterator
from typing import Any

from tests.simulation.accesses import is_unseen
from tests.simulation.functions import Mapping_
from tests.simulation.queue import SimulatedQueue, StoredMessage
from tests.simulation.sqs import NAME_IS_FREE_AFTER
from tests.simulation.table import Table
from tests.simulation.world import World

# Times that are only compared with the present: all that are over are equal, and all after the end of a run.
DEADLINES = {"until": 1000, "expires_at": 1}


def stored(world: World) -> object:
    """Return the stored state: items, messages, mappings, and what clients saw."""
    queues = sorted(world.sqs.made, key=lambda queue: (queue.name, queue.created_at))
    return (
        [(name, list(_items(table, world))) for name, table in world.dynamodb.tables.items()],
        [found for queue in queues if (found := _queue(queue, world))],
        world.clients_state(),  # type: ignore[attr-defined]
    )


def _items(table: Table, world: World) -> Iterator[object]:
    for partition, known in sorted(table.items.items(), key=str):
        for sort, item in sorted(known.items(), key=str):
            if not is_unseen(str(partition), str(sort)):
                yield partition, sort, [(name, _value(name, item[name], world)) for name in sorted(item)]


def _value(name: str, value: Any, world: World) -> object:
    if name not in DEADLINES:
        return value
    moment = float(value) / DEADLINES[name]
    return "over" if moment <= world.kernel.now else "never" if moment > world.end else value


def _queue(queue: SimulatedQueue, world: World) -> object:
    is_open = world.sqs.queues.get(queue.name) is queue
    deleted_at = world.sqs.deleted_at.get(queue.name, -math.inf)
    if queue.name in world.unread or not (is_open or world.kernel.now - deleted_at < NAME_IS_FREE_AFTER):  # type: ignore[attr-defined]
        return None
    # A FIFO queue drops a message that it has had, and the order in it is a guarantee.
    gone = sorted(_sent(one) for one in queue.log if queue.is_fifo and one.id not in queue.messages)
    messages = list(queue.messages.values())
    messages.sort(key=lambda one: (one.group or "", "" if queue.is_fifo else one.id))
    waiting = [(_sent(one), one.receives, one.visible_at) for one in messages]
    readers = [_reader(one) for one in queue.watchers]
    return queue.name, is_open, deleted_at, gone, waiting, readers


def _sent(message: StoredMessage) -> tuple[str, float]:
    return message.id, message.sent_at


def _reader(watcher: Any) -> object:
    mapping: Mapping_ = watcher.__self__
    return mapping.active, mapping.is_enabled
