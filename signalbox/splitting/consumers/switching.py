"""How a function is taken from one queue to another: what to do next to its mappings, so that one always stays."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from signalbox.splitting.model.world import TargetState


class Reading(StrEnum):
    """Whether a mapping reads its queue."""

    ABSENT = "absent"
    OFF = "off"
    CHANGING = "changing"
    ON = "on"


class Step(StrEnum):
    """What can be done to a pair of mappings."""

    CREATE_TEMPORARY = "create temporary"
    ENABLE_TEMPORARY = "enable temporary"
    DISABLE_TEMPORARY = "disable temporary"
    DELETE_TEMPORARY = "delete temporary"
    CREATE_ORIGINAL = "create original"
    ENABLE_ORIGINAL = "enable original"
    DISABLE_ORIGINAL = "disable original"


@dataclass(frozen=True, slots=True)
class Pair:
    """The two mappings by which one function reads a queue: from the original, and from the temporary one.

    `is_enabled` says whether the original one was on before the split. `is_replaced` says that another mapping of the
    target reads the original now, since somebody deployed it anew, so that this one is not wanted back.
    """

    original: Reading
    temporary: Reading
    is_enabled: bool = True
    is_replaced: bool = False

    @property
    def state(self) -> TargetState:
        """Return from where the function reads."""
        if Reading.CHANGING in (self.original, self.temporary):
            return TargetState.CHANGING
        if self.temporary is Reading.ABSENT:
            is_as_before = self.original is Reading.ON or self._is_off_as_before
            return TargetState.ORIGINAL if is_as_before else TargetState.MIXED
        is_switched = not self.is_replaced and self._is_as_wanted and self.original is not Reading.ON
        return TargetState.TEMPORARY if is_switched else TargetState.MIXED

    @property
    def step(self) -> Step | None:
        """Return what is next on the way to the temporary queue; None when there is nothing to do, or only to wait."""
        if self.is_replaced:
            return self._step_away
        if self.temporary is Reading.ABSENT and self.original is not Reading.CHANGING:
            return Step.CREATE_TEMPORARY
        if self.temporary is Reading.OFF and self.is_enabled:
            return Step.ENABLE_TEMPORARY
        return Step.DISABLE_ORIGINAL if self._is_as_wanted and self.original is Reading.ON else None

    @property
    def step_back(self) -> Step | None:
        """Return what is next on the way back; None when there is nothing to do, or only to wait."""
        if self.is_replaced:
            return self._step_away
        if self.original is Reading.ABSENT:
            return Step.CREATE_ORIGINAL
        if self.original is Reading.OFF and self.is_enabled:
            return Step.ENABLE_ORIGINAL
        return None if self.original is Reading.CHANGING else self._step_away

    @property
    def _step_away(self) -> Step | None:
        # Disabled first: only then is it known that what it took out has been handled.
        return {Reading.ON: Step.DISABLE_TEMPORARY, Reading.OFF: Step.DELETE_TEMPORARY}.get(self.temporary)

    @property
    def _is_as_wanted(self) -> bool:
        return self.temporary is Reading.ON or (self.temporary is Reading.OFF and not self.is_enabled)

    @property
    def _is_off_as_before(self) -> bool:
        return self.original is Reading.OFF and not self.is_enabled


def combined(states: Iterable[TargetState]) -> TargetState:
    """Return the state of a target that has several places to read from; one that has none reads nothing of ours."""
    found = set(states) or {TargetState.ORIGINAL}
    if TargetState.CHANGING in found:
        return TargetState.CHANGING
    return found.pop() if len(found) == 1 else TargetState.MIXED
