"""`signalbox verify`: runs every capability of a stage end to end, and reports what worked."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from signalbox.checkout import require_checkout
from signalbox.cli.shared.output import print_json, print_line, print_table, print_text
from signalbox.cli.shared.signals import Interrupted, interruptible
from signalbox.cli.shared.stage import Aws, Json, Stage, output, say
from signalbox.verify.names import RunNames, new_run_id, parse_run_id

if TYPE_CHECKING:
    from signalbox.cli.verify.trial import NamedTrial
    from signalbox.clients.deployment import Deployment
    from signalbox.verify.report import Report

NOT_WORKED = 1
RANDOM_BYTES = 1
# The output that a run needs of each capability: a stage without one is refused before anything is made.
NEEDED = {
    "rendezvous": "BrokerQueueUrl",
    "splitting": "SplitTable",
    "exchange": "ExchangeTable",
    "live": "LiveWebSocketUrl",
    "history": "HistoryBucket",
}


def verify(
    *,
    without_jobs: Annotated[
        bool, typer.Option("--without-jobs", help="Do not run a history job; the report says that it was skipped.")
    ] = False,
    clean: Annotated[
        str | None,
        typer.Option("--clean", metavar="RUN", help="Only delete what this interrupted run has left behind."),
    ] = None,
    aws: Aws = False,
    stage: Stage = "signalbox",
    as_json: Json = False,
) -> None:
    """Run every capability of a stage end to end in a few minutes; exit with 0 only if all worked."""
    from signalbox.cli.shared.deployment import find_deployment

    require_checkout()
    run_id = None if clean is None else parse_run_id(clean)
    deployment = find_deployment(aws=aws, stage=stage)
    for capability in deployment.capabilities:
        output(deployment, NEEDED[capability])
    if run_id is not None:
        _clean(deployment, run_id, as_json=as_json)
        return
    _remove_left_overs(deployment)
    report, status = _verified(deployment, with_jobs=not without_jobs)
    if as_json:
        print_json(report.to_document())
    else:
        _print(report)
    if status or not report.worked:
        raise typer.Exit(status or NOT_WORKED)


def _verified(deployment: "Deployment", *, with_jobs: bool) -> "tuple[Report, int]":
    """Return the report of a run, and the exit status of the signal that interrupted it, or 0."""
    from signalbox.cli.verify.cleanup import clean
    from signalbox.cli.verify.run import flows, report
    from signalbox.flows.run import Run

    trial, status = _new_trial(deployment), 0
    run, name = Run(trial, flows(trial, with_jobs=with_jobs)), trial.names.run
    say(f"run {name} on {deployment.place}; everything that it makes has this in its name")
    left: list[str] = [f"what the run made; delete it with: signalbox verify --clean {name}"]
    try:
        with interruptible():
            run.wait()
    except Interrupted as signal:
        say("interrupted; ending the calls in progress")
        status = signal.status
    try:
        with interruptible():
            if status:
                run.stop()
            say(f"deleting everything with {name} in its name")
            left = clean(trial.deployment, name)
    except Interrupted as signal:  # a second signal: the next run, or --clean, deletes the rest
        status = signal.status
    return report(trial, run, left=left), status


def _new_trial(deployment: "Deployment") -> "NamedTrial":
    import secrets

    from signalbox.cli.verify.trial import NamedTrial

    run = new_run_id(datetime.now(UTC), random=secrets.token_hex(RANDOM_BYTES))
    return NamedTrial.of(deployment, RunNames(run))


def _remove_left_overs(deployment: "Deployment") -> None:
    from signalbox.cli.verify.cleanup import clean, left_over_runs

    for run in left_over_runs(deployment):
        say(f"deleting what the run {run} has left behind")
        for problem in clean(deployment, run):
            say(f"not deleted: {problem}")


def _clean(deployment: "Deployment", run: str, *, as_json: bool) -> None:
    from signalbox.cli.verify.cleanup import clean

    left = clean(deployment, parse_run_id(run))
    if as_json:
        print_json({"run": run, "left": left})
    else:
        print_text("\n".join(left) or f"nothing of the run {run} is left")
        say(f"in {deployment.place}")
    if left:
        raise typer.Exit(NOT_WORKED)


def _print(report: "Report") -> None:
    rows = (
        (
            row.capability,
            row.what,
            row.outcome.value,
            str(len(row.latencies) or ""),
            _seconds(row.median),
            _seconds(row.longest),
            row.detail,
        )
        for row in report.rows
    )
    columns = ["capability", "what", "outcome", "measured", "median s", "maximum s", "detail"]
    print_table(columns, rows, title=f"Run {report.run}")
    answers = report.answers.values()
    answered = ((one.question.text, json.dumps(one.answer), one.question.expected) for one in answers)
    print_table(["question about AWS", "answer of this stage", "expected"], answered)
    for one in answers:
        if not one.is_expected:
            print_line(f"not expected: {one.question.text}: {one.question.otherwise}")
    print_line(f"Price at list prices: about {report.price['usd']} USD. Duration: {report.seconds:.0f} s.")
    for problem in report.left:
        print_line(f"left: {problem}")
    print_line("Everything worked." if report.worked else "Not everything worked.")


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
