"""The dead letters that a failed test shows."""

from collections.abc import Iterator

from signalbox.clients.deployment import Deployment
from tests.soak.dead_letters import dead_letters

SHOWN_CHARACTERS = 300


def dead_letter_lines(deployment: Deployment) -> Iterator[str]:
    """Yield a line with queue, reason and body for each dead letter of a stage. They are deleted."""
    for letter in dead_letters(deployment):
        yield f"{letter.queue}: {letter.reason}: {letter.body[:SHOWN_CHARACTERS]}"
