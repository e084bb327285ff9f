"""A queue and its bindings, read from sr3's options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any


@dataclass(frozen=True, slots=True)
class SubscriptionBinding:
    """A binding of a queue to an exchange."""

    exchange: str
    pattern: str


@dataclass(frozen=True, slots=True)
class Subscription:
    """The configured state of a queue; instances may share it, and only the first one declares it."""

    queue: str
    expires: timedelta
    message_ttl: timedelta
    """Both times are zero for never: the zero resets the stage's setting when the option is removed."""
    prefetch: int | None
    """None selects the stage's default, and so does sr3's 0, which means no limit."""
    is_declared: bool
    bindings: tuple[SubscriptionBinding, ...]
    former_bindings: tuple[SubscriptionBinding, ...]

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Subscription":
        """Return the subscription in the options of a consumer."""
        found = options["subscriptions"][options["subscription_index"]]
        queue = found["queue"]
        # Instances are numbered from 1; 0 is the foreground.
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

    def maximum_unacknowledged(self, batch: int) -> int:
        """Return the maximum number of unacknowledged messages of one instance."""
        return min(batch, self.prefetch or batch)


def _duration(seconds: float | None) -> timedelta:
    return timedelta(seconds=seconds or 0)


def _bindings(found: Sequence[Mapping[str, Any]]) -> tuple[SubscriptionBinding, ...]:
    # State files of earlier versions of sr3 contain topics as lists of words.
    topics = ((one["exchange"], one["topic"]) for one in found)
    return tuple(
        SubscriptionBinding(name, topic if isinstance(topic, str) else ".".join(topic)) for name, topic in topics
    )
