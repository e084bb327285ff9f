"""The picture of a day's rendezvous."""

from collections.abc import Sequence
from datetime import date

from glue_jobs.pictures.panels import Bar, Series, bars, figures, in_time, sheet, times, whole
from glue_jobs.texts.report_text import Record
from glue_jobs.transforms.rendezvous import PERCENTILES

ENDS = {
    "client-snowflake-match-count": ("answered", "green"),
    "client-denied-count": ("denied", "orange"),
    "client-snowflake-timeout-count": ("in vain", "red"),
}
METHODS = {"SQS": "client-sqs-count", "HTTP": "client-http-count", "AMP cache": "client-ampcache-count"}
TYPES = ("standalone", "webext", "badge", "iptproxy", "bloco")
NAMES = {"nat": "the client's NAT", "country": "the client's country", "proxy-type": "the proxy's type"}
NATS = ("restricted", "unrestricted", "unknown")
COUNTRIES = 10


def rendezvous_picture(day: date, report: Sequence[Record]) -> str:
    """Return the picture of one UTC day from its rows of `rendezvous_daily`: exact numbers, not rounded ones."""
    exact = {(row["metric"], row["label"]): row["exact"] for row in report}
    ends = tuple(exact.get((metric, None), 0) for metric in ENDS)
    found = ", ".join(f"{name}: {whole(number)}" for (name, _), number in zip(ENDS.values(), ends, strict=True))
    canvas = sheet(f"Rendezvous on {day}", "UTC, from midnight to midnight; exact numbers", f"Clients {found}.")
    entries = [(whole(sum(ends)), "clients' offers"), (whole(ends[0]), "answered")]
    median = exact.get(("time-to-answer-ms-p50", None))
    entries += [(in_time(median) if median is not None else "never", "until half were answered")]
    figures(canvas, [*entries, (whole(exact.get(("snowflake-ips-total", None), 0)), "proxies")])
    series = [Series(name, colour) for name, colour in ENDS.values()]
    bars(canvas, "How clients' offers ended", series, rows=[Bar("all", ends)] if any(ends) else [])
    for group, name in NAMES.items():
        times(canvas, f"Time to the answer by {name}", rows=_times(exact, group))
    one = [Series("number", "blue")]
    methods = {name: exact.get((metric, None), 0) for name, metric in METHODS.items()}
    bars(canvas, "How clients came", one, rows=_bars(methods))
    bars(
        canvas,
        "Proxies by type",
        one,
        rows=_bars({name: exact.get((f"snowflake-ips-{name}", None), 0) for name in TYPES}),
    )
    nats = {name: exact.get((f"snowflake-ips-nat-{name}", None), 0) for name in NATS}
    bars(canvas, "Proxies by NAT", one, rows=_bars(nats))
    countries = {label or "": number for (metric, label), number in exact.items() if metric == "snowflake-ips"}
    bars(canvas, "Proxies by country", one, rows=_bars(countries)[:COUNTRIES])
    return canvas.svg()


def _bars(numbers: dict[str, int]) -> list[Bar]:
    entries = sorted(numbers.items(), key=lambda entry: (-entry[1], entry[0]))
    return [Bar(name, (number,)) for name, number in entries if number]


def _times(exact: dict[tuple[str, str | None], int], group: str) -> list[tuple[str, tuple[float, ...]]]:
    metrics = [f"time-to-answer-ms-by-{group}-{name}" for name in PERCENTILES]
    labels = sorted(label or "" for metric, label in exact if metric == metrics[0])
    return [(label, tuple(exact[metric, label] for metric in metrics)) for label in labels[:COUNTRIES]]
