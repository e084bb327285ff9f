"""`signalbox top`: shows what each capability of a stage does, and refreshes it in place on a terminal."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from signalbox.cli.shared.output import console, print_json, print_line
from signalbox.cli.shared.stage import Aws, Json, Stage, output
from signalbox.errors import UnavailableError

if TYPE_CHECKING:
    from signalbox.aws.activity.stage import StageActivity
    from signalbox.cli.shared.deployment import Deployment

Document = Mapping[str, Any]
"""The time of a read and the capabilities, as `signalbox.activity` returns them."""
LOCAL_SECONDS = 5.0
# CloudWatch has a value a minute, and bills each read.
AWS_SECONDS = 60.0


def top(
    *,
    once: Annotated[bool, typer.Option("--once", help="Print once and exit; the default without a terminal.")] = False,
    interval: Annotated[
        float | None,
        typer.Option(help="Seconds between two refreshes (default: 5, with --aws 60).", min=1, show_default=False),
    ] = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Show rate, backlog, oldest message, errors and cost of the last hour of each capability.

    Rates are those of the last five minutes. Each row names the command that answers further.
    """
    from signalbox.activity.questions import options_of
    from signalbox.cli.shared.deployment import find_deployment
    from signalbox.cli.shared.signals import Ending

    ending = Ending()
    repeats = not once and (interval is not None or (sys.stdout.isatty() and not as_json))
    pause = interval or (AWS_SECONDS if aws else LOCAL_SECONDS)
    read = _reader(find_deployment(aws=aws, stage=stage), options_of(stage if aws else None))
    with ending.awaited(), _screen(as_json=as_json, repeats=repeats) as show, ending.waiting():
        document = read()
        show(document, "")
        while repeats:
            time.sleep(pause)
            problem = ""
            try:
                document = read()
            except UnavailableError as error:
                problem = str(error)
            show(document, problem)
    ending.exit_if_interrupted()


def _reader(deployment: "Deployment", options: str) -> Callable[[], Document]:
    activity = _activity(deployment)

    def read() -> Document:
        now = datetime.now(UTC)
        found = [one.document(options=options) for one in activity.read(now)]
        return {"at": now.isoformat(timespec="milliseconds"), "stage": deployment.place, "capabilities": found}

    return read


def _activity(deployment: "Deployment") -> "StageActivity":
    from signalbox.activity.measures import Sources
    from signalbox.activity.questions import DEFAULT_STAGE
    from signalbox.aws.activity.metric_data import CloudWatchMetricData
    from signalbox.aws.activity.stage import StageActivity
    from signalbox.exchange.model.names import StageNames

    session = deployment.session()
    tables = session.resource("dynamodb")
    return StageActivity(
        CloudWatchMetricData(session.client("cloudwatch")),
        splits=tables.Table(output(deployment, "SplitTable")),
        exchanges=tables.Table(output(deployment, "ExchangeTable")),
        names=StageNames(deployment.stage or DEFAULT_STAGE, output(deployment, "ExchangePrefix")),
        sources=Sources.parse(output(deployment, "ActivitySources")),
    )


@contextmanager
def _screen(*, as_json: bool, repeats: bool) -> "Iterator[Callable[[Document, str], None]]":
    """Yield the function that shows a document and the problem of the last read: in place on a terminal."""
    if as_json:
        yield _print_line_of_json if repeats else lambda document, _: print_json(document)
        return
    if not (repeats and sys.stdout.isatty()):
        yield _print_screen
        return
    from rich.live import Live

    from signalbox.cli.activity.screen import screen

    with Live(console=console(), auto_refresh=False, vertical_overflow="crop") as live:
        yield lambda document, problem: live.update(screen(document, problem, width=live.console.width), refresh=True)


def _print_screen(document: Document, problem: str) -> None:
    from signalbox.cli.activity.screen import screen

    terminal = console()
    terminal.print(screen(document, problem, width=terminal.width))


def _print_line_of_json(document: Document, problem: str) -> None:
    print_line(json.dumps({**document, **({"problem": problem} if problem else {})}))
    sys.stdout.flush()
