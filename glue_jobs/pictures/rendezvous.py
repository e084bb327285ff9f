"""The picture of the rendezvous report."""

from collections.abc import Mapping, Sequence
from datetime import date

from glue_jobs.pictures import panels
from glue_jobs.texts.report_text import ReportRow
from glue_jobs.transforms.rendezvous import PERCENTILES

ENDS = {
    "client-snowflake-match-count": ("answered", "green"),
    "client-denied-count": ("denied", "orange"),
    "client-snowflake-timeout-count": ("timed out", "red"),
}
METHODS = {"SQS": "client-sqs-count", "HTTP": "client-http-count", "AMP cache": "client-ampcache-count"}
TYPES = ("standalone", "webext", "badge", "iptproxy", "bloco")
NAMES = {"nat": "the client's NAT", "country": "the client's country", "proxy-type": "the proxy's type"}
NATS = ("restricted", "unrestricted", "unknown")
COUNTRIES = 10
Exact = Mapping[tuple[str, str | None], int]
"""The exact numbers of a day by metric and label."""


def rendezvous_picture(day: date, report: Sequence[ReportRow]) -> str:
    """Return the SVG of a UTC day from its rows of `rendezvous_daily`, with `exact` numbers and not `shown` ones."""
    exact = {(row["metric"], row["label"]): row["exact"] for row in report}
    ends = tuple(exact.get((metric, None), 0) for metric in ENDS)
    found = ", ".join(
        f"{name}: {panels.format_number(number)}" for (name, _), number in zip(ENDS.values(), ends, strict=True)
    )
    canvas = panels.new_picture(
        f"Rendezvous on {day}", "UTC, from midnight to midnight; exact numbers", f"Clients {found}."
    )
    panels.draw_figures(canvas, _figures(exact, ends))
    series = [panels.Series(name, colour) for name, colour in ENDS.values()]
    panels.draw_bars(canvas, "Clients' offers by outcome", series, rows=[panels.Bar("all", ends)] if any(ends) else [])
    for group, name in NAMES.items():
        panels.draw_percentiles(canvas, f"Time to answer by {name}", rows=_times(exact, group))
    for heading, numbers in _numbers(exact).items():
        panels.draw_bars(canvas, heading, [panels.Series("number", "blue")], rows=_bars(numbers))
    return canvas.svg()


def _figures(exact: Exact, ends: Sequence[int]) -> list[tuple[str, str]]:
    median = exact.get(("time-to-answer-ms-p50", None))
    return [
        (panels.format_number(sum(ends)), "clients' offers"),
        (panels.format_number(ends[0]), "answered"),
        (panels.format_duration(median) if median is not None else "none", "median time to answer"),
        (panels.format_number(exact.get(("snowflake-ips-total", None), 0)), "proxies"),
    ]


def _numbers(exact: Exact) -> dict[str, dict[str, int]]:
    """Return the numbers of each panel of bars by its heading."""
    countries = {label or "": number for (metric, label), number in exact.items() if metric == "snowflake-ips"}
    return {
        "Clients by method": {name: exact.get((metric, None), 0) for name, metric in METHODS.items()},
        "Proxies by type": {name: exact.get((f"snowflake-ips-{name}", None), 0) for name in TYPES},
        "Proxies by NAT": {name: exact.get((f"snowflake-ips-nat-{name}", None), 0) for name in NATS},
        "Proxies by country": dict(sorted(countries.items(), key=_most_first)[:COUNTRIES]),
    }


def _bars(numbers: dict[str, int]) -> list[panels.Bar]:
    return [panels.Bar(name, (number,)) for name, number in sorted(numbers.items(), key=_most_first) if number]


def _most_first(entry: tuple[str, int]) -> tuple[int, str]:
    return (-entry[1], entry[0])


def _times(exact: Exact, group: str) -> list[tuple[str, tuple[float, ...]]]:
    metrics = [f"time-to-answer-ms-by-{group}-{name}" for name in PERCENTILES]
    labels = sorted(label or "" for metric, label in exact if metric == metrics[0])
    return [(label, tuple(exact[metric, label] for metric in metrics)) for label in labels[:COUNTRIES]]
