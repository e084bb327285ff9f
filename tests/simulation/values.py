"""The values of items: plain ones, and those that the client of botocore sends and returns."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

Item = dict[str, Any]


def copied(value: Any) -> Any:
    """Return a value whose lists and maps are new, with numbers as `Decimal`."""
    if isinstance(value, str | bytes | bool | Decimal | None):
        return str(value) if type(value) is not str and isinstance(value, str) else value
    if isinstance(value, int):
        return Decimal(value)
    if isinstance(value, Mapping):
        return {name: copied(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [copied(one) for one in value]
    if isinstance(value, set | frozenset):
        return frozenset(copied(one) for one in value)
    if isinstance(value, bytearray):
        return bytes(value)
    raise TypeError(f"Unsupported type {type(value)} for value {value!r}")


def from_typed(value: Mapping[str, Any]) -> Any:
    """Return the plain value of one with DynamoDB's type."""
    ((kind, found),) = value.items()
    if kind == "N":
        return Decimal(found)
    if kind == "M":
        return {name: from_typed(one) for name, one in found.items()}
    if kind == "L":
        return [from_typed(one) for one in found]
    if kind in ("SS", "BS"):
        return frozenset(found)
    if kind == "NS":
        return frozenset(map(Decimal, found))
    return None if kind == "NULL" else found


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
