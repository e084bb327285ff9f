"""The fields of simulated Kubernetes objects: their managers, apply on the server, and the three kinds of patches.

A path has the keys of FieldsV1: `f:FIELD`, `k:KEYS` of an item of a list by name, and `.` for the item itself.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

Document = dict[str, Any]
Path = tuple[str, ...]
Manager = tuple[str, str]  # its name, and `Apply` or `Update`
MANAGED, UNOWNED = "managedFields", ("apiVersion", "kind", "status")
OWNED_METADATA = ("annotations", "labels")


class Conflict(Exception):
    """Raised when an apply without force changes fields of other managers: `found` has these, and the paths."""

    def __init__(self, found: Sequence[tuple[str, Path]]) -> None:
        super().__init__(f"{len(found)} conflicts")
        self.found = found


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the paths of a value that managers own, with the values there."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, (*path, f"f:{name}"))
    elif _has_names(value):
        for one in value:
            item = (*path, "k:" + json.dumps({"name": one["name"]}, separators=(",", ":")))
            yield (*item, "."), None
            yield from leaves(one, item)
    else:
        yield path, value


def owned(document: Document) -> dict[Path, Any]:
    """Return the fields of an object that managers own."""
    found = {name: value for name, value in document.items() if name not in UNOWNED}
    metadata = {name: document["metadata"][name] for name in OWNED_METADATA if document["metadata"].get(name)}
    found["metadata"] = metadata
    return dict(leaves({name: value for name, value in found.items() if value}))


def applied(old: Document, document: Document, manager: str, *, now: str, force: bool) -> Document:
    """Return an object after an apply on the server. Raises `Conflict`."""
    wanted, live, entries, me = owned(document), owned(old), _entries(old), (manager, "Apply")
    changed = {path for path, value in wanted.items() if path in live and live[path] != value}
    others = {who: _paths(entry["fieldsV1"]) for who, entry in entries.items() if who != me}
    lost = [(who[0], path) for who, paths in others.items() for path in sorted(paths & changed)]
    if lost and not force:
        raise Conflict(lost)
    new = deepcopy(old)
    for path, value in wanted.items():
        _put(new, path, value)
    kept = {path[:n] for paths in others.values() for path in paths - changed for n in range(len(path) + 1)}
    before = _paths(entries[me]["fieldsV1"]) if me in entries else set()
    for path in sorted(before - wanted.keys(), key=lambda path: (-len(path), path[-1] != ".")):
        if (path[:-1] if path[-1] == "." else path) not in kept:
            _remove(new, path)
    return _managed(new, entries, {me: set(wanted)}, changed, now)


def updated(old: Document, new: Document, manager: str, *, now: str) -> Document:
    """Return a changed object, whose new and changed fields belong to the manager."""
    before, after, me = owned(old) if old else {}, owned(new), (manager, "Update")
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    lost, entries = changed | (before.keys() - after.keys()), _entries(new)
    mine = (_paths(entries[me]["fieldsV1"]) if me in entries else set()) - lost | changed
    return _managed(new, entries, {me: mine}, lost, now)


def merged(old: Any, patch: Any, *, by_name: bool) -> Any:
    """Return a value after a merge patch, or after a strategic one, which merges lists of items by name."""
    if isinstance(patch, dict):
        found = dict(old) if isinstance(old, dict) else {}
        for name, value in patch.items():
            found[name] = merged(found.get(name), value, by_name=by_name)
        return {name: value for name, value in found.items() if value is not None}
    if by_name and _has_names(patch):
        items = {one["name"]: one for one in old or ()}
        for one in patch:
            items[one["name"]] = merged(items.get(one["name"]), one, by_name=True)
        return list(items.values())
    return patch


def operated(old: Document, operations: Sequence[Mapping[str, Any]]) -> Document:
    """Return an object after the operations of a JSON patch: `add`, `replace` and `remove`."""
    new = deepcopy(old)
    for one in operations:
        *parents, last = (part.replace("~1", "/").replace("~0", "~") for part in one["path"].split("/")[1:])
        node: Any = new
        for part in parents:
            node = node[int(part)] if isinstance(node, list) else node[part]
        if one["op"] == "remove":
            del node[last]
        else:
            node[last] = deepcopy(one["value"])
    return new


def _has_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) and "name" in one for one in value)


def _entries(document: Document) -> dict[Manager, Document]:
    return {(one["manager"], one["operation"]): one for one in document["metadata"].get(MANAGED, ())}


def _managed(
    document: Document, entries: dict[Manager, Document], own: dict[Manager, set[Path]], lost: set[Path], now: str
) -> Document:
    """Return an object with its managers: `own` are the fields of the one that wrote, which others have lost."""
    fields = {who: _paths(entry["fieldsV1"]) - lost for who, entry in entries.items()} | own
    kept = []
    for who, paths in fields.items():
        text, entry = _fields(paths), entries.get(who, {"manager": who[0], "operation": who[1]})
        if text == entry.get("fieldsV1"):
            kept.append(entry)
        elif paths:
            versions = {"apiVersion": document.get("apiVersion", "v1"), "fieldsType": "FieldsV1"}
            time = now if who in own else entry["time"]
            kept.append({**versions, **entry, "time": time, "fieldsV1": text})
    return {**document, "metadata": {**document["metadata"], MANAGED: kept}}


def _paths(fields: Document, path: Path = ()) -> set[Path]:
    if not fields:
        return {path} if path else set()
    return {found for name, inner in fields.items() for found in _paths(inner, (*path, name))}


def _fields(paths: set[Path]) -> Document:
    found: Document = {}
    for path in sorted(paths):
        node = found
        for key in path:
            node = node.setdefault(key, {})
    return found


def _put(node: Any, path: Path, value: Any) -> None:
    for number, key in enumerate(path):
        if key == ".":
            return
        if key.startswith("k:"):
            item = next((one for one in node if one["name"] == json.loads(key[2:])["name"]), None)
            if item is None:
                node.append(item := json.loads(key[2:]))
            node = item
        elif number == len(path) - 1:
            node[key[2:]] = deepcopy(value) if value != {} else node.get(key[2:], {})
        else:
            node = node.setdefault(key[2:], [] if path[number + 1].startswith("k:") else {})


def _remove(node: Any, path: Path) -> None:
    """Remove a field, and the lists and maps above it that become empty."""
    key, *rest = path
    if isinstance(node, list):
        for item in [one for one in node if one["name"] == json.loads(key[2:])["name"]]:
            if rest == ["."]:
                node.remove(item)
            else:
                _remove(item, tuple(rest))
    elif key[2:] in node:
        if rest:
            _remove(node[key[2:]], tuple(rest))
        if not rest or not node[key[2:]]:
            del node[key[2:]]
