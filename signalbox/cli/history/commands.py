"""`signalbox history` and `signalbox report`: what was, asked in SQL or told by reports."""

import csv
import json
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.history.jobs import run_jobs
from signalbox.cli.shared.output import print_json, print_line, print_table
from signalbox.cli.shared.stage import Aws, Json, Stage, output, say
from signalbox.errors import RejectedError
from signalbox.history.jobs import REPORTS

if TYPE_CHECKING:
    from signalbox.cli.shared.deployment import Deployment

app = typer.Typer(help="What was: every event, asked in SQL.", no_args_is_help=True)

QUERIES = "queries/"
READING = ("select", "with", "show", "describe", "explain", "values")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a query; all values are text, or None."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]


@app.callback()
def history() -> None:
    """Ask in SQL what was."""


@app.command()
def query(
    *,
    sql: Annotated[str, typer.Argument(help="A query; its tables are those of docs/history.md.", metavar="SQL")],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Ask the tables of history: with Spark here, with Athena in AWS."""
    from signalbox.cli.shared.deployment import find_deployment

    words = sql.split(maxsplit=1)
    if not words or words[0].lower().lstrip("(") not in READING:
        raise RejectedError(f"a query begins with one of {', '.join(READING).upper()}, not {sql[:40]!r}")
    if as_csv and as_json:
        raise RejectedError("--csv and --json: one of the two")
    deployment = find_deployment(aws=aws, stage=stage)
    answer = _of_athena(deployment, sql) if deployment.endpoint_url is None else _of_spark(deployment, sql)
    _show(answer, as_csv=as_csv, as_json=as_json)


def _of_athena(deployment: "Deployment", sql: str) -> Answer:
    from signalbox.aws.history.athena import Athena

    results = f"s3://{output(deployment, 'HistoryBucket')}/{QUERIES}"
    athena = Athena(deployment.session().client("athena"), output(deployment, "HistoryDatabase"), results)
    columns, rows = athena.table(sql)
    return Answer(columns, rows)


def _of_spark(deployment: "Deployment", sql: str) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "answer.json")
        run_jobs(deployment, [("query", {"query": sql, "output": str(told)})], _hear_nothing)
        found = json.loads(told.read_text())
    return Answer(found["columns"], found["rows"])


def _show(answer: Answer, *, as_csv: bool, as_json: bool) -> None:
    if as_json:
        print_json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(answer.columns)
        writer.writerows(answer.rows)
    else:
        print_table(list(answer.columns), ([value or "" for value in row] for row in answer.rows))


def report(
    *,
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(REPORTS)}.", metavar="NAME")],
    first: Annotated[
        datetime | None, typer.Option("--from", formats=["%Y-%m-%d"], help="First UTC day; today if not given.")
    ] = None,
    last: Annotated[
        datetime | None, typer.Option("--to", formats=["%Y-%m-%d"], help="Last UTC day; the first if not given.")
    ] = None,
    fresh: Annotated[
        bool | None,
        typer.Option("--fresh/--no-fresh", help="First put what has come into the tables; here that is so anyway."),
    ] = None,
    open_picture: Annotated[bool, typer.Option("--open", help="Show the pictures in a browser.")] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Where text, pictures and JSON go; .signalbox/reports if not given.")
    ] = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Make a report of some days, print it, and keep its text, picture and JSON."""
    from signalbox.aws.history.report_files import fetched
    from signalbox.cli.shared.deployment import find_deployment

    if name not in REPORTS:
        raise RejectedError(f"there is no report {name!r}; there is: {', '.join(REPORTS)}")
    days = _days(first, last)
    deployment = find_deployment(aws=aws, stage=stage)
    is_fresh = deployment.endpoint_url is not None if fresh is None else fresh
    until = days[-1] + timedelta(days=1)
    window = {"from": days[0].isoformat(), "to": until.isoformat()}
    compaction = [("compact_history", window)] if is_fresh else []
    run_jobs(deployment, [*compaction, (REPORTS[name].script, window)], say)
    home = folder or (deployment.folder or Path(".signalbox")) / "reports"
    s3, bucket = deployment.session().client("s3"), output(deployment, "HistoryBucket")
    kept = list(fetched(s3, bucket, REPORTS[name], days, home / name))
    _tell(kept, as_json=as_json)
    if open_picture:
        for path in kept:
            if path.suffix == ".svg":
                webbrowser.open(path.resolve().as_uri())


def _days(first: datetime | None, last: datetime | None) -> list[date]:
    begin = (first or last or datetime.now(UTC)).date()
    end = (last or first or datetime.now(UTC)).date()
    if end < begin:
        raise RejectedError(f"--to {end} is before --from {begin}")
    return [begin + timedelta(days=ahead) for ahead in range((end - begin).days + 1)]


def _tell(kept: Sequence[Path], *, as_json: bool) -> None:
    if as_json:
        print_json([json.loads(path.read_text()) for path in kept if path.suffix == ".json"])
        return
    for path in kept:
        if path.suffix == ".txt":
            print_line(path.read_text().rstrip("\n"))
    for path in kept:
        say(str(path))


def _hear_nothing(_line: str) -> None:
    """Spark's warnings are none of the answer."""
