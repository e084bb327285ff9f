"""The state of a stage in a canonical form, so that equal states of several runs are found to be equal."""

import math
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from typing import Any

from tests.simulation.accesses import is_unseen
from tests.simulation.functions import Mapping_
from tests.simulation.queue import SimulatedQueue, StoredMessage
from tests.simulation.sqs import NAME_IS_FREE_AFTER
from tests.simulation.table import Table
from tests.simulation.world import World

# Times that are only compared with the present: all that are over are equal, and all after the end of a run.
DEADLINES = {"until": 1000, "expires_at": 1}
# What a run has named by chance: the parts of twelve characters with which splitting names its queues and chains.
NAMES = re.compile(r"\b(?=[a-z]*[0-9])(?=[0-9]*[a-z])[a-z0-9]{12}\b")
# Of a split, no rule compares the ages of changes that are longer ago, nor of counts of messages in microseconds.
LONG_AGO = 20
TIMES = re.compile(r'(?<="since":")[^"]+(?=")|(?<=\[)[0-9]{16}(?=,)')


def canonical(state: object, now: float) -> str:
    """Return the text of a state without what no rule reads: names, but for their order, and times long ago."""
    names: dict[str, str] = {}
    text = TIMES.sub(lambda time: "long ago" if _moment(time[0]) <= now - LONG_AGO else time[0], repr(state))
    return NAMES.sub(lambda name: names.setdefault(name[0], f"<{len(names)}>"), text)


@cache
def _moment(time: str) -> float:
    return float(time) / 1_000_000 if time.isdecimal() else datetime.fromisoformat(time).timestamp()


def in_order(found: Iterable[object]) -> list[object]:
    """Return parts of a state in an order that does not depend on names."""
    return sorted(found, key=lambda one: (NAMES.sub("", repr(one)), repr(one)))


def stored(world: World) -> object:
    """Return the stored state: items, messages, mappings, and what clients saw."""
    return (
        [(name, in_order(_items(table, world))) for name, table in world.dynamodb.tables.items()],
        in_order(found for queue in world.sqs.made if (found := _queue(queue, world))),
        world.clients_state(),  # type: ignore[attr-defined]
    )


def _items(table: Table, world: World) -> Iterator[object]:
    for partition, known in table.items.items():
        for sort, item in known.items():
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
    gone = in_order(_sent(one) for one in queue.log if queue.is_fifo and one.id not in queue.messages)
    messages = sorted(queue.messages.values(), key=lambda one: one.group or "")
    waiting: list[object] = [(_sent(one), one.receives, one.visible_at) for one in messages]
    if not queue.is_fifo:
        waiting = in_order(waiting)
    readers = [_reader(one) for one in queue.watchers]
    return queue.name, is_open, deleted_at, gone, waiting, readers


def _sent(message: StoredMessage) -> tuple[str, str, float]:
    return message.id, message.body, message.sent_at


def _reader(watcher: Any) -> object:
    mapping: Mapping_ = watcher.__self__
    return mapping.active, mapping.is_enabled
