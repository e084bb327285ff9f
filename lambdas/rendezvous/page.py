"""The part `page` of both doors: the broker's pages for people and Prometheus, and 404 for every other path."""

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from functools import cache
from http import HTTPStatus

from lambdas.rendezvous import wiring
from lambdas.rendezvous.responses import response
from lambdas.shared import instance
from lambdas.shared.http import Request, Response
from signalbox.rendezvous.model.pace import ProxyKind, known_proxies
from signalbox.rendezvous.reporting import pages
from signalbox.rendezvous.reporting.prometheus import exposition
from signalbox.rendezvous.reporting.statistics import DayStatistics

METRICS_DAYS = 7
LATE = timedelta(hours=1)  # of the last events of a day


def respond(request: Request) -> Response:
    """Return the page at the path of the request."""
    if request.path == "/robots.txt":
        return response(pages.ROBOTS, headers=NO_HEADERS)
    if request.path == "/prometheus":
        return response(_prometheus(), content_type=pages.PROMETHEUS_TEXT, headers=NO_HEADERS)
    page = CROSS_ORIGIN_PAGES.get(request.path)
    if page is None:
        return response(pages.NOT_FOUND, status=HTTPStatus.NOT_FOUND, headers=pages.NOT_FOUND_HEADERS)
    return response("" if request.is_preflight else page())


def _debug() -> str:
    return pages.debug_page(_available(instance.CLOCK.now()))


def _available(now: datetime) -> Mapping[ProxyKind, int]:
    return known_proxies(wiring.paces().all(), now=now, recency=wiring.policy().proxy_recency)


def _metrics() -> str:
    now = instance.CLOCK.now()
    days = [now.date() - timedelta(days=ago) for ago in range(METRICS_DAYS, 0, -1)]
    statistics = [DayStatistics.from_counters(_counters(day, now=now), day) for day in days]
    return "".join(day.log_block() for day in statistics if day.samples)


def _counters(day: date, *, now: datetime) -> Mapping[str, int]:
    """Return the counters of a day; those of a complete day are read once, since anyone may request the page."""
    is_complete = day < (now - LATE).date()
    return _complete(day) if is_complete else wiring.statistics().counters(day)


@cache
def _complete(day: date) -> Mapping[str, int]:
    return wiring.statistics().counters(day)


def _prometheus() -> str:
    now = instance.CLOCK.now()
    return exposition(wiring.statistics().counters(now.date()), available=_available(now))


CROSS_ORIGIN_PAGES: dict[str, Callable[[], str]] = {"/debug": _debug, "/metrics": _metrics}
NO_HEADERS: dict[str, str] = {}
