"""The concurrent executions of Lambda that a configuration needs; a test compares them with the templates."""

from dataclasses import dataclass

from stacks.settings.config import Config

# Mappings of one queue whose maximum concurrency is fixed: commands, and overflowing events.
FIXED, FIXED_CONCURRENCY = ("splitting", "exchange", "history"), 10
LIVE_MAPPINGS = 4  # inboxes, outboxes, timers and overview calls


@dataclass(frozen=True, slots=True)
class Needs:
    """Concurrent executions of Lambda."""

    mappings: int
    polled: int
    """The executions of all event source mappings at their maximum."""
    reserved: int
    """The executions that functions reserve."""


def needs(config: Config) -> Needs:
    """Return the needs of a configuration, without the mappings of exchanges, users and splits, made at run time."""
    maxima = {
        "rendezvous": [config.offer_concurrency],
        "live": [config.live_concurrency] * LIVE_MAPPINGS,
    }
    mappings = [one for name in config.parts for one in maxima.get(name, [])]
    mappings += [FIXED_CONCURRENCY for name in FIXED if config.has(name)]
    return Needs(
        mappings=len(mappings),
        polled=sum(mappings),
        reserved=sum(config.reservations.values()),
    )
