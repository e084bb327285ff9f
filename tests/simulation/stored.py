"""The state of a stage in a canonical form, so that equal states of several runs are found to be equal."""

from collections.abc import Iterator
from typing import Any

from tests.simulation.accesses import is_unseen
from tests.simulation.functions import Mapping_
from tests.simulation.queue import SimulatedQueue, StoredMessage
from tests.simulation.table import Table
from tests.simulation.world import World


def stored(world: World) -> object:
    """Return the stored state: items, messages, mappings, and what clients saw."""
    return (
        [(name, list(_items(table))) for name, table in world.dynamodb.tables.items()],
        [_queue(queue, world) for queue in sorted(world.sqs.made, key=lambda queue: (queue.name, queue.created_at))],
        world.clients_state(),  # type: ignore[attr-defined]
    )


def _items(table: Table) -> Iterator[object]:
    for partition, known in sorted(table.items.items(), key=str):
        for sort, item in sorted(known.items(), key=str):
            if not is_unseen(str(partition), str(sort)):
                yield partition, sort, sorted(item.items())


def _queue(queue: SimulatedQueue, world: World) -> object:
    is_open = world.sqs.queues.get(queue.name) is queue
    # A FIFO queue drops a message that it has had, and the order in it is a guarantee.
    gone = [_sent(one) for one in queue.log if queue.is_fifo and one.id not in queue.messages]
    messages = [(_sent(one), one.receives, one.visible_at) for one in queue.messages.values()]
    readers = [_reader(one) for one in queue.watchers]
    return queue.name, is_open, world.sqs.deleted_at.get(queue.name), gone, messages, readers


def _sent(message: StoredMessage) -> tuple[str, float]:
    return message.id, message.sent_at


def _reader(watcher: Any) -> object:
    mapping: Mapping_ = watcher.__self__
    return mapping.active, mapping.is_enabled
