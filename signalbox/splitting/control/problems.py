"""What stands in a split's way, noted for whoever asks for its status: the newest troubles, each once."""

import logging
from collections.abc import Mapping

from signalbox.splitting.model.control_ports import ControlPorts
from signalbox.splitting.model.target import Target

# All notes of a split share one item of the table, and some of them are needed to undo the split: DynamoDB's 400 KB.
KEPT = 20
MAXIMUM_LENGTH = 1000
NOTE = "trouble"

logger = logging.getLogger(__name__)


def note_trouble(ports: ControlPorts, target: Target, text: str) -> None:
    """Note what went wrong, unless it is noted already; the oldest troubles are forgotten. Only under the lock."""
    logger.warning("%s: %s", target, text)
    told, known = text[:MAXIMUM_LENGTH], _noted(ports.store.notes.of(target))
    if told in known.values():
        return
    at = ports.now().isoformat(timespec="microseconds")
    ports.store.notes.put(target, f"{NOTE}:{at}:{told}"[:200], told)
    oldest = list(known)[: max(len(known) + 1 - KEPT, 0)]
    if oldest:
        ports.store.notes.remove(target, oldest)


def troubles(notes: Mapping[str, str]) -> list[str]:
    """Return the troubles among a split's notes, the oldest first."""
    return list(_noted(notes).values())


def _noted(notes: Mapping[str, str]) -> dict[str, str]:
    """Return the notes of troubles by their names, which begin with the moment."""
    return {name: notes[name] for name in sorted(notes) if name.startswith(f"{NOTE}:")}
