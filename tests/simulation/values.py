"""The values of items: plain ones, and those that the client of botocore sends and returns."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

Item = dict[str, Any]


def from_typed(value: Mapping[str, Any]) -> Any:
    """Return the plain value of one with DynamoDB's type: a new one, since stored values do not change."""
    ((kind, found),) = value.items()
    return _PLAIN[kind](found)


_PLAIN: Mapping[str, Callable[[Any], Any]] = {
    "S": str,  # also of a member of an enum
    "N": Decimal,
    "B": bytes,
    "BOOL": bool,
    "NULL": lambda _: None,
    "M": lambda found: {name: from_typed(one) for name, one in found.items()},
    "L": lambda found: list(map(from_typed, found)),
    "SS": frozenset,
    "BS": frozenset,
    "NS": lambda found: frozenset(map(Decimal, found)),
}
_SCALARS = {str: "S", bool: "BOOL", bytes: "B"}


def to_typed(value: Any) -> dict[str, Any]:
    """Return a plain value with DynamoDB's type."""
    kind = _SCALARS.get(type(value))
    if kind is not None:
        return {kind: value}
    if isinstance(value, Decimal):
        return {"N": str(value)}
    if value is None:
        return {"NULL": True}
    if isinstance(value, dict):
        return {"M": {name: to_typed(one) for name, one in value.items()}}
    if isinstance(value, list):
        return {"L": [to_typed(one) for one in value]}
    kind = {str: "SS", bytes: "BS"}.get(type(next(iter(value))), "NS")
    return {kind: sorted(map(str, value)) if kind == "NS" else sorted(value)}
