"""Golden items and messages on a deployed stage: moved to its names and its time, and the forms of what it writes.

A *form* is what an item or message consists of, without its values: the paths of its fields, and the type of each.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

AT = 1_772_366_400  # the time of the golden files in seconds since 1970
# Milliseconds, seconds and minutes of the days of the golden files. Nothing else in them looks like these.
TIMES = (
    (re.compile(r"\b177[2-5]\d{9}\b"), 1000.0),
    (re.compile(r"\b177[2-5]\d{6}\b"), 1.0),
    (re.compile(r"\b2953\d{4}\b"), 1 / 60),
)
COUNTERS = "minute"  # items of numbers, whose names are those of what is counted
Json = Any
Kind = tuple[str, str]


def moved(document: Json, names: Mapping[str, str], *, to: datetime) -> Json:
    """Return a golden document with other names, whose time `AT` is `to`."""
    text, later = json.dumps(document), to.timestamp() - AT
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    for pattern, per_second in TIMES:
        text = pattern.sub(lambda found, unit=per_second: str(int(found[0]) + round(later * unit)), text)
    return json.loads(text)


def message(golden: Mapping[str, Json], names: Mapping[str, str], *, to: datetime, **changed: str) -> dict[str, Json]:
    """Return a golden message as the arguments of SendMessage."""
    sent = {**moved(golden, names, to=to), **changed}
    for attribute in sent.get("MessageAttributes", {}).values():
        if "BinaryValue" in attribute:
            attribute["BinaryValue"] = base64.b64decode(attribute["BinaryValue"])
    return sent


def attribute_types(found: Mapping[str, Json]) -> dict[str, str]:
    """Return the types of a message's attributes."""
    return {name: value["DataType"] for name, value in found.get("MessageAttributes", {}).items()}


def kind_of(item: Mapping[str, Json]) -> Kind:
    """Return the kind of an item: the beginnings of its keys."""
    pk, sk = (item[name]["S"] for name in ("pk", "sk"))
    return pk.partition("#")[0], re.sub(r"^\d+$", "number", sk[:1] if sk.startswith(".") else sk.partition("#")[0])


def differences(items: Iterable[Mapping[str, Json]], golden: Iterable[Mapping[str, Json]]) -> list[str]:
    """Return the differences in form between items and the golden ones of their kinds.

    A field of an item has the type that it has in a golden item, and the fields that several golden items of a kind all
    have are in each item of it.
    """
    forms: dict[Kind, list[set[str]]] = {}
    for item in golden:
        forms.setdefault(kind_of(item), []).append(set(_fields(item)))
    return [text for item in items for text in _differences(item, forms.get(kind_of(item), []))]


def _differences(item: Mapping[str, Json], forms: list[set[str]]) -> Iterator[str]:
    kind, fields = kind_of(item), set(_fields(item))
    if not forms:
        yield f"{kind}: no golden item is of this kind"
        return
    new = {field for field in fields - set.union(*forms) if kind[1] != COUNTERS or not field.endswith(":N")}
    yield from (f"{kind}: {field} is new" for field in sorted(new))
    # Fields of fields depend on what the item is about, and one golden item does not show which of its own do.
    needed = {field for field in set.intersection(*forms) if "." not in field and len(forms) > 1}
    yield from (f"{kind}: {field} is missing" for field in sorted(needed - fields))


def _fields(value: Mapping[str, Json]) -> Iterator[str]:
    """Yield the fields of an item, with those of its maps, lists and JSON texts; names after a colon are data."""
    for name, typed in value.items():
        ((kind, inner),) = typed.items()
        field = f"{name.partition(':')[0]}:{'B' if kind == 'zlib' else kind}"
        yield field
        maps = [inner] if kind == "M" else [one["M"] for one in inner if "M" in one] if kind == "L" else []
        yield from (f"{field}.{part}" for one in maps for part in _fields(one))
