"""The account's quotas that a configuration needs; a test compares them with the templates."""

from dataclasses import dataclass

from stacks.settings.config import Config

# Event source mappings whose maximum concurrency is fixed: commands of splitting and of the exchange, and overflowing
# events.
FIXED_MAPPINGS, FIXED_CONCURRENCY = 3, 10
# Retries and ordered retries; inboxes, outboxes, timers and overview calls.
ROUTE_MAPPINGS, LIVE_MAPPINGS = 2, 4
# Requests a second that the throttle of one API lets in.
REQUESTS_PER_SECOND = 5_000
# Rounded up: a few more resources need no change here.
SCHEDULES, ROLES, TABLES = 20, 50, 6


@dataclass(frozen=True, slots=True)
class Needs:
    """Concurrent executions of Lambda, requests a second of the busiest API, and numbers of resources."""

    mappings: int
    polled: int
    """The executions of all event source mappings at their maximum."""
    held_polls: int
    reserved: int
    """The executions that functions reserve."""
    requests_per_second: int = REQUESTS_PER_SECOND
    schedules: int = SCHEDULES
    roles: int = ROLES
    tables: int = TABLES


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
        held_polls=config.poll_hold_limit,
        reserved=0,
    )
