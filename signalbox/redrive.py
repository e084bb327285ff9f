"""Which queues may use a queue as their dead-letter queue: redrive allow policies, and the guard that sets them.

Without a policy any queue of the account may, and SQS moves its messages there past all permissions to send.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from signalbox.errors import RejectedError, UnavailableError
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName, allow_policy

ALLOW_ALL = "allowAll"
MAXIMUM_SOURCES = 10  # SQS, SetQueueAttributes


class RedrivePolicies(Protocol):
    """The redrive allow policies of queues in the stage's account and region."""

    def arn(self, name: QueueName) -> str:
        """Return the ARN of a queue."""

    def policy(self, name: QueueName) -> str | None:
        """Return a queue's policy, an empty text if it has none, or None if the queue does not exist.

        Raises `EffectFailed`.
        """

    def sources(self, name: QueueName) -> Sequence[str]:
        """Return the ARNs of the queues that name a queue as their dead-letter queue. Raises `EffectFailed`."""

    def set_policy(self, name: QueueName, policy: str) -> None:
        """Set a queue's policy. Raises `EffectRefused` and `EffectFailed`."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """The result for one queue: whether its policy was changed, and the ARNs of strange queues that name it.

    `problem` is why it could not be restricted, or None.
    """

    queue: QueueName
    is_changed: bool = False
    strangers: tuple[str, ...] = ()
    problem: str | None = None

    def remarks(self) -> Iterator[str]:
        """Yield the lines of the log for an operator."""
        if self.is_changed:
            yield f"the sources of queue {self.queue} are restricted now"
        if self.strangers:
            yield f"queue {self.queue} takes the dead letters of other queues: {', '.join(self.strangers)}"
        if self.problem:
            yield f"the sources of queue {self.queue} are not restricted: {self.problem}"


@dataclass(frozen=True, slots=True)
class RedriveGuard:
    """Restricts each queue, new or existing, to be the dead-letter queue of its sources alone."""

    policies: RedrivePolicies
    parallel_map: ParallelMap = serial_map

    def restrict_all(self, sources: Mapping[QueueName, Sequence[QueueName]]) -> list[Guarded]:
        """Restrict queues to their `sources`, several at a time; a failure of one does not stop the others."""
        return list(self.parallel_map(self._attempt, sources.items()))

    def _attempt(self, target: tuple[QueueName, Sequence[QueueName]]) -> Guarded:
        name, sources = target
        try:
            return self.restrict(name, sources=sources)
        except (RejectedError, UnavailableError) as error:
            return Guarded(name, problem=str(error))

    def restrict(self, name: QueueName, *, sources: Sequence[QueueName] = ()) -> Guarded:
        """Let only `sources`, and queues that already do so, use a queue as their dead-letter queue; report the latter.

        They keep it, since the owner of a queue that the stage took over may rely on it. A queue that more than ten
        queues use keeps its policy. Raises `EffectRefused` and `EffectFailed`.
        """
        wanted = [self.policies.arn(source) for source in sources]
        policy = self.policies.policy(name)
        if policy is None or allowed_sources(policy) == frozenset(wanted):
            return Guarded(name)
        strangers = tuple(sorted(set(self.policies.sources(name)) - set(wanted)))
        allowed = [*wanted, *strangers]
        if len(allowed) > MAXIMUM_SOURCES or allowed_sources(policy) == frozenset(allowed):
            return Guarded(name, strangers=strangers)
        self.policies.set_policy(name, allow_policy(allowed))
        return Guarded(name, is_changed=True, strangers=strangers)


def allowed_sources(policy: str) -> frozenset[str] | None:
    """Return the ARNs of the queues that a policy allows, or None if it allows all. An empty policy allows all."""
    document = json.loads(policy or "{}")  # SQS stores valid policies only
    permission = document.get("redrivePermission", ALLOW_ALL)
    return None if permission == ALLOW_ALL else frozenset(document.get("sourceQueueArns", ()))
