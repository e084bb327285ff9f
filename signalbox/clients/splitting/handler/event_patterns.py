"""Filter criteria of event source mappings: which messages Lambda gives to a function, and which it deletes unseen."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbox.errors import RejectedError

ABSENT = object()
OR = "$or"
COMPARISONS = {
    "=": lambda one, other: one == other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


class InvalidEventPattern(RejectedError):
    """Raised when a filter pattern has a rule that Lambda's filter syntax does not have."""


@dataclass(frozen=True, slots=True)
class FilterCriteria:
    """The patterns of a mapping; a record passes if one of them matches, or if there is none.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-eventfiltering.html
    """

    patterns: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def parse(cls, criteria: Mapping[str, Any]) -> "FilterCriteria":
        """Return the criteria in `FilterCriteria` of Lambda's API. Raises `InvalidEventPattern`."""
        return cls(tuple(_parsed(one.get("Pattern", "{}")) for one in criteria.get("Filters") or ()))

    def accept(self, record: Mapping[str, Any]) -> bool:
        """Return whether a record of Lambda's event passes."""
        return not self.patterns or any(_matches_record(pattern, record) for pattern in self.patterns)


def _parsed(text: object) -> Mapping[str, Any]:
    try:
        pattern = json.loads(text) if isinstance(text, str) else text
    except ValueError as error:
        raise InvalidEventPattern(f"filter pattern is not JSON: {text!r:.200}") from error
    if not isinstance(pattern, Mapping):
        raise InvalidEventPattern(f"filter pattern is not an object: {text!r:.200}")
    _check(pattern)
    return pattern


def _check(pattern: Mapping[str, Any]) -> None:
    for key, rules in pattern.items():
        if isinstance(rules, Mapping):
            _check(rules)
        elif not isinstance(rules, Sequence) or isinstance(rules, str):
            raise InvalidEventPattern(f"the rules of {key!r} are not a list")
        elif key == OR:
            for one in rules:
                _check(one)
        else:
            for rule in rules:
                _is_met(rule, ABSENT)  # raises for an unknown rule


def _matches_record(pattern: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    if "body" not in pattern:
        return _matches(pattern, record)
    body = _json(record["body"])
    expects_text = not isinstance(pattern["body"], Mapping)
    # A body of the other form than its pattern never matches.
    if expects_text != (body is ABSENT):
        return False
    return _matches(pattern, record if expects_text else {**record, "body": body})


def _json(body: str) -> object:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return ABSENT
    return value if isinstance(value, dict) else ABSENT


def _matches(pattern: Mapping[str, Any], value: object) -> bool:
    return all(_field_matches(key, rules, value) for key, rules in pattern.items())


def _field_matches(key: str, rules: Any, value: object) -> bool:  # noqa: ANN401 - parsed JSON
    if key == OR:
        return any(_matches(one, value) for one in rules)
    found = value.get(key, ABSENT) if isinstance(value, Mapping) else ABSENT
    if isinstance(rules, Mapping):
        return _matches(rules, found)
    candidates = found if isinstance(found, list) else [found]
    return any(_is_met(rule, one) for rule in rules for one in candidates)


def _is_met(rule: Any, value: object) -> bool:  # noqa: ANN401 - parsed JSON
    if not isinstance(rule, Mapping):
        return (type(rule) is type(value) and rule == value) or _equal_numbers(rule, value)
    (name, wanted), *others = rule.items() or [("", None)]
    if others or name not in OPERATORS:
        raise InvalidEventPattern(f"filter rule {json.dumps(rule):.200} is not supported")
    return bool(OPERATORS[name](wanted, value))


def _equal_numbers(one: object, other: object) -> bool:
    return _is_number(one) and _is_number(other) and one == other


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _exists(wanted: object, value: object) -> bool:
    # Only a leaf exists: an object has no value of its own.
    return (value is not ABSENT and not isinstance(value, Mapping)) == bool(wanted)


def _prefix(wanted: Any, value: object) -> bool:  # noqa: ANN401 - parsed JSON
    if isinstance(wanted, Mapping):
        return isinstance(value, str) and value.lower().startswith(str(wanted.get("equals-ignore-case", "")).lower())
    return isinstance(value, str) and value.startswith(wanted)


def _suffix(wanted: Any, value: object) -> bool:  # noqa: ANN401 - parsed JSON
    if isinstance(wanted, Mapping):
        return isinstance(value, str) and value.lower().endswith(str(wanted.get("equals-ignore-case", "")).lower())
    return isinstance(value, str) and value.endswith(wanted)


def _ignore_case(wanted: Any, value: object) -> bool:  # noqa: ANN401 - parsed JSON
    return isinstance(value, str) and value.lower() == str(wanted).lower()


def _anything_but(wanted: Any, value: object) -> bool:  # noqa: ANN401 - parsed JSON
    if value is ABSENT:
        return False
    return not any(_is_met(one, value) for one in (wanted if isinstance(wanted, list) else [wanted]))


def _numeric(wanted: Any, value: object) -> bool:  # noqa: ANN401 - parsed JSON
    pairs = list(zip(wanted[::2], wanted[1::2], strict=False)) if isinstance(wanted, list) else []
    if not pairs or len(wanted) % 2 or not all(one in COMPARISONS and _is_number(limit) for one, limit in pairs):
        raise InvalidEventPattern(f"numeric filter rule {json.dumps(wanted):.200} is not supported")
    return _is_number(value) and all(COMPARISONS[operator](value, limit) for operator, limit in pairs)


OPERATORS = {
    "exists": _exists,
    "prefix": _prefix,
    "suffix": _suffix,
    "equals-ignore-case": _ignore_case,
    "anything-but": _anything_but,
    "numeric": _numeric,
}
