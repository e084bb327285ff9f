"""Rule: one item of DynamoDB takes 3,000 read units and 1,000 write units a second."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from signalbox.local.emulator.weather.calls import Answer, Call, Clock, Forward
from signalbox.local.emulator.weather.errors import HOT_ITEM
from signalbox.local.emulator.weather.partial_batches import by_table, with_keys, with_unprocessed
from signalbox.local.emulator.weather.rules import READ_UNITS, WRITE_UNITS

READ_BLOCK, WRITE_BLOCK = 4096, 1024  # bytes of a unit
TRANSACTION = 2  # units of a transaction for each of the others
Key = tuple[str, str]
"""Table, and the key as canonical JSON."""


@dataclass(slots=True)
class Meter:
    """The units that items have taken in the current second."""

    clock: Clock
    limit: int
    second: int = -1
    taken: dict[Key, float] = field(default_factory=dict)

    def is_hot(self, key: Key) -> bool:
        """Return whether the item takes no more in this second."""
        self._turn()
        return self.taken.get(key, 0) >= self.limit

    def take(self, key: Key, units: float) -> None:
        """Count units."""
        self._turn()
        self.taken[key] = self.taken.get(key, 0) + units

    def _turn(self) -> None:
        now = int(self.clock())
        if now != self.second:
            self.second, self.taken = now, {}


class HotItems:
    """Refuses reads and writes of an item that took its units of the second."""

    def __init__(self, clock: Clock, key_names: Callable[[str], Sequence[str]]) -> None:
        """`key_names` returns the names of a table's key attributes."""
        self._reads, self._writes = Meter(clock, READ_UNITS), Meter(clock, WRITE_UNITS)
        self._key_names = key_names

    async def answer(self, call: Call, forward: Forward) -> Answer:
        """Return the answer, or a refusal in the form of the operation."""
        if call.service != "dynamodb":
            return await forward(call)
        if call.action in ("GetItem", "PutItem", "UpdateItem", "DeleteItem"):
            return await self._single(call, forward)
        if call.action == "BatchGetItem":
            return await self._batch_get(call, forward)
        if call.action == "BatchWriteItem":
            return await self._batch_write(call, forward)
        if call.action == "TransactWriteItems":
            return await self._transaction(call, forward)
        return await forward(call)

    async def _single(self, call: Call, forward: Forward) -> Answer:
        table = call.parameters["TableName"]
        key = self._key(table, call.parameters.get("Key") or call.parameters.get("Item", {}))
        if call.action != "GetItem":
            return await self._written([(key, write_units(call.parameters))], call, forward)
        if self._reads.is_hot(key):
            return HOT_ITEM.answer(call)
        answer = await forward(call)
        if answer.is_success:
            self._reads.take(key, read_units(answer.document().get("Item"), call.parameters.get("ConsistentRead")))
        return answer

    async def _transaction(self, call: Call, forward: Forward) -> Answer:
        actions = [action for entry in call.parameters["TransactItems"] for action in entry.values()]
        taken = [
            (self._key(action["TableName"], action.get("Key") or action.get("Item", {})), write_units(action))
            for action in actions
        ]
        return await self._written([(key, TRANSACTION * units) for key, units in taken], call, forward)

    async def _written(self, taken: Sequence[tuple[Key, float]], call: Call, forward: Forward) -> Answer:
        if any(self._writes.is_hot(key) for key, _ in taken):
            return HOT_ITEM.answer(call)
        for key, units in taken:
            self._writes.take(key, units)
        return await forward(call)

    async def _batch_write(self, call: Call, forward: Forward) -> Answer:
        writes = [(table, write) for table, some in call.parameters["RequestItems"].items() for write in some]
        cool, hot = [], []
        for table, write in writes:
            request = next(iter(write.values()))
            key = self._key(table, request.get("Key") or request.get("Item", {}))
            if self._writes.is_hot(key):
                hot.append((table, write))
            else:
                self._writes.take(key, write_units(request))
                cool.append((table, write))
        if not cool:
            return HOT_ITEM.answer(call)
        answer = await forward(call.with_parameters(RequestItems=by_table(cool)))
        return with_unprocessed(answer, "UnprocessedItems", by_table(hot))

    async def _batch_get(self, call: Call, forward: Forward) -> Answer:
        requests: Mapping[str, Any] = call.parameters["RequestItems"]
        keys = [(table, key) for table, request in requests.items() for key in request["Keys"]]
        hot = [(table, key) for table, key in keys if self._reads.is_hot(self._key(table, key))]
        cool = [entry for entry in keys if entry not in hot]
        if not cool:
            return HOT_ITEM.answer(call)
        answer = await forward(call.with_parameters(RequestItems=with_keys(requests, cool)))
        if answer.is_success:
            self._take_reads(requests, cool, answer.document().get("Responses", {}))
        return with_unprocessed(answer, "UnprocessedKeys", with_keys(requests, hot))

    def _take_reads(
        self, requests: Mapping[str, Any], keys: Iterable[tuple[str, Any]], found: Mapping[str, Sequence[Any]]
    ) -> None:
        items = {self._key(table, item): item for table, some in found.items() for item in some}
        for table, key in keys:
            identity = self._key(table, key)
            self._reads.take(identity, read_units(items.get(identity), requests[table].get("ConsistentRead")))

    def _key(self, table: str, item: Mapping[str, Any]) -> Key:
        names = self._key_names(table)
        return table, json.dumps({name: item.get(name) for name in names}, sort_keys=True)


def read_units(item: Mapping[str, Any] | None, is_consistent: object) -> float:
    """Return the units that a read of the item takes; an absent item takes those of the smallest."""
    blocks = max(1, math.ceil(size_of(item or {}) / READ_BLOCK))
    return blocks if is_consistent else blocks / 2


def write_units(request: Mapping[str, Any]) -> float:
    """Return the units of a write: those of the item, or of the values that an update writes."""
    written = request.get("Item") or request.get("ExpressionAttributeValues") or {}
    return max(1, math.ceil(size_of(written) / WRITE_BLOCK))


def size_of(value: Any) -> int:  # noqa: ANN401 - any value of an item
    """Return the size of a value of DynamoDB's JSON in bytes: names and values in UTF-8, without the types' names."""
    if isinstance(value, Mapping):
        return sum(len(name.encode()) + size_of(inner) for name, inner in value.items())
    if isinstance(value, list):
        return sum(map(size_of, value))
    return len(value.encode()) if isinstance(value, str) else 1
