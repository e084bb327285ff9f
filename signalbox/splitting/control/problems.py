"""Problems of a split, stored for its status: the newest ones, each once."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from signalbox.clock import Clock
from signalbox.splitting.model.split import shortened
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import Annotations

KEPT = 20
PROBLEM_BYTES = 1000
PROBLEM_ANNOTATION = "trouble"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProblemLog:
    """Records problems of splits. The caller must hold the target's lock."""

    annotations: Annotations
    clock: Clock

    def record(self, target: Target, text: str) -> None:
        """Log a problem of a split and store it, as `note_problem` does."""
        logger.warning("%s: %s", target, text)
        note_problem(self.annotations, target, text, now=self.clock.now())


def note_problem(annotations: Annotations, target: Target, text: str, *, now: datetime) -> None:
    """Store a problem unless it is stored already; the oldest are dropped."""
    problem, known = shortened(text, PROBLEM_BYTES), _problem_annotations(annotations.of(target))
    if problem in known.values():
        return
    at = now.isoformat(timespec="microseconds")
    annotations.put(target, f"{PROBLEM_ANNOTATION}:{at}:{problem}"[:200], problem)
    oldest = list(known)[: max(len(known) + 1 - KEPT, 0)]
    if oldest:
        annotations.remove(target, oldest)


def problems(annotations: Mapping[str, str]) -> list[str]:
    """Return the problems among a split's annotations, oldest first."""
    return list(_problem_annotations(annotations).values())


def _problem_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """Return the problem annotations by name; the names begin with the time."""
    return {name: annotations[name] for name in sorted(annotations) if name.startswith(f"{PROBLEM_ANNOTATION}:")}
