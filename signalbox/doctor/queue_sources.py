"""The rule on a stage's queues: none takes the dead letters of queues that are not the stage's."""

from collections.abc import Sequence
from dataclasses import dataclass

from signalbox.doctor.findings import Finding, ok, warn

SOURCES = "queue sources"


@dataclass(frozen=True, slots=True)
class QueueSources:
    """A queue of the stage: whether any queue may use it as its dead-letter queue, and those of others that do."""

    name: str
    is_open: bool
    strangers: tuple[str, ...]


def name_prefixes(stage: str, *, exchanges: str, temporary: str, broker: str) -> tuple[str, ...]:
    """Return the prefixes of the names of a stage's queues, without those of clients of rendezvous, which live minutes.

    `exchanges` begins the names of exchanges and declared queues, `temporary` those of temporary queues.
    """
    return (f"{stage}-", f"{exchanges}x", f"{exchanges}q_", temporary, broker)


def sources_finding(queues: Sequence[QueueSources]) -> Finding:
    """Return the finding on the queues of a stage, none before its first deployment."""
    problems = [f"{queue.name} takes those of {', '.join(queue.strangers)}" for queue in queues if queue.strangers]
    problems += [f"{queue.name} takes those of any queue" for queue in queues if queue.is_open and not queue.strangers]
    if not problems:
        return ok(SOURCES, f"none of the stage's {len(queues)} queues takes the dead letters of other queues")
    return warn(
        SOURCES,
        f"queues take the dead letters of queues that are not the stage's: {'; '.join(problems)}",
        remedy="delete strange queues, or their RedrivePolicy; a deployment and the daily sweeps restrict the others",
    )
