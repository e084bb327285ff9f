"""The account's quotas that a configuration needs; a test compares them with the templates."""

from dataclasses import dataclass

from stacks.settings.config import Config

# Event source mappings whose maximum concurrency is fixed: commands of splitting and of the exchange, and overflowing
# events.
FIXED_MAPPINGS, FIXED_CONCURRENCY = 3, 10
# Retries and ordered retries; inboxes, outboxes, timers and overview calls.
ROUTE_MAPPINGS, LIVE_MAPPINGS = 2, 4
# The limit of requests a second for each execution of a function that answers quickly.
RATE_OF_AN_EXECUTION = 10
# Rounded up: a few more resources need no change here.
SCHEDULES, ROLES, TABLES = 20, 50, 6


@dataclass(frozen=True, slots=True)
class Needs:
    """Concurrent executions of Lambda, requests a second of API Gateway, and numbers of resources."""

    mappings: int
    polled: int
    """The executions of all event source mappings at their maximum."""
    held_polls: int
    """The held polls outside of reservations."""
    reserved: int
    """The executions that functions reserve."""
    requests_per_second: int
    """The requests and frames that the throttles of all APIs let in."""
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
        held_polls=0 if config.reservations else config.poll_hold_limit,
        reserved=sum(config.reservations.values()),
        requests_per_second=_requests_per_second(config),
    )


def _requests_per_second(config: Config) -> int:
    answers_and_polls = 2 * RATE_OF_AN_EXECUTION * config.proxy_concurrency
    clients = 2 * config.client_concurrency  # over HTTP and over AMP
    pages = 2 * RATE_OF_AN_EXECUTION * config.page_concurrency
    connections = RATE_OF_AN_EXECUTION * config.live_connect_concurrency
    return answers_and_polls + clients + pages + connections + config.live_frame_limit
