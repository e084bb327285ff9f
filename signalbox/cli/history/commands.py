"""The commands `signalbox history`, SQL queries of the event history, and `signalbox report`, daily reports."""

import json
import re
import tempfile
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.cli.history.jobs import Job, run_jobs
from signalbox.cli.history.output_folder import check_writable, output_folder
from signalbox.cli.shared.days import METAVAR, past_day, today
from signalbox.cli.shared.option_groups import CommandGroup
from signalbox.cli.shared.output import print_csv, print_json, print_table, print_text
from signalbox.cli.shared.stage import OutputOptions, output, say
from signalbox.errors import RejectedError
from signalbox.history.jobs import ALL_REPORTS, DAY_SCRIPT, REPORTS
from signalbox.nearest import suggestion

if TYPE_CHECKING:
    from signalbox.clients.deployment import Deployment

app = CommandGroup("Query the event history with SQL.")

QUERY_PREFIX = "queries/"
RECENT = timedelta(days=7)
ATHENA_MISSING = "TABLE_NOT_FOUND"  # Athena's error name
# The words that begin a query of Spark; comments and parentheses before them are for Spark to read.
QUERIES = ("DESC", "DESCRIBE", "EXPLAIN", "FROM", "SELECT", "SHOW", "TABLE", "VALUES", "WITH")
HOW_TABLES_APPEAR = (
    "a new stage has no tables: the schedules make `events` within hours and those of reports daily; "
    "`signalbox report NAME --fresh` makes them now, and `events_raw` has what is a minute old"
)


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query; all values are text, or None for null."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str | None]]


@app.command()
def query(
    *,
    sql: Annotated[str, typer.Argument(help="The query; docs/history.md describes the tables.", metavar="SQL")],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    options: OutputOptions,
) -> None:
    """Run a query: with Spark on the local stage, with Athena in AWS."""
    if as_csv and options.as_json:
        raise RejectedError("give --csv or --json, not both")
    from signalbox.clients.deployment import AwsDeployment

    deployment = options.deployment()
    result = _query_athena(deployment, sql) if isinstance(deployment, AwsDeployment) else _query_spark(deployment, sql)
    _print_result(result, as_csv=as_csv, as_json=options.as_json)


def _query_athena(deployment: "Deployment", sql: str) -> QueryResult:
    from signalbox.aws.history.athena import Athena, QueryFailed, reader_session

    results = f"s3://{output(deployment, 'HistoryBucket')}/{QUERY_PREFIX}"
    reader = reader_session(deployment.session(), output(deployment, "HistoryReaderArn"))
    athena = Athena(reader.client("athena"), output(deployment, "HistoryDatabase"), results)
    try:
        columns, rows = athena.table(sql)
    except QueryFailed as error:
        if ATHENA_MISSING not in str(error):
            raise
        raise RejectedError(f"{error}\n{HOW_TABLES_APPEAR}") from error
    return QueryResult(columns, rows)


def _query_spark(deployment: "Deployment", sql: str) -> QueryResult:
    _check_query(sql)
    with tempfile.TemporaryDirectory() as folder:
        output_file = Path(folder, "answer.json")
        asked = {"query": sql, "output": str(output_file)}
        run_jobs(deployment, [("compact_history", _recent()), ("query", asked)], _ignore_output)
        found = json.loads(output_file.read_text())
    if "problem" in found:
        raise RejectedError(_explained(found["problem"], is_missing=found["is_missing"], tables=found["tables"]))
    return QueryResult(found["columns"], found["rows"])


def _check_query(sql: str) -> None:
    """Raise `RejectedError` for what begins as no query does, before Spark starts; Spark examines the rest."""
    word = re.match(r"\s*(\w*)", sql)[1]  # type: ignore[index]  # it matches any text
    if word.upper() not in QUERIES and (word or not sql.strip()):
        near = suggestion(word.upper(), QUERIES)
        raise RejectedError(f"only queries are accepted, and none begins with {word!r}{near}")


def _recent() -> Mapping[str, str]:
    """Return the days whose new events a query on the local stage reads: no schedule compacts them there."""
    end = today() + timedelta(days=1)
    return {"from": (end - RECENT).isoformat(), "to": end.isoformat(), "maintain": "no"}


