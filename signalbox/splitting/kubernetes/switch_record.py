"""The switches of a workload: the annotation with each variable's entry before a switch, and their limit."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from signalbox.splitting.kubernetes.field_managers import FieldOwnership

# On the pod template while it is switched; on the workload itself from the way back until others manage its fields.
ANNOTATION = "signalbox/split"

Document = Mapping[str, Any]
Variable = tuple[str, str]  # a container's name and a variable's


@dataclass(frozen=True, slots=True)
class VariableBefore:
    """A variable before the switch: its entry in `env`, None if it had none, and the managers of its value."""

    entry: Document | None
    owners: tuple[FieldOwnership, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchRecord:
    """The variables that a switch changed, with their earlier values."""

    target: str
    before: Mapping[Variable, VariableBefore] = field(default_factory=dict)

    def text(self) -> str:
        """Return the value of the annotation."""
        variables = [
            {"container": container, "name": name, "entry": one.entry, "owners": [o.document() for o in one.owners]}
            for (container, name), one in sorted(self.before.items())
        ]
        return json.dumps({"target": self.target, "variables": variables}, separators=(",", ":"))


def read_record(annotations: Mapping[str, str] | None, target: str) -> SwitchRecord:
    """Return the record in the annotations of a workload or of its pod template; an empty one if there is none."""
    text = (annotations or {}).get(ANNOTATION)
    if text is None:
        return SwitchRecord(target)
    try:
        variables: Sequence[Document] = json.loads(text)["variables"]
        return SwitchRecord(target, {(one["container"], one["name"]): _before(one) for one in variables})
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return SwitchRecord(target)  # others wrote it: queue names are replaced without it


def _before(document: Document) -> VariableBefore:
    entry, owners = document["entry"], document["owners"]
    if entry is not None and entry.get("name") != document["name"]:
        raise ValueError(f"expected the entry of {document['name']!r}, not of {entry.get('name')!r}")
    return VariableBefore(entry, tuple(map(FieldOwnership.of_document, owners)))


PREFIX = "switched:"  # of the names of annotations, before the time of a switch
MAXIMUM_SWITCHES = 5
PERIOD = timedelta(minutes=10)


def switch_annotation(now: datetime) -> str:
    """Return the name of the annotation for a switch."""
    return PREFIX + now.isoformat()


def is_limit_reached(annotations: Mapping[str, str], now: datetime) -> bool:
    """Return whether a workload was switched too often in the last ten minutes."""
    return len(list(_since(annotations, now - PERIOD))) >= MAXIMUM_SWITCHES


def outdated(annotations: Mapping[str, str], now: datetime) -> list[str]:
    """Return the names of the annotations that do not count any more."""
    recent = set(_since(annotations, now - PERIOD))
    return [name for name in annotations if name.startswith(PREFIX) and name not in recent]


def _since(annotations: Iterable[str], moment: datetime) -> Iterable[str]:
    names = (name for name in annotations if name.startswith(PREFIX))
    return (name for name in names if datetime.fromisoformat(name.removeprefix(PREFIX)) > moment)
