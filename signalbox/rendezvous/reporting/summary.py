"""A day of rendezvous at a glance, as coarse as upstream publishes it."""

from signalbox.rendezvous.reporting.statistics import DayStatistics, rounded_up


def glance(statistics: DayStatistics) -> dict[str, object]:
    """Return what is told of a UTC day: distinct proxies by type and NAT, and in multiples of eight how clients fared.

    The same rounding as in the log block, since these numbers may tell of single people.
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
