"""Shared parts of commands that ask the past: their options, the stage's history, output and the picture."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from signalbox.cli.shared.output import print_line, print_table
from signalbox.cli.shared.stage import output, say
from signalbox.errors import RejectedError

if TYPE_CHECKING:
    from signalbox.aws.history.past_messages import AthenaPastMessages
    from signalbox.history.what_if.cost import Cost, PriceList
    from signalbox.history.what_if.past_messages import PastMessages, TopicAmount
    from signalbox.history.what_if.window import PastWindow

Over = Annotated[
    str | None,
    typer.Option(
        "--over",
        help="With --dry-run, also show the past messages that would have matched: of the last 2h or 7d, for example.",
        metavar="DURATION",
    ),
]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", help="With --over, write a picture of the past messages to this file.", metavar="FILE"),
]

QUERY_PREFIX = "queries/"
LISTED = 10
SVG = ".svg"
THOUSAND = 1_000


class Figure(NamedTuple):
    """A number of a picture, and its name."""

    value: str
    name: str


@dataclass(frozen=True, slots=True)
class Past:
    """The past that a command asks about, and where its picture goes."""

    window: "PastWindow"
    text: str
    picture: Path | None

    @property
    def zone(self) -> tzinfo | None:
        """Return this machine's time zone, with its present offset."""
        return datetime.now().astimezone().tzinfo


def asked_past(over: str | None, picture: Path | None, *, dry_run: bool = True) -> Past | None:
    """Return the past of the options, or None without --over; note at once that it is read.

    Raises `RejectedError` before anything is read.
    """
    from signalbox.history.what_if.window import InvalidWindow, PastWindow

    if over is None:
        if picture is not None:
            raise RejectedError("--picture needs --over: it shows past messages")
        return None
    if not dry_run:
        raise RejectedError("--over needs --dry-run: it only asks")
    if picture is not None and picture.suffix != SVG:
        raise RejectedError(f"--picture: expected a file whose name ends with {SVG}, not {str(picture)!r}")
    try:
        window = PastWindow.before(datetime.now(UTC), over)
    except InvalidWindow as error:
        raise InvalidWindow(f"--over: {error}") from error
    say(f"reading the last {over} of the history")
    return Past(window, over, picture)


def history_of(*, aws: bool, stage: str) -> "AthenaPastMessages":
    """Return the history of a stage."""
    from signalbox.aws.history.athena import Athena
    from signalbox.aws.history.past_messages import AthenaPastMessages
    from signalbox.cli.shared.deployment import find_deployment

    deployment = find_deployment(aws=aws, stage=stage)
    results = f"s3://{output(deployment, 'HistoryBucket')}/{QUERY_PREFIX}"
    athena = Athena(deployment.session().client("athena"), output(deployment, "HistoryDatabase"), results)
    return AthenaPastMessages(athena, output(deployment, "HistoryTable"))


def price_list() -> "PriceList | None":
    """Return the prices, which belong to a checkout; None for an installed command."""
    from signalbox.history.what_if.cost import PriceList
    from signalbox.local.files import checkout_modules

    try:
        with checkout_modules():
            from glue_jobs.transforms.prices import PRICES, USAGES
    except RejectedError:
        return None
    return PriceList(PRICES, USAGES)


def print_messages(past: Past, found: "PastMessages", what: str) -> None:
    """Print the past messages that match: their number, size and rate, a chart, and the largest topics."""
    for line in (*sentences(past, found, what), *chart_lines(past, found.buckets)):
        print_line(line)
    with_publisher = any(one.publisher is not None for one in found.topics)
    columns = ["topic", *["publisher"] * with_publisher, "messages", "size"]
    if found.topics:
        print_table(columns, (_topic_row(one, with_publisher=with_publisher) for one in found.topics[:LISTED]))
    if found.topic_number > LISTED:
        print_line(f"and {found.topic_number - LISTED:,} more")
    if found.publishers:
        print_line(f"published by {', '.join(_publishers(found))}")


def sentences(past: Past, found: "PastMessages", what: str) -> list[str]:
    """Return the number, size and rate of past messages in words."""
    from signalbox.history.what_if.rate import Rate

    if not found.total.messages:
        return [f"{what}: no message in the last {past.text}"]
    size = f"{size_text(found.total.size_bytes)}, the largest {size_text(found.largest_bytes)}"
    number = f"{many(found.total.messages, 'message')} on {many(found.topic_number, 'topic')}"
    rate = Rate.of(found.buckets, found.window).sentence(past.zone or UTC)
    return [f"{what}: {number} in the last {past.text}, {size}", rate]


def chart_lines(past: Past, buckets: Mapping[datetime, int]) -> Iterator[str]:
    """Yield the chart of messages by time; none without messages."""
    from signalbox.history.what_if.rate import chart

    if any(buckets.values()):
        yield from chart(buckets, past.window, past.zone or UTC)


def draw(
    past: Past,
    *,
    title: str,
    lines: Sequence[str],
    figures: Sequence[Figure],
    buckets: Mapping[datetime, int],
    bars: tuple[str, Iterable[tuple[str, int]]],
) -> None:
    """Write the picture, with --picture. Raises `RejectedError`, also for an installed command without checkout."""
    if past.picture is None:
        return
    from signalbox.local.files import checkout_modules

    with checkout_modules():
        from glue_jobs.pictures.what_if import WhatIf, what_if_picture
    heading, rows = bars
    columns = [(f"{begin.astimezone(past.zone):%m-%d %H:%M}", buckets.get(begin, 0)) for begin in past.window.buckets()]
    subtitle = f"The last {past.text} until {past.window.end.astimezone(past.zone):%Y-%m-%d %H:%M}"
    contents = WhatIf(title, subtitle, lines, figures, columns, heading, list(rows)[:LISTED])
    with _writing(past.picture) as path:
        path.write_text(what_if_picture(contents))
    say(str(past.picture))


@contextmanager
def _writing(path: Path) -> Iterator[Path]:
    try:
        yield path
    except OSError as error:
        raise RejectedError(f"--picture: cannot write {str(path)!r}: {error.strerror or error}") from error


def figures_of(found: "PastMessages", cost: "Cost | None") -> list[Figure]:
    """Return the figures of a picture."""
    figures = [Figure(f"{found.total.messages:,}", "messages"), Figure(f"{found.topic_number:,}", "topics")]
    figures.append(Figure(size_text(found.total.size_bytes), "in total"))
    return figures if cost is None else [*figures, Figure(f"{cost.most:,.2f}", "USD a month at most")]


def size_text(value: float) -> str:
    """Return a number of bytes with a unit."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < THOUSAND:
            return f"{value:.3g} {unit}"
        value /= THOUSAND
    return f"{value:,.1f} TB"


def _topic_row(one: "TopicAmount", *, with_publisher: bool) -> list[str]:
    publisher = [one.publisher or ""] if with_publisher else []
    return [one.name or "''", *publisher, f"{one.amount.messages:,}", size_text(one.amount.size_bytes)]


def _publishers(found: "PastMessages") -> Iterator[str]:
    for one in found.publishers[:LISTED]:
        yield f"{one.name or 'unknown'} {one.amount.messages:,}"
    if found.publisher_number > LISTED:
        yield f"{found.publisher_number - LISTED:,} more"


def many(number: int, word: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"
