"""Medians and percentiles."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of a series of measurements, in its unit."""

    count: int
    median: float
    p95: float
    maximum: float


def summary(values: Sequence[float]) -> Summary | None:
    """Return the statistics of a series, or None if it is empty; p95 is a measured value (nearest rank)."""
    if not values:
        return None
    ordered = sorted(values)
    p95 = ordered[math.ceil(0.95 * len(ordered)) - 1]
    return Summary(len(ordered), statistics.median(ordered), p95, ordered[-1])


def ratio(ours: float, theirs: float) -> str:
    """Return `ours` as a multiple of `theirs`, as text."""
    return f"{ours / theirs:.2f}" if theirs else "-"
