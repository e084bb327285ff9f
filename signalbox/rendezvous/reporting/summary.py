"""The daily summary of rendezvous, rounded as upstream publishes it."""

from signalbox.rendezvous.reporting.statistics import DayStatistics, rounded_up


def summary(statistics: DayStatistics) -> dict[str, object]:
    """Return the summary of a UTC day: distinct proxies by type and NAT, idle polls, and clients by result.

    Idle polls and clients are rounded up to multiples of eight as in the log block, to hide single users.
    """
    return {
        "day": statistics.day.isoformat(),
        "proxies": dict(statistics.proxies_by_type),
        "nats": dict(statistics.proxies_by_nat),
        "idle_polls": rounded_up(statistics.idle_polls),
        "clients": {
            "matched": rounded_up(statistics.clients_matched),
            "denied": rounded_up(statistics.clients_denied),
            "timed_out": rounded_up(statistics.clients_timed_out),
        },
    }
