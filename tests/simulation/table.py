"""A table of simulated DynamoDB: its items, and what they were some moments ago."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tests.simulation.expressions import Item

# A read that is not consistent may be this old, and one of an index as old as this.
STALE_SECONDS, STALE_INDEX_SECONDS = 0.5, 3.0


@dataclass(frozen=True)
class Index:
    """A global secondary index: its key, and the attributes that it has, or None for all."""

    partition: str
    sort: str
    listed: tuple[str, ...] | None = None


@dataclass(eq=False)
class Table:
    """The items of a table by partition and sort key, and the changes of the last seconds."""

    name: str
    partition: str
    sort: str | None = None
    indexes: Mapping[str, Index] = field(default_factory=dict)
    items: dict[Any, dict[Any, Item]] = field(default_factory=dict)
    order: dict[Any, list[Any]] = field(default_factory=dict)
    changes: deque[tuple[float, Any, Any, Item | None]] = field(default_factory=deque)

    def key(self, item: Mapping[str, Any]) -> tuple[Any, Any]:
        return item[self.partition], item[self.sort] if self.sort else None

    def get(self, key: tuple[Any, Any]) -> Item | None:
        return self.items.get(key[0], {}).get(key[1])

    def put(self, key: tuple[Any, Any], item: Item | None, *, now: float) -> None:
        """Store an item, or delete it for None."""
        partition, sort = key
        known = self.items.setdefault(partition, {})
        self.changes.append((now, partition, sort, known.get(sort)))
        while self.changes[0][0] < now - STALE_INDEX_SECONDS:
            self.changes.popleft()
        if item is None:
            if known.pop(sort, None) is not None and self.sort:
                order = self.order[partition]
                del order[bisect_left(order, sort)]
            return
        if sort not in known and self.sort:
            insort(self.order.setdefault(partition, []), sort)
        known[sort] = item

    def before(self, moment: float) -> dict[tuple[Any, Any], Item | None]:
        """Return the items of a moment by their keys, as far as they have changed since."""
        found: dict[tuple[Any, Any], Item | None] = {}
        for at, partition, sort, item in reversed(self.changes):
            if at <= moment:
                break
            found[partition, sort] = item
        return found

    def in_partition(self, partition: Any, moment: float | None, low: Any = None) -> list[Item]:
        """Return the items of a partition by their sort keys, as they are or were at a moment, from `low` on."""
        known = self.items.get(partition, {})
        changed = {} if moment is None else self.before(moment)
        if not any(key[0] == partition for key in changed):
            order: Sequence[Any] = self.order.get(partition, tuple(known))
            begin = 0 if low is None else bisect_left(order, low)
            return [known[sort] for sort in islice(order, begin, None)]
        then = dict(known)
        for (owner, sort), item in changed.items():
            if owner == partition:
                if item is None:
                    then.pop(sort, None)
                else:
                    then[sort] = item
        return [then[sort] for sort in sorted(then)] if self.sort else list(then.values())

    def everything(self, moment: float | None) -> list[Item]:
        found = {(pk, sk): item for pk, known in self.items.items() for sk, item in known.items()}
        found |= self.before(moment) if moment is not None else {}  # type: ignore[arg-type]
        return [found[key] for key in sorted(found, key=str) if found[key] is not None]
