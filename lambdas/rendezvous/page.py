"""The part `page` of both doors: the broker's pages for people and Prometheus, and 404 for every other path."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from http import HTTPStatus

from lambdas.rendezvous import wiring
from lambdas.rendezvous.responses import response
from lambdas.shared import instance
from lambdas.shared.http import Request, Response
from signalbox.networks import CostlyRequests, network_number
from signalbox.rendezvous.model.pace import ProxyKind, known_proxies
from signalbox.rendezvous.reporting import pages
from signalbox.rendezvous.reporting.prometheus import exposition
from signalbox.rendezvous.reporting.statistics import DayStatistics

METRICS_DAYS = 7
KEPT_SECONDS = 10
NO_HEADERS: dict[str, str] = {}
LATE = timedelta(hours=1)  # of the last events of a day


def respond(request: Request) -> Response:
    """Return the page at the path of the request."""
    if request.path == "/robots.txt":
        return response(pages.ROBOTS, headers=NO_HEADERS)
    if request.path == "/prometheus":
        return _counted(request, content_type=pages.PROMETHEUS_TEXT, headers=NO_HEADERS)
    if request.path not in ("/debug", "/metrics"):
        return response(pages.NOT_FOUND, status=HTTPStatus.NOT_FOUND, headers=pages.NOT_FOUND_HEADERS)
    if request.is_preflight:
        return response()
    if request.path == "/debug":
        return response(pages.debug_page(_available(instance.CLOCK.now())))
    return _counted(request)


def _counted(
    request: Request, *, content_type: str = pages.TEXT, headers: Mapping[str, str] = pages.CROSS_ORIGIN
) -> Response:
    """Return a page of counters, made once in `KEPT_SECONDS`; anyone may request it, so each network gets few."""
    now, network = instance.CLOCK.now(), network_number(request.source_ip)
    if _requests().are_over(network, now=now):
        return response(status=HTTPStatus.TOO_MANY_REQUESTS)
    _requests().of_network[network] += 1
    text = _text(request.path, int(now.timestamp()) // KEPT_SECONDS)
    return response(text, content_type=content_type, headers=headers)


_requests = cache(CostlyRequests)


@lru_cache(maxsize=2)
def _text(path: str, _period: int) -> str:
    return _metrics() if path == "/metrics" else _prometheus()


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
