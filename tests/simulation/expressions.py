"""DynamoDB's expressions, compiled to functions of an item and of the placeholders' values."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any

Item = dict[str, Any]
Values = Mapping[str, Any]
Names = Mapping[str, str]
Test = Callable[[Item, Names, Values], bool]
Operand = Callable[[Item, Names, Values], Any]
Path = tuple[str | int, ...]
Change = Callable[[Item, Item, Names, Values], None]

ABSENT = object()
_TOKENS = re.compile(r"\s*(<>|<=|>=|[-+=<>(),.\[\]]|[#:]?\w+)")
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


class InvalidExpression(Exception):
    """Raised for an expression that is not understood."""


class _Reader:
    """The tokens of an expression."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, position = text, [], 0
        text = text.rstrip()
        while position < len(text):
            match = _TOKENS.match(text, position)
            if match is None:
                raise InvalidExpression(f"{text!r} at {position}")
            self.tokens.append(match.group(1))
            position = match.end()
        self.place = 0

    def peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.place += 1
        return token

    def is_next(self, *words: str) -> bool:
        if self.peek().upper() in words:
            self.place += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.is_next(word):
            raise InvalidExpression(f"{self.text!r}: expected {word}, found {self.peek()!r}")


# Paths and operands.


def _path(reader: _Reader) -> Path:
    parts: list[str | int] = [reader.next()]
    while True:
        if reader.is_next("."):
            parts.append(reader.next())
        elif reader.is_next("["):
            parts.append(int(reader.next()))
            reader.expect("]")
        else:
            return tuple(parts)


def _named(path: Path, names: Names) -> Path:
    if len(path) == 1:
        return (names.get(path[0], path[0]),)  # type: ignore[call-overload, return-value]
    return tuple(names[part] if isinstance(part, str) and part.startswith("#") else part for part in path)


def value_at(item: Any, path: Path) -> Any:
    for part in path:
        if isinstance(part, int):
            if not isinstance(item, list) or part >= len(item):
                return ABSENT
        elif not isinstance(item, dict) or part not in item:
            return ABSENT
        item = item[part]
    return item


def _operand(reader: _Reader) -> Operand:
    token = reader.peek()
    if token.startswith(":"):
        reader.next()
        return lambda _item, _names, values: values[token]
    if token == "size":
        reader.next()
        reader.expect("(")
        inner = _operand(reader)
        reader.expect(")")
        return lambda item, names, values: _size(inner(item, names, values))
    path = _path(reader)
    return lambda item, names, _values: value_at(item, _named(path, names))


def _size(value: Any) -> Any:
    return ABSENT if value is ABSENT else Decimal(len(value))


def is_equal(one: Any, other: Any) -> bool:
    return one is not ABSENT and other is not ABSENT and kind_of(one) == kind_of(other) and bool(one == other)


_KINDS = {str: "S", Decimal: "N", bytes: "B", bool: "BOOL", list: "L", dict: "M", type(None): "NULL"}


def kind_of(value: Any) -> str:
    return _KINDS.get(type(value), "SET")


# Conditions.


@cache
def condition(text: str) -> Test:
    """Return the test of a condition."""
    reader = _Reader(text)
    test = _either(reader)
    if reader.peek():
        raise InvalidExpression(f"{text!r}: {reader.peek()!r} is too much")
    return test


def _either(reader: _Reader) -> Test:
    left = _both(reader)
    while reader.is_next("OR"):
        left = _or(left, _both(reader))
    return left


def _or(left: Test, right: Test) -> Test:
    return lambda item, names, values: left(item, names, values) or right(item, names, values)


def _both(reader: _Reader) -> Test:
    left = _not(reader)
    while reader.is_next("AND"):
        left = _and(left, _not(reader))
    return left


def _and(left: Test, right: Test) -> Test:
    return lambda item, names, values: left(item, names, values) and right(item, names, values)


def _not(reader: _Reader) -> Test:
    if reader.is_next("NOT"):
        test = _not(reader)
        return lambda item, names, values: not test(item, names, values)
    if reader.is_next("("):
        test = _either(reader)
        reader.expect(")")
        return test
    return _single(reader)


def _single(reader: _Reader) -> Test:
    if reader.peek() in _FUNCTIONS:
        return _function(reader)
    left = _operand(reader)
    if reader.is_next("BETWEEN"):
        low = _operand(reader)
        reader.expect("AND")
        high = _operand(reader)
        return _and(_compared(left, ">=", low), _compared(left, "<=", high))
    if reader.is_next("IN"):
        chosen = _arguments(reader)
        return lambda item, names, values: any(
            is_equal(left(item, names, values), one(item, names, values)) for one in chosen
        )
    return _compared(left, reader.next(), _operand(reader))


def _arguments(reader: _Reader) -> list[Operand]:
    reader.expect("(")
    found = [_operand(reader)]
    while reader.is_next(","):
        found.append(_operand(reader))
    reader.expect(")")
    return found


