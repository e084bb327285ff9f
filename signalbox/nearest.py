"""The nearest of the known names to a mistyped one."""

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN = 10


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the hint of an error about an unknown name: the nearest known one, or all of them if they are few.

    The text begins with a separator; it is empty if no name is near and there are none, or more than ten, and if the
    name itself is known, as of an exchange on record whose queue is gone.
    """
    names = sorted(set(known))
    if name in names:
        return ""
    # difflib compares case by case; a name that differs in case alone is the nearest.
    folded = {each.casefold(): each for each in names}
    near = get_close_matches(name.casefold(), folded, n=1)
    if near:
        return f"; did you mean {folded[near[0]]!r}?"
    if 0 < len(names) <= SHOWN:
        return f"; there {'is' if len(names) == 1 else 'are'} {', '.join(map(repr, names))}"
    return ""
