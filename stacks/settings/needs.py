"""The concurrent executions of Lambda that a configuration needs; a test compares them with the templates."""

from dataclasses import dataclass

from stacks.settings.config import Config

# Event source mappings whose maximum concurrency is fixed: commands of splitting and of the exchange, and overflowing
# events.
FIXED_MAPPINGS, FIXED_CONCURRENCY = 3, 10
# Retries and ordered retries; inboxes, outboxes, timers and overview calls.
ROUTE_MAPPINGS, LIVE_MAPPINGS = 2, 4


@dataclass(frozen=True, slots=True)
class Needs:
    """Concurrent executions of Lambda."""

    mappings: int
    polled: int
    """The executions of all event source mappings at their maximum."""
    held_polls: int
    """The held polls outside of reservations."""
    reserved: int
    """The executions that functions reserve."""


def needs(config: Config) -> Needs:
    """Return the needs of a configuration, without the mappings of exchanges, users and splits, made at run time."""
    return Needs(
        mappings=1 + ROUTE_MAPPINGS + LIVE_MAPPINGS + FIXED_MAPPINGS,
        polled=(
            config.offer_concurrency
            + ROUTE_MAPPINGS * config.route_concurrency
            + LIVE_MAPPINGS * config.live_concurrency
            + FIXED_MAPPINGS * FIXED_CONCURRENCY
        ),
        held_polls=0 if config.reservations else config.poll_hold_limit,
        reserved=sum(config.reservations.values()),
    )
