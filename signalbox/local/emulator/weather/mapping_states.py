"""Rule: an event source mapping takes seconds to change its state, and cannot be changed in between."""

from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from signalbox.local.emulator.weather.calls import Clock
from signalbox.local.emulator.weather.rules import MAPPING_SECONDS

Mapping = MutableMapping[str, Any]
"""A mapping as MiniStack keeps it; its poller reads `Enabled`."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a mapping that is not complete."""

    mapping: Mapping
    state: str
    """The state after the change."""
    due: float


@dataclass(slots=True)
class MappingStates:
    """The changes of mappings that are not complete, by the mappings' ids."""

    clock: Clock
    _changes: dict[str, Change] = field(default_factory=dict)

    def is_changing(self, mapping_id: str) -> bool:
        """Return whether a change of the mapping is not complete."""
        self.complete()
        return mapping_id in self._changes

    def created(self, mapping: Mapping) -> None:
        """Begin the life of a mapping, which polls when it is enabled."""
        state, mapping["Enabled"] = mapping["State"], False
        self._begin(mapping, "Creating", state)

    def updated(self, mapping: Mapping, *, was_enabled: bool) -> None:
        """Begin a change that MiniStack made at once; polling changes when the change is complete."""
        state = mapping["State"]
        is_enabled, mapping["Enabled"] = mapping["Enabled"], was_enabled
        meanwhile = "Updating" if is_enabled == was_enabled else "Enabling" if is_enabled else "Disabling"
        self._begin(mapping, meanwhile, state)

    def deleted(self, mapping: Mapping) -> None:
        """Begin the deletion of a mapping, which still polls."""
        self._begin(mapping, "Deleting", "Deleted")

    def complete(self) -> None:
        """Complete the changes that are due."""
        now = self.clock()
        for mapping_id, change in list(self._changes.items()):
            if change.due <= now and self._changes.pop(mapping_id, None) is not None:
                change.mapping["State"] = change.state
                change.mapping["Enabled"] = change.state == "Enabled"

    def present(self, mappings: Iterable[Mapping]) -> list[Mapping]:
        """Return the mappings, and those that are being deleted."""
        self.complete()
        found = {mapping["UUID"]: mapping for mapping in mappings}
        leaving = (change.mapping for change in self._changes.values() if change.state == "Deleted")
        return list({**found, **{mapping["UUID"]: mapping for mapping in leaving}}.values())

    def leaving(self, mapping_id: str) -> Mapping | None:
        """Return a mapping that is being deleted."""
        self.complete()
        change = self._changes.get(mapping_id)
        return change.mapping if change is not None and change.state == "Deleted" else None

    def _begin(self, mapping: Mapping, meanwhile: str, state: str) -> None:
        mapping["State"] = meanwhile
        self._changes[mapping["UUID"]] = Change(mapping, state, self.clock() + MAPPING_SECONDS)