def _compared(left: Operand, sign: str, right: Operand) -> Test:
    if sign == "=":
        return lambda item, names, values: is_equal(left(item, names, values), right(item, names, values))
    if sign == "<>":
        return lambda item, names, values: not is_equal(left(item, names, values), right(item, names, values))
    if sign not in _COMPARISONS:
        raise InvalidExpression(f"{sign!r} is no comparison")
    holds = _COMPARISONS[sign]

    def test(item: Item, names: Names, values: Values) -> bool:
        one, other = left(item, names, values), right(item, names, values)
        return one is not ABSENT and other is not ABSENT and kind_of(one) == kind_of(other) and holds(one, other)

    return test


def _begins(value: Any, start: Any) -> bool:
    return isinstance(value, str | bytes) and value.startswith(start)


def _contains(value: Any, part: Any) -> bool:
    return value is not ABSENT and isinstance(value, str | bytes | list | set | frozenset) and part in value


_FUNCTIONS: Mapping[str, Callable[..., bool]] = {
    "attribute_exists": lambda value: value is not ABSENT,
    "attribute_not_exists": lambda value: value is ABSENT,
    "begins_with": _begins,
    "contains": _contains,
}


def _function(reader: _Reader) -> Test:
    holds, arguments = _FUNCTIONS[reader.next()], _arguments(reader)
    return lambda item, names, values: holds(*(one(item, names, values) for one in arguments))


# Updates.


@cache
def update(text: str) -> tuple[Change, ...]:
    """Return the changes of an update; each writes a new item, and reads the old one."""
    reader, changes = _Reader(text), []
    while reader.peek():
        clause = _CLAUSES[reader.next().upper()]
        changes.append(clause(reader))
        while reader.is_next(","):
            changes.append(clause(reader))
    return tuple(changes)


def _set(reader: _Reader) -> Change:
    path = _path(reader)
    reader.expect("=")
    value = _sum(reader)
    return lambda old, new, names, values: _put(new, _named(path, names), value(old, names, values))


def _sum(reader: _Reader) -> Operand:
    left = _set_operand(reader)
    if reader.is_next("+"):
        right = _set_operand(reader)
        return lambda item, names, values: left(item, names, values) + right(item, names, values)
    if reader.is_next("-"):
        right = _set_operand(reader)
        return lambda item, names, values: left(item, names, values) - right(item, names, values)
    return left


def _set_operand(reader: _Reader) -> Operand:
    if reader.is_next("IF_NOT_EXISTS"):
        known, otherwise = _pair(reader)

        def chosen(item: Item, names: Names, values: Values) -> Any:
            found = known(item, names, values)
            return otherwise(item, names, values) if found is ABSENT else found

        return chosen
    if reader.is_next("LIST_APPEND"):
        first, second = _pair(reader)
        return lambda item, names, values: first(item, names, values) + second(item, names, values)
    return _operand(reader)


def _pair(reader: _Reader) -> tuple[Operand, Operand]:
    reader.expect("(")
    first = _set_operand(reader)
    reader.expect(",")
    second = _set_operand(reader)
    reader.expect(")")
    return first, second


def _remove(reader: _Reader) -> Change:
    path = _path(reader)

    def change(_old: Item, new: Item, names: Names, _values: Values) -> None:
        named = _named(path, names)
        owner = _owner(new, named)
        if isinstance(owner, dict):
            owner.pop(named[-1], None)

    return change


def _add(reader: _Reader) -> Change:
    path, amount = _path(reader), _operand(reader)

    def change(old: Item, new: Item, names: Names, values: Values) -> None:
        named, added = _named(path, names), amount(old, names, values)
        found = value_at(old, named)
        if isinstance(added, set | frozenset):
            _put(new, named, (frozenset() if found is ABSENT else found) | added)
        else:
            _put(new, named, (Decimal(0) if found is ABSENT else found) + added)

    return change


def _delete(reader: _Reader) -> Change:
    path, removed = _path(reader), _operand(reader)

    def change(old: Item, new: Item, names: Names, values: Values) -> None:
        named = _named(path, names)
        found = value_at(old, named)
        if found is ABSENT:
            return
        left = found - removed(old, names, values)
        if left:
            _put(new, named, left)
        else:
            del _owner(new, named)[named[-1]]

    return change


def _put(item: Item, path: Path, value: Any) -> None:
    if value is ABSENT:
        raise InvalidExpression("the provided expression refers to an attribute that does not exist in the item")
    owner = _owner(item, path)
    if owner is ABSENT:
        raise InvalidExpression("the document path provided in the update expression is invalid for update")
    owner[path[-1]] = value


def _owner(item: Any, path: Path) -> Any:
    """Return the map or list in a new item that has the end of a path; those on the way become the item's own."""
    for part in path[:-1]:
        found = value_at(item, (part,))
        if found is ABSENT:
            return ABSENT
        item[part] = found.copy()
        item = item[part]
    return item


_CLAUSES: Mapping[str, Callable[[_Reader], Change]] = {"SET": _set, "REMOVE": _remove, "ADD": _add, "DELETE": _delete}


@cache
def projection(text: str) -> tuple[Path, ...]:
    """Return the paths of a projection."""
    reader = _Reader(text)
    paths = [_path(reader)]
    while reader.is_next(","):
        paths.append(_path(reader))
    return tuple(paths)


def projected(item: Item, text: str, names: Names) -> Item:
    """Return the attributes of a projection; only those at the top level."""
    named = [_named(path, names) for path in projection(text)]
    return {str(path[0]): item[path[0]] for path in named if path[0] in item}