def _explained(problem: str, *, is_missing: bool, tables: Sequence[str]) -> str:
    """Return why a query cannot run, and what makes the tables if it names one that is not there."""
    if not is_missing:
        return problem
    known = f"there are the tables {', '.join(sorted(tables))}" if tables else "there is no history yet"
    return f"{problem}\n{known}: `signalbox report NAME` makes the tables of its report, and `events`, from new events"


def _print_result(result: QueryResult, *, as_csv: bool, as_json: bool) -> None:
    if as_json:
        print_json([dict(zip(result.columns, row, strict=True)) for row in result.rows])
    elif as_csv:
        print_csv(result.columns, result.rows)
    else:
        print_table(list(result.columns), ([value or "" for value in row] for row in result.rows))
        if not result.rows:
            say("no rows")


def report(
    *,
    name: Annotated[
        str, typer.Argument(help=f"The report: one of {', '.join(REPORTS)}, or {ALL_REPORTS}.", metavar="NAME")
    ],
    first: Annotated[
        str | None,
        typer.Option("--from", help="First UTC day, such as 2026-11-23; default: today.", metavar=METAVAR),
    ] = None,
    last: Annotated[str | None, typer.Option("--to", help="Last UTC day; default: the first.", metavar=METAVAR)] = None,
    fresh: Annotated[
        bool | None,
        typer.Option("--fresh/--no-fresh", help="Compact new raw events first; default on the local stage."),
    ] = None,
    open_picture: Annotated[bool, typer.Option("--open", help="Open the pictures in a browser.")] = False,
    folder: Annotated[
        Path | None, typer.Option(help="Folder for text, pictures and JSON; default: .signalbox/reports.")
    ] = None,
    options: OutputOptions,
) -> None:
    """Create a report of one or more days, print it, and save its text, picture and JSON."""
    from signalbox.aws.history.report_files import download_report
    from signalbox.clients.deployment import LocalDeployment

    if name not in (*REPORTS, ALL_REPORTS):
        raise RejectedError(f"unknown report {name!r}{suggestion(name, (*REPORTS, ALL_REPORTS))}")
    days = _days(first, last)
    deployment = options.deployment()
    home = output_folder(deployment, folder, "reports")
    check_writable(home)
    is_fresh = isinstance(deployment, LocalDeployment) if fresh is None else fresh
    until = days[-1] + timedelta(days=1)
    window = {"from": days[0].isoformat(), "to": until.isoformat()}
    run_jobs(deployment, _report_jobs(name, window, is_fresh=is_fresh), say)
    s3, bucket = deployment.session().client("s3"), output(deployment, "HistoryBucket")
    names = REPORTS if name == ALL_REPORTS else [name]
    paths = [path for one in names for path in download_report(s3, bucket, REPORTS[one], days, home / one)]
    _print_report(paths, as_json=options.as_json)
    if open_picture:
        for path in paths:
            if path.suffix == ".svg":
                webbrowser.open(path.resolve().as_uri())


def _report_jobs(name: str, window: Mapping[str, str], *, is_fresh: bool) -> list[Job]:
    if name == ALL_REPORTS:
        return [(DAY_SCRIPT, {**window, "compact": "yes" if is_fresh else "no"})]
    compaction: list[Job] = [("compact_history", window)] if is_fresh else []
    return [*compaction, (REPORTS[name].script, window)]


def _days(first: str | None, last: str | None) -> list[date]:
    from_day, to_day = past_day(first, "--from"), past_day(last, "--to")
    begin, end = from_day or to_day or today(), to_day or from_day or today()
    if end < begin:
        raise RejectedError(f"--to {end} is before --from {begin}")
    return [begin + timedelta(days=ahead) for ahead in range((end - begin).days + 1)]


def _print_report(paths: Sequence[Path], *, as_json: bool) -> None:
    if as_json:
        print_json([json.loads(path.read_text()) for path in paths if path.suffix == ".json"])
        return
    for path in paths:
        if path.suffix == ".txt":
            print_text(path.read_text().rstrip("\n"))
    for path in paths:
        say(str(path))


def _ignore_output(_line: str) -> None:
    """Discard Spark's warnings, which are no part of the result."""
