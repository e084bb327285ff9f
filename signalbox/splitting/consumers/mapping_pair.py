"""Pairs of event source mappings: the steps that switch a function between two queues without a gap."""

from dataclasses import dataclass
from enum import StrEnum

from signalbox.splitting.model.observed_state import TargetState


class MappingState(StrEnum):
    """The state of an event source mapping."""

    ABSENT = "absent"
    OFF = "off"
    CHANGING = "changing"
    ON = "on"


class MappingChange(StrEnum):
    """A change of one mapping of a pair."""

    CREATE_TEMPORARY = "create temporary"
    ENABLE_TEMPORARY = "enable temporary"
    DISABLE_TEMPORARY = "disable temporary"
    DELETE_TEMPORARY = "delete temporary"
    CREATE_ORIGINAL = "create original"
    ENABLE_ORIGINAL = "enable original"
    DISABLE_ORIGINAL = "disable original"


@dataclass(frozen=True, slots=True)
class MappingPair:
    """A function's two event source mappings for a queue: on the original and on the temporary queue.

    `is_enabled` is whether the original mapping was enabled before the split. `is_replaced` is whether another mapping
    of the target reads the original now, after a new deployment; this one is then not restored.
    """

    original: MappingState
    temporary: MappingState
    is_enabled: bool = True
    is_replaced: bool = False

    @property
    def state(self) -> TargetState:
        """Return the queue that the function reads."""
        if MappingState.CHANGING in (self.original, self.temporary):
            return TargetState.CHANGING
        if self.temporary is MappingState.ABSENT:
            is_as_before = self.original is MappingState.ON or self._is_off_as_before
            return TargetState.ORIGINAL if is_as_before else TargetState.MIXED
        is_switched = not self.is_replaced and self._is_as_wanted and self.original is not MappingState.ON
        return TargetState.TEMPORARY if is_switched else TargetState.MIXED

    @property
    def step(self) -> MappingChange | None:
        """Return the next step to the temporary queue; None when the switch is complete or AWS is still working."""
        if self.is_replaced:
            return self._step_away
        if self.temporary is MappingState.ABSENT and self.original is not MappingState.CHANGING:
            return MappingChange.CREATE_TEMPORARY
        if self.temporary is MappingState.OFF and self.is_enabled:
            return MappingChange.ENABLE_TEMPORARY
        return MappingChange.DISABLE_ORIGINAL if self._is_as_wanted and self.original is MappingState.ON else None

    @property
    def step_back(self) -> MappingChange | None:
        """Return the next step back to the original; None when the switch is complete or AWS is still working."""
        if self.is_replaced:
            return self._step_away
        if self.original is MappingState.ABSENT:
            return MappingChange.CREATE_ORIGINAL
        if self.original is MappingState.OFF and self.is_enabled:
            return MappingChange.ENABLE_ORIGINAL
        return None if self.original is MappingState.CHANGING else self._step_away

    @property
    def _step_away(self) -> MappingChange | None:
        # It is disabled first: only a disabled mapping has handled everything that it received.
        return {MappingState.ON: MappingChange.DISABLE_TEMPORARY, MappingState.OFF: MappingChange.DELETE_TEMPORARY}.get(
            self.temporary
        )

    @property
    def _is_as_wanted(self) -> bool:
        return self.temporary is MappingState.ON or (self.temporary is MappingState.OFF and not self.is_enabled)

    @property
    def _is_off_as_before(self) -> bool:
        return self.original is MappingState.OFF and not self.is_enabled
