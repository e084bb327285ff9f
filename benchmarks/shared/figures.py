"""Medians and percentiles."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """What is said of a series of measurements, in its unit."""

    count: int
    median: float
    p95: float
    maximum: float


def summary(values: Sequence[float]) -> Summary | None:
    """Return the figures of a series, or None of an empty one; p95 is a value that was seen (nearest rank)."""
    if not values:
        return None
    ordered = sorted(values)
    p95 = ordered[math.ceil(0.95 * len(ordered)) - 1]
    return Summary(len(ordered), statistics.median(ordered), p95, ordered[-1])


def ratio(ours: float, theirs: float) -> str:
    """Return how many times as much ours is."""
    return f"{ours / theirs:.2f}" if theirs else "-"
