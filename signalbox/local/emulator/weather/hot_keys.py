"""Rule: the items of one partition key of DynamoDB take 3,000 read units and 1,000 write units a second."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from signalbox.local.emulator.weather.calls import Answer, Call, Clock, Forward
from signalbox.local.emulator.weather.errors import HOT_KEY
from signalbox.local.emulator.weather.partial_batches import by_table, with_keys, with_unprocessed
from signalbox.local.emulator.weather.rules import READ_UNITS, WRITE_UNITS

READ_BLOCK, WRITE_BLOCK = 4096, 1024  # bytes of a unit
TRANSACTION = 2  # units of a transaction for each of the others
EQUALITY = re.compile(r"(#?[\w.-]+)\s*=\s*(:\w+)")
Key = tuple[str, str]
"""Table or index, and the value of the partition key as canonical JSON."""


@dataclass(slots=True)
class Meter:
    """The units that the items of each partition key have taken in the current second."""

    clock: Clock
    limit: int
    second: int = -1
    taken: dict[Key, float] = field(default_factory=dict)

    def is_hot(self, key: Key) -> bool:
        """Return whether the items of the key take no more in this second."""
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


class HotKeys:
    """Refuses reads and writes of a partition key whose items took its units of the second.

    An index has partitions of its own. The writes of its copies are not counted.
    """

    def __init__(self, clock: Clock, partition_key: Callable[[str], str]) -> None:
        """`partition_key` returns the name of a table's partition key."""
        self._reads, self._writes = Meter(clock, READ_UNITS), Meter(clock, WRITE_UNITS)
        self._partition_key = partition_key

    async def answer(self, call: Call, forward: Forward) -> Answer:
        """Return the answer, or a refusal in the form of the operation."""
        operation = OPERATIONS.get(call.action) if call.service == "dynamodb" else None
        return await (forward(call) if operation is None else operation(self, call, forward))

    async def single(self, call: Call, forward: Forward) -> Answer:
        """Answer a call of one item."""
        table = call.parameters["TableName"]
        key = self._key(table, call.parameters.get("Key") or call.parameters.get("Item", {}))
        if call.action == "GetItem":
            return await self._read(key, call, forward, found=lambda document: document.get("Item"))
        return await self._written([(key, write_units(call.parameters))], call, forward)

    async def query(self, call: Call, forward: Forward) -> Answer:
        """Answer a query, whose items are read together: their sizes are added before they are rounded."""
        key = self._queried(call.parameters)
        return await self._read(key, call, forward, found=lambda document: document.get("Items"))

    async def _read(
        self, key: Key, call: Call, forward: Forward, *, found: Callable[[Mapping[str, Any]], object]
    ) -> Answer:
        if self._reads.is_hot(key):
            return HOT_KEY.answer(call)
        answer = await forward(call)
        if answer.is_success:
            units = read_units(found(answer.document()), call.parameters.get("ConsistentRead"))
            self._reads.take(key, units)
        return answer

    def _queried(self, parameters: Mapping[str, Any]) -> Key:
        """Return the key of a query: the equality with the partition key, or the only one of an index."""
        names, values = (parameters.get(f"ExpressionAttribute{kind}", {}) for kind in ("Names", "Values"))
        pairs = EQUALITY.findall(parameters.get("KeyConditionExpression", ""))
        equal = {names.get(name, name): values.get(value) for name, value in pairs}
        table, index = parameters["TableName"], parameters.get("IndexName")
        if index:
            return f"{table}/{index}", json.dumps(next(iter(equal.values()), None), sort_keys=True)
        return table, json.dumps(equal.get(self._partition_key(table)), sort_keys=True)

    async def transaction(self, call: Call, forward: Forward) -> Answer:
        """Answer a transaction, which takes twice the units."""
        actions = [action for entry in call.parameters["TransactItems"] for action in entry.values()]
        taken = [
            (self._key(action["TableName"], action.get("Key") or action.get("Item", {})), write_units(action))
            for action in actions
        ]
        return await self._written([(key, TRANSACTION * units) for key, units in taken], call, forward)

    async def _written(self, taken: Sequence[tuple[Key, float]], call: Call, forward: Forward) -> Answer:
        if any(self._writes.is_hot(key) for key, _ in taken):
            return HOT_KEY.answer(call)
        for key, units in taken:
            self._writes.take(key, units)
        return await forward(call)

    async def batch_write(self, call: Call, forward: Forward) -> Answer:
        """Answer a batch of writes; those of hot keys stay unprocessed."""
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
            return HOT_KEY.answer(call)
        answer = await forward(call.with_parameters(RequestItems=by_table(cool)))
        return with_unprocessed(answer, "UnprocessedItems", by_table(hot))

    async def batch_get(self, call: Call, forward: Forward) -> Answer:
        """Answer a batch of reads; the keys that are hot stay unread."""
        requests: Mapping[str, Any] = call.parameters["RequestItems"]
        keys = [(table, key) for table, request in requests.items() for key in request["Keys"]]
        hot = [(table, key) for table, key in keys if self._reads.is_hot(self._key(table, key))]
        cool = [entry for entry in keys if entry not in hot]
        if not cool:
            return HOT_KEY.answer(call)
        answer = await forward(call.with_parameters(RequestItems=with_keys(requests, cool)))
        if answer.is_success:
            self._take_reads(requests, cool, answer.document().get("Responses", {}))
        return with_unprocessed(answer, "UnprocessedKeys", with_keys(requests, hot))

    def _take_reads(
        self, requests: Mapping[str, Any], keys: Iterable[tuple[str, Any]], found: Mapping[str, Sequence[Any]]
    ) -> None:
        for table, key in keys:
            items = (one for one in found.get(table, ()) if all(one.get(name) == key[name] for name in key))
            units = read_units(next(items, None), requests[table].get("ConsistentRead"))
            self._reads.take(self._key(table, key), units)

    def _key(self, table: str, item: Mapping[str, Any]) -> Key:
        return table, json.dumps(item.get(self._partition_key(table)), sort_keys=True)


OPERATIONS = {
    **dict.fromkeys(("GetItem", "PutItem", "UpdateItem", "DeleteItem"), HotKeys.single),
    "Query": HotKeys.query,
    "BatchGetItem": HotKeys.batch_get,
    "BatchWriteItem": HotKeys.batch_write,
    "TransactWriteItems": HotKeys.transaction,
}


def read_units(found: object, is_consistent: object) -> float:
    """Return the units that a read of an item, or of a page of items, takes; nothing takes those of the smallest."""
    blocks = max(1, math.ceil(size_of(found or {}) / READ_BLOCK))
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
