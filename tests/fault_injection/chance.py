"""Seeded random numbers: the n-th number of a rule and a resource depends on the seed alone."""

import hashlib
import threading
from collections import Counter
from typing import TypeVar

BITS = 64
Item = TypeVar("Item")


class Chance:
    """Random numbers that are counted by rule and resource; used by many threads."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._drawn: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def draw(self, rule: str, resource: str) -> float:
        """Return the next number for this rule and resource, at least 0 and less than 1."""
        with self._lock:
            count = self._drawn[rule, resource]
            self._drawn[rule, resource] += 1
        text = f"{self._seed}\n{rule}\n{resource}\n{count}"
        digest = hashlib.sha256(text.encode()).digest()
        number = int.from_bytes(digest[: BITS // 8], "big")
        return number / float(2**BITS)

    def is_one_in(self, odds: int, rule: str, resource: str) -> bool:
        """Return whether the next draw is the one in `odds`."""
        return self.draw(rule, resource) < 1 / odds

    def pick(self, count: int, rule: str, resource: str) -> int:
        """Return one of the numbers from 0 to `count` - 1."""
        return int(self.draw(rule, resource) * count)

    def shuffled(self, items: list[Item], rule: str, resource: str) -> list[Item]:
        """Return the items in another order (Fisher and Yates)."""
        shuffled = list(items)
        for last in range(len(shuffled) - 1, 0, -1):
            other = self.pick(last + 1, rule, resource)
            shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
        return shuffled
