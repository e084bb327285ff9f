"""Sets of log ids as ranges: the ids of a catch-up are mostly consecutive."""

from bisect import bisect_right

IdRanges = tuple[tuple[int, int], ...]
"""Disjoint ranges in ascending order, each with its first and its last id."""


def contains(ranges: IdRanges, number: int) -> bool:
    """Return whether a set has an id."""
    position = bisect_right(ranges, (number, number))
    is_first = position < len(ranges) and ranges[position][0] == number
    return is_first or (position > 0 and number <= ranges[position - 1][1])


def with_id(ranges: IdRanges, number: int) -> IdRanges:
    """Return a set with an id added."""
    if contains(ranges, number):
        return ranges
    position = bisect_right(ranges, (number, number))
    before, after = ranges[:position], ranges[position:]
    first, last = number, number
    if before and before[-1][1] == number - 1:
        before, first = before[:-1], before[-1][0]
    if after and after[0][0] == number + 1:
        after, last = after[1:], after[0][1]
    return (*before, (first, last), *after)
