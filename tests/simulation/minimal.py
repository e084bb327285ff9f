"""Delta debugging: a small part of the faults of a run that still breaks it."""

from collections.abc import Callable, Sequence

Keys = tuple[str, ...]


def minimal(keys: Keys, fails: Callable[[Keys], bool]) -> Keys:
    """Return a part of the keys that still fails: halves, quarters and so on are left out while that fails.

    Source: A. Zeller, «Yesterday, my program worked. Today, it does not. Why?», 1999 (delta debugging).
    """
    parts = 2
    while len(keys) > 1:
        size = -(-len(keys) // parts)
        smaller = next(filter(fails, _without_a_part(keys, size)), None)
        if smaller is not None:
            keys, parts = smaller, max(parts - 1, 2)
        elif size == 1:
            break
        else:
            parts = min(parts * 2, len(keys))
    return keys


def _without_a_part(keys: Keys, size: int) -> Sequence[Keys]:
    return [keys[:start] + keys[start + size :] for start in range(0, len(keys), size)]
