"""Subscriptions of Arvados' protocol: the two filters that its server evaluates; it ignores all others.

Source: arvados/arvados, services/ws/session_v0.go, `v0subscribe.prepare`.
"""

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from signalbox.live.arvados.timestamps import nanoseconds
from signalbox.live.wamp.messages import SubscriptionId

ELEMENTS = 3  # of a filter; further ones are dropped, and missing ones are null
OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}


class Filterable(Protocol):
    """The properties of a log row that filters compare; `created_at` is in nanoseconds."""

    @property
    def event_type(self) -> str:
        """Return the type of the event."""

    @property
    def created_at(self) -> int:
        """Return the time of the row's creation."""


Condition = Callable[[Filterable], bool]


@dataclass(frozen=True, slots=True)
class LogSubscription:
    """A subscription to the log rows that pass all `filters`, a canonical JSON text or None for no filters.

    `after` is the log id after which it requests past rows; None requests none. `subscription` is unique in a session.
    """

    subscription: SubscriptionId
    filters: str | None = None
    after: int | None = None

    def matches(self, row: Filterable) -> bool:
        """Return whether a row passes the filters."""
        return all(condition(row) for condition in conditions(self.filters))


def canonical(filters: object) -> str | None:
    """Return a text that is equal for filters that Go's `reflect.DeepEqual` takes for equal, or None for null.

    Every number is a 64-bit float, as in Go. Raises `TypeError` or `ValueError` for what Go cannot store
    as a list of filters.
    """
    if filters is None:
        return None
    if not isinstance(filters, list):
        raise TypeError("filters: expected a list")
    return json.dumps(list(map(_three, filters)), sort_keys=True, separators=(",", ":"), allow_nan=False)


@lru_cache(maxsize=100)  # they are evaluated for every row, and the largest of a session take 1 MB
def conditions(filters: str | None) -> tuple[Condition, ...]:
    """Return the conditions of canonical filters that are evaluated."""
    return tuple(_conditions(json.loads(filters or "[]")))


def _three(value: object) -> list[object]:
    if value is None:
        return [None] * ELEMENTS
    if not isinstance(value, list):
        raise TypeError("filters: expected a list of lists")
    return [_with_floats(element) for element in (*value, *([None] * ELEMENTS))[:ELEMENTS]]


def _with_floats(value: object) -> object:
    if isinstance(value, list):
        return list(map(_with_floats, value))
    if isinstance(value, dict):
        return {name: _with_floats(element) for name, element in value.items()}
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError("filters: a number is too large for a 64-bit float") from error


def _conditions(filters: list[list[object]]) -> Iterator[Condition]:
    for column, operation, operand in filters:
        if column == "event_type" and operation == "in" and isinstance(operand, list):
            yield _one_of(frozenset(one for one in operand if isinstance(one, str)))
        elif column == "created_at" and isinstance(operation, str) and isinstance(operand, str):
            moment = nanoseconds(operand)
            if moment is not None and operation in OPERATORS:
                yield _created(OPERATORS[operation], moment)


def _one_of(event_types: frozenset[str]) -> Condition:
    return lambda row: row.event_type in event_types


def _created(compare: Callable[[int, int], bool], moment: int) -> Condition:
    return lambda row: compare(row.created_at, moment)
