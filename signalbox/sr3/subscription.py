"""A queue and its bindings, as sr3's options have them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any


@dataclass(frozen=True, slots=True)
class Binding:
    """What a queue is to get of an exchange."""

    exchange: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Subscription:
    """A queue as it is to be; several instances may share it, of which the first makes it."""

    queue: str
    expires: timedelta
    message_ttl: timedelta
    """Both zero for never, which a stage is to be told, too: else a queue would keep what sr3's user took out."""
    prefetch: int | None
    """None is the stage's own; sr3's 0, which is no limit, is so, too."""
    is_declared: bool
    bindings: tuple[Binding, ...]
    former_bindings: tuple[Binding, ...]

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Subscription":
        """Return the one of a consumer's options."""
        found = options["subscriptions"][options["subscription_index"]]
        queue = found["queue"]
        # Instances count from 1, and 0 is the foreground.
        is_first = options.get("no", 0) <= 1
        return cls(
            queue=queue["name"],
            expires=_duration(queue.get("expire")),
            message_ttl=_duration(options.get("messageAgeMax")),
            prefetch=queue.get("prefetch") or None,
            is_declared=is_first and queue.get("declare", True),
            bindings=_bindings(found["bindings"]) if is_first and queue.get("bind", True) else (),
            former_bindings=_bindings(found.get("bindings_to_remove", ())) if is_first else (),
        )

    def at_once(self, batch: int) -> int:
        """Return how many messages one instance takes before it acknowledges them."""
        return min(batch, self.prefetch or batch)


def _duration(seconds: float | None) -> timedelta:
    return timedelta(seconds=seconds or 0)


def _bindings(found: Sequence[Mapping[str, Any]]) -> tuple[Binding, ...]:
    # In what sr3 kept of former versions, topics may be lists of words.
    topics = ((one["exchange"], one["topic"]) for one in found)
    return tuple(Binding(name, topic if isinstance(topic, str) else ".".join(topic)) for name, topic in topics)
