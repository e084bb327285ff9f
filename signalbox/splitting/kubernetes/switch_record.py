"""The record of a switch: an annotation with each variable's entry before the switch and its field managers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from signalbox.splitting.kubernetes.field_managers import Ownership

# On the pod template while it is switched; on the workload itself from the way back until others manage its fields.
ANNOTATION = "signalbox/split"

Document = Mapping[str, Any]
Variable = tuple[str, str]  # a container's name and a variable's


@dataclass(frozen=True, slots=True)
class VariableBefore:
    """A variable before the switch: its entry in `env`, None if it had none, and the managers of its value."""

    entry: Document | None
    owners: tuple[Ownership, ...] = ()


@dataclass(frozen=True, slots=True)
class SwitchRecord:
    """The variables that a switch changed, as they were before."""

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
    except (KeyError, TypeError, ValueError):
        return SwitchRecord(target)  # edited by hand: queue names are replaced without it


def _before(document: Document) -> VariableBefore:
    return VariableBefore(document["entry"], tuple(map(Ownership.of_document, document["owners"])))
