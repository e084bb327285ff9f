"""Field managers of a workload: who loses a variable to the switch, and how each gets it back.

`managedFields` are sets of paths in the format FieldsV1: a node's keys are `f:FIELD`, `k:KEYS` of a list item, and `.`
for the node itself (https://pkg.go.dev/sigs.k8s.io/structured-merge-diff/v6/fieldpath#Set).
"""

import json
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FIELD_MANAGER = "signalbox"
CONTAINERS = ("f:spec", "f:template", "f:spec", "f:containers")
SELF, NAME, VALUE = ".", "f:name", "f:value"
APPLY = "Apply"
# These stay with their managers: the switch does not change them.
UNCHANGED = frozenset({SELF, NAME})
OWN_FIELDS = ("depth", "fields", "keeps_entry")
IDENTITY = ("manager", "operation", "apiVersion", "subresource")

Fields = Mapping[str, Any]  # a node of FieldsV1
Entry = Mapping[str, Any]  # an element of `managedFields`


@dataclass(frozen=True, slots=True)
class FieldOwnership:
    """The fields of a variable that a manager has: `depth` keys of the variable's path, and the nodes below.

    `keeps_entry` is true for a manager that also has the entry itself, and does not lose it.
    """

    entry: Entry
    depth: int
    fields: Fields
    keeps_entry: bool

    def document(self) -> dict[str, object]:
        """Return the JSON form: the manager's entry without its fields, and what it has of the variable."""
        own = {name: getattr(self, name) for name in OWN_FIELDS}
        return {**_without_fields(self.entry), **own}

    @classmethod
    def of_document(cls, document: Mapping[str, Any]) -> "FieldOwnership":
        """Return the ownership in a document. One that others wrote raises any error of a wrong type."""
        entry = {name: value for name, value in document.items() if name not in OWN_FIELDS}
        depth, fields, keeps_entry = (document[name] for name in OWN_FIELDS)
        return cls(entry, operator.index(depth), _copied(fields), keeps_entry=bool(keeps_entry))


def owners(managed: Iterable[Entry], container: str, variable: str) -> Iterator[FieldOwnership]:
    """Yield the fields of a variable's value that other managers have, and lose when the value changes."""
    path = variable_path(container, variable)
    for entry in _of_others(managed):
        depth, node = _deepest(entry["fieldsV1"], path)
        if depth == len(path):
            lost = {name: fields for name, fields in node.items() if name not in UNCHANGED}
            if lost:
                yield FieldOwnership(entry, depth, lost, keeps_entry=not UNCHANGED.isdisjoint(node))
        elif not node and depth and path[depth - 1].startswith("f:"):
            yield FieldOwnership(entry, depth, {}, keeps_entry=False)  # an atomic list above, by a Rollout's definition


def is_given_up(managed: Iterable[Entry], before: Sequence[FieldOwnership], container: str, variable: str) -> bool:
    """Return whether the managers that had a variable's entry before the switch have removed it since."""
    path = variable_path(container, variable)
    depths = (_deepest(entry["fieldsV1"], path)[0] for entry in _of_others(managed))
    return any(one.keeps_entry for one in before) and all(depth < len(path) for depth in depths)


def is_managed(managed: Iterable[Entry]) -> bool:
    """Return whether Signalbox manages fields."""
    return any(entry.get("manager") == FIELD_MANAGER for entry in managed)


def returned(
    managed: Iterable[Entry], variables: Mapping[tuple[str, str], Sequence[FieldOwnership]]
) -> list[dict[str, object]]:
    """Return `managedFields` without Signalbox, with the given ownerships of variables, by container and name."""
    entries = {_identity(one): {**one, "fieldsV1": _copied(one["fieldsV1"])} for one in _of_others(managed)}
    for (container, variable), of_variable in variables.items():
        path = variable_path(container, variable)
        for ownership in of_variable:
            entry = entries.setdefault(
                _identity(ownership.entry), {"fieldsType": "FieldsV1", **ownership.entry, "fieldsV1": {}}
            )
            _at(entry["fieldsV1"], path[: ownership.depth]).update(_copied(ownership.fields))
    return list(entries.values())


def with_values(
    managed: Iterable[Entry], variables: Mapping[tuple[str, str], Sequence[FieldOwnership]]
) -> list[dict[str, object]]:
    """Return `managedFields` in which the managers that apply a variable have its literal value, instead of Signalbox.

    Their next apply, with the source of the value, then removes the literal one. An entry with both is not valid.
    """
    entries = [{**one, "fieldsV1": _copied(one.get("fieldsV1", {}))} for one in managed]
    for (container, variable), of_variable in variables.items():
        path = variable_path(container, variable)
        appliers = {_identity(one.entry) for one in of_variable if one.entry.get("operation") == APPLY}
        for entry in entries if appliers else ():
            if entry.get("manager") == FIELD_MANAGER:
                _without(entry["fieldsV1"], (*path, VALUE))
            elif _identity(entry) in appliers:
                _at(entry["fieldsV1"], path)[VALUE] = {}
    return entries


def variable_path(container: str, variable: str) -> tuple[str, ...]:
    """Return the path of a variable of a container."""
    return (*CONTAINERS, _item(container), "f:env", _item(variable))


def _item(name: str) -> str:
    return "k:" + json.dumps({"name": name}, separators=(",", ":"))


def _of_others(managed: Iterable[Entry]) -> Iterator[Entry]:
    return (one for one in managed if one.get("manager") != FIELD_MANAGER and "fieldsV1" in one)


def _deepest(node: Fields, path: Sequence[str]) -> tuple[int, Fields]:
    """Return how many keys of a path exist, and the last node."""
    depth = 0
    for depth, key in enumerate(path):
        if key not in node:
            return depth, node
        node = node[key]
    return depth + 1, node


def _at(node: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    for key in path:
        node = node.setdefault(key, {})
    return node


def _without(node: dict[str, Any], path: Sequence[str]) -> None:
    """Remove a path, and the nodes above it that become empty."""
    key, *rest = path
    if rest and key in node:
        _without(node[key], rest)
    if key in node and not (rest and node[key]):
        del node[key]


def _identity(entry: Entry) -> tuple[object, ...]:
    return tuple(entry.get(name, "") for name in IDENTITY)


def _without_fields(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in ("fieldsV1", "fieldsType")}


def _copied(node: Fields) -> dict[str, Any]:
    return {name: _copied(inner) for name, inner in node.items()}
