"""Seeded dice: the n-th throw for a rule and a resource depends on nothing but the seed."""

import hashlib
import threading
from collections import Counter
from typing import TypeVar

BITS = 64
Item = TypeVar("Item")


class Dice:
    """Dice that count their throws for each rule and resource; used by many threads."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._thrown: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def throw(self, rule: str, resource: str) -> float:
        """Return the next number for this rule and resource, at least 0 and less than 1."""
        with self._lock:
            count = self._thrown[rule, resource]
            self._thrown[rule, resource] += 1
        text = f"{self._seed}\n{rule}\n{resource}\n{count}"
        digest = hashlib.sha256(text.encode()).digest()
        number = int.from_bytes(digest[: BITS // 8], "big")
        return number / float(2**BITS)

    def is_one_in(self, odds: int, rule: str, resource: str) -> bool:
        """Return whether the next throw is the one in `odds`."""
        return self.throw(rule, resource) < 1 / odds

    def pick(self, count: int, rule: str, resource: str) -> int:
        """Return one of the numbers from 0 to `count` - 1."""
        return int(self.throw(rule, resource) * count)

    def shuffled(self, items: list[Item], rule: str, resource: str) -> list[Item]:
        """Return the items in another order (Fisher and Yates)."""
        shuffled = list(items)
        for last in range(len(shuffled) - 1, 0, -1):
            other = self.pick(last + 1, rule, resource)
            shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
        return shuffled
